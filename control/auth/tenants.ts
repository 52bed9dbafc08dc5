/**
 * Determines the tenant in which a request acts (SPECIFICATION.md §5.3 and §5.5): a tenant
 * credential in its own tenant, a global one in all, or in the one that `X-Tenant-Slug` names.
 */
import type { Selectable } from 'kysely'
import type { Store } from '../../schema/storage/store.ts'
import type { DnsAnswers } from '../../schema/contracts/gateways.ts'
import { prepare } from '../../schema/sql/query.ts'
import { LONGEST_UNCONFIRMED_MS } from './verify-key.ts'
import type { Principal } from './principal.ts'
import { ApiError } from '../http/api-error.ts'
import { RememberedRows } from '../http/remembered-rows.ts'
import { whenKnown, requestHeader, type Step } from '../http/control-env.ts'
import type { TenantTable } from '../../schema/tables/tenants.ts'

type TenantRow = Pick<Selectable<TenantTable>, 'id' | 'slug' | 'is_active'>

/** The same response for a foreign tenant and for an unknown one. */
export const wrongTenant = (): ApiError =>
  new ApiError(403, 'wrong_tenant', 'The credential is not valid for this tenant')

/** Remembered of each kind. */
const MAX_KNOWN = 10_000

/**
 * Remembers tenants as `KeyVerifier` remembers tokens: a renamed or deactivated one takes effect
 * from the next request on this instance, and on the others within a second. One that is not there
 * is looked up each time.
 */
export class TenantScope {
  readonly #statements: ReturnType<typeof prepareAll>
  readonly #byId: RememberedRows<number, TenantRow>
  readonly #bySlug: RememberedRows<string, TenantRow>
  /** Domains of each tenant, two of them at most. */
  readonly #domains: RememberedRows<number, readonly string[]>

  /** @param unconfirmedMs as `KeyVerifier` has it. */
  constructor(store: Store, unconfirmedMs: () => number = () => 0) {
    this.#statements = prepareAll(store)
    const isCurrent = (): boolean => unconfirmedMs() < LONGEST_UNCONFIRMED_MS
    this.#byId = new RememberedRows(MAX_KNOWN, isCurrent)
    this.#bySlug = new RememberedRows(MAX_KNOWN, isCurrent)
    this.#domains = new RememberedRows(MAX_KNOWN, isCurrent)
  }

  /**
   * Returns the principal as it acts under this header, or throws or rejects with 403 for a foreign
   * tenant. A global one without the header needs no look-up.
   */
  narrow(principal: Principal, slug: string | undefined): Principal | Promise<Principal> {
    const { tenantId } = principal
    if (tenantId === null && slug === undefined) return principal
    const tenant = tenantId === null ? this.#named(slug ?? '') : this.#withId(tenantId)
    const acting = (row: TenantRow | undefined): Principal | Promise<Principal> => {
      if (slug !== undefined && row?.slug !== slug) throw wrongTenant()
      const narrowed = within(principal, row)
      return tenantId === null || narrowed.domain === null ? narrowed : this.#inDomain(narrowed)
    }
    return tenant instanceof Promise ? tenant.then(acting) : acting(tenant)
  }

  /** Tenants or their domains were changed, also by another process. */
  clear(): void {
    for (const known of [this.#byId, this.#bySlug, this.#domains]) known.clear()
  }

  #withId(id: number): TenantRow | Promise<TenantRow | undefined> {
    return this.#byId.find(id, () => this.#statements.byId.get({ id }))
  }

  #named(slug: string): TenantRow | Promise<TenantRow | undefined> {
    return this.#bySlug.find(slug, () => this.#statements.bySlug.get({ slug }))
  }

  #inDomain(principal: Principal): Principal | Promise<Principal> {
    const tenantId = principal.tenantId ?? 0
    const domains = this.#domains.find(tenantId, async () =>
      (await this.#statements.domains.all({ tenantId })).map(({ domain }) => domain),
    )
    const narrowed = (names: readonly string[] = []): Principal => ({
      ...principal,
      isOnlyDomain: names.length === 1 && names[0] === principal.domain,
    })
    return domains instanceof Promise ? domains.then(narrowed) : narrowed(domains)
  }
}

const prepareAll = (store: Store) => ({
  byId: prepare<{ id: number }, TenantRow>(store, (db, param) =>
    db.selectFrom('tenant').select(['id', 'slug', 'is_active']).where('id', '=', param('id')),
  ),
  bySlug: prepare<{ slug: string }, TenantRow>(store, (db, param) =>
    db.selectFrom('tenant').select(['id', 'slug', 'is_active']).where('slug', '=', param('slug')),
  ),
  domains: prepare<{ tenantId: number }, { readonly domain: string }>(store, (db, param) =>
    db
      .selectFrom('tenant_domain')
      .select('domain')
      .where('tenant_id', '=', param('tenantId'))
      .limit(2),
  ),
})

function within(principal: Principal, tenant: TenantRow | undefined): Principal {
  if (tenant === undefined || tenant.is_active === 0) throw wrongTenant()
  if (principal.tenantId === tenant.id && principal.tenantSlug === tenant.slug) return principal
  const isGlobal = principal.tenantId === null
  return { ...principal, tenantId: tenant.id, tenantSlug: tenant.slug, isGlobal }
}

/** Narrows the principal to the tenant in which it acts; 403 for a foreign tenant. */
export function tenantScope(tenants: TenantScope): Step {
  return (c) => {
    const presented = c.get('presented')
    if (presented.kind !== 'accepted') return
    const slug = requestHeader(c, 'x-tenant-slug')
    return whenKnown(tenants.narrow(presented.principal, slug), (principal) => {
      if (principal !== presented.principal) c.set('presented', { kind: 'accepted', principal })
    })
  }
}

/**
 * Limits a request to the rows of its tenant and domain, and says who asks and when, and what DNS
 * has said of the written destinations: absent when it was not asked.
 */
export interface RequestScope extends Partial<DnsAnswers> {
  /** The only tenant whose rows exist; null for all tenants. */
  readonly tenantId: number | null
  /** The platform asks, in that tenant. */
  readonly isGlobal?: boolean
  /**
   * The only SIP domain of that tenant, for rows that have one; absent or null for all its domains.
   */
  readonly domain?: string | null
  /** Name in the ledger and the audit log: `key:<uuid>`, `user:<username>`, `seed`. */
  readonly actor: string
  /** Milliseconds UTC. */
  readonly now: number
}

export const requestScope = (
  { tenantId, isGlobal = false, domain, actor }: Principal,
  now: () => number,
): RequestScope => ({
  tenantId,
  isGlobal,
  domain,
  actor,
  now: now(),
})

/** The scope of a seed file. */
export const everywhere: RequestScope = { tenantId: null, actor: '', now: 0 }
