/**
 * Tenants: organisations with their SIP domains and numbers. Only global credentials write them.
 */
import { z } from 'zod'
import { ApiError } from '../http/api-error.ts'
import { domain, name, prefix } from '../http/fields.ts'
import type { Row } from '../http/field-columns.ts'
import * as field from '../http/field-table.ts'
import { mediaFields } from './media-fields.ts'
import { type Definition, ResourceStore, type ViewOf } from './resource.ts'
import { putChildren, rowWith } from './table-rows.ts'
import type { RequestScope } from '../auth/tenants.ts'

/** The name of a tenant in `X-Tenant-Slug`. */
const slug = z
  .string()
  .regex(
    /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/,
    'must be 1 to 63 lower-case letters, digits and inner hyphens',
  )

const isUnique = (names: readonly string[]): boolean => new Set(names).size === names.length

const listOf = <Element extends z.ZodType>(body: z.ZodArray<Element>) => ({
  body,
  view: z.array(z.string()),
})

const fields = field.table(
  {
    id: field.id,
    slug: field.required(field.asText(slug), { example: 'acme' }),
    name: field.required(field.asText(name.optional()), {
      about: 'Display name. Defaults to the slug.',
      example: 'Acme',
    }),
    is_active: field.of(field.yesOrNo, { default: true }),
    domains: field.of(
      listOf(z.array(domain).max(100).refine(isUnique, 'contains a duplicate domain')),
      {
        default: [],
        example: ['acme.example'],
      },
    ),
    numbers: field.of(
      listOf(
        z
          .array(prefix.refine((start) => start !== '', 'is empty'))
          .max(10_000)
          .refine(isUnique, 'contains a duplicate number'),
      ),
      {
        default: [],
        about:
          'Numbers of the tenant, or prefixes of number blocks. The tenant may route calls to ' +
          'them from platform carriers.',
        example: ['1555010'],
      },
    ),
    time_zone: field.optional(field.timeZone, {
      about: 'IANA name of the zone of its rate plans, customers and reports; null: UTC.',
    }),
    ...mediaFields,
    created_at: field.createdAt,
  },
  { schemaId: 'Tenant' },
)

const domains = { table: 'tenant_domain', parent: 'tenant_id', keys: ['domain'] } as const
const numbers = { table: 'tenant_number', parent: 'tenant_id', keys: ['prefix'] } as const

export type TenantView = ViewOf<typeof fields.view>

export const tenants: Definition<typeof fields.body, typeof fields.view> = {
  noun: 'Tenant',
  table: 'tenant',
  path: '/tenants',
  scope: 'tenants',
  fields,
  owner: 'tenant.id',
  found: { title: 'tenant.slug', beside: ['tenant.name'], screen: 'tenants', isOfPlatform: true },
  search: ['slug', 'name'],
  order: ['slug'],
  children: {
    domains: { ...domains, order: 'domain', view: (row: Row) => row['domain'] },
    numbers: { ...numbers, order: 'prefix', view: (row: Row) => row['prefix'] },
  },
  store: (deps) => new TenantStore(tenants, deps),
  identify: (tenant, { store }) => rowWith(store, 'tenant', { slug: tenant.slug }),
  check: async ({ body: tenant }) => ({ name: tenant.name ?? tenant.slug }),
  async written(id, { body: tenant, deps: { store, tenantsChanged } }) {
    const rows = (column: string, values: readonly string[]) =>
      values.map((value) => ({ [column]: value }))
    await putChildren(store, domains, id, rows('domain', tenant.domains))
    await putChildren(store, numbers, id, rows('prefix', tenant.numbers))
    store.statements.afterCommit(tenantsChanged)
  },
  async removing({ id }, _, { store, tenantsChanged }) {
    if ((await rowWith(store, 'cdr', { tenant_id: id })) !== undefined)
      throw new ApiError(409, 'in_use', 'The tenant has call records: deactivate it instead')
    store.statements.afterCommit(tenantsChanged)
  },
  /**
   * Charging and routing follow the numbers, domains and zone of the tenant, and whether its
   * customers may call.
   */
  async follow({ engine, ocs }, { id }) {
    await engine.reloadRouting({ of: 'tenant', ids: [id] })
    await ocs?.reloadCustomers({ of: 'tenant', ids: [id] })
    await ocs?.reloadTimes()
  },
  described: {
    tag: 'Tenants',
    body: { slug: 'acme', name: 'Acme', domains: ['acme.example'], numbers: ['+1555010'] },
    patch: { domains: ['acme.example', 'voice.acme.example'] },
  },
}

class TenantStore extends ResourceStore<typeof fields.body, typeof fields.view> {
  /** A tenant credential cannot create tenants, nor assign domains or numbers. */
  protected override admitWriter(scope: RequestScope): void {
    if (scope.tenantId === null) return
    throw new ApiError(403, 'wrong_tenant', 'Only a global credential may change tenants')
  }

  protected override failed(): void {
    this.deps.tenantsChanged()
  }
}
