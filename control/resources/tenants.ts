/**
 * Tenants: organisations with their SIP domains and numbers. Only global credentials write them.
 */
import { exampleMedia, exampleTime, mediaView, moment } from '../http/view-fields.ts'
import { z } from 'zod'
import { ApiError } from '../http/api-error.ts'
import { domain, name, prefix } from '../http/fields.ts'
import { flag, type Row } from './columns.ts'
import { mediaColumns, mediaFields } from './media-fields.ts'
import type { Definition, ViewOf } from './resource.ts'
import { putChildren, rowWith } from './table-rows.ts'
import type { RequestScope } from '../auth/tenants.ts'

/** As in `X-Tenant-Slug`. */
const slug = z
  .string()
  .regex(
    /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/,
    'must be 1 to 63 lower-case letters, digits and inner hyphens',
  )

const isUnique = (names: readonly string[]): boolean => new Set(names).size === names.length

const body = z.strictObject({
  slug,
  name: name.optional().describe('Display name. Defaults to the slug.'),
  is_active: z.boolean().default(true),
  domains: z.array(domain).max(100).refine(isUnique, 'contains a duplicate domain').default([]),
  numbers: z
    .array(prefix.refine((start) => start !== '', 'is empty'))
    .max(10_000)
    .refine(isUnique, 'contains a duplicate number')
    .default([])
    .describe(
      'Numbers of the tenant, or prefixes of number blocks. The tenant may route calls to ' +
        'them from platform carriers.',
    ),
  ...mediaFields,
})

const domains = { table: 'tenant_domain', parent: 'tenant_id', keys: ['domain'] } as const
const numbers = { table: 'tenant_number', parent: 'tenant_id', keys: ['prefix'] } as const

const view = z
  .strictObject({
    id: z.int(),
    slug: z.string(),
    name: z.string(),
    is_active: z.boolean(),
    domains: z.array(z.string()),
    numbers: z.array(z.string()),
    ...mediaView,
    created_at: moment,
  })
  .meta({ id: 'Tenant' })

export type TenantView = ViewOf<typeof view>

export const tenants: Definition<typeof body, typeof view> = {
  noun: 'Tenant',
  table: 'tenant',
  path: '/tenants',
  scope: 'tenants',
  kind: 'tenant',
  body,
  view,
  columns: { is_active: flag('is_active'), ...mediaColumns },
  owner: 'tenant.id',
  search: ['slug', 'name'],
  order: ['slug'],
  children: {
    domains: { ...domains, order: 'domain', view: (row: Row) => row['domain'] },
    numbers: { ...numbers, order: 'prefix', view: (row: Row) => row['prefix'] },
  },
  identify: (tenant, { store }) => rowWith(store, 'tenant', { slug: tenant.slug }),
  admitWriter: refuseTenantCredential,
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
  failed: ({ tenantsChanged }) => tenantsChanged(),
  /**
   * Charging and routing follow the numbers and domains of the tenant, and whether its customers
   * may call.
   */
  async follow({ engine, ocs }, { id }) {
    await engine.reloadRouting({ of: 'tenant', ids: [id] })
    await ocs?.reloadCustomers({ of: 'tenant', ids: [id] })
  },
  described: {
    tag: 'Tenants',
    example: {
      id: 1,
      slug: 'acme',
      name: 'Acme',
      is_active: true,
      domains: ['acme.example'],
      ...exampleMedia,
      numbers: ['1555010'],
      created_at: exampleTime,
    },
    body: { slug: 'acme', name: 'Acme', domains: ['acme.example'], numbers: ['+1555010'] },
    patch: { domains: ['acme.example', 'voice.acme.example'] },
  },
}

/** A tenant credential cannot create tenants, nor assign domains or numbers. */
function refuseTenantCredential(scope: RequestScope): void {
  if (scope.tenantId === null) return
  throw new ApiError(403, 'wrong_tenant', 'Only a global credential may change tenants')
}
