/**
 * Determines the tenant in which a request acts (SPECIFICATION.md §5.3 and §5.5): a tenant
 * credential in its own tenant, a global one in all, or in the one that `X-Tenant-Slug` names.
 */
import type { Store } from '../../schema/open.ts'
import { prepare, type Prepared } from '../../schema/sql/prepared.ts'
import { ApiError } from '../http/api-error.ts'
import type { Principal } from './principal.ts'

interface TenantRow {
  readonly id: number
  readonly slug: string
  readonly is_active: 0 | 1
}

/** The same response for a foreign tenant and for an unknown one. */
export const wrongTenant = (): ApiError =>
  new ApiError(403, 'wrong_tenant', 'The credential is not valid for this tenant')

/** Reads rows on each use: a renamed or deactivated tenant takes effect from the next request. */
export class TenantScope {
  readonly #byId: Prepared<{ id: number }, TenantRow>
  readonly #bySlug: Prepared<{ slug: string }, TenantRow>
  readonly #domains: Prepared<{ tenantId: number }, { readonly domain: string }>

  constructor(store: Store) {
    this.#byId = prepare(store, (db, param) =>
      db.selectFrom('tenant').select(['id', 'slug', 'is_active']).where('id', '=', param('id')),
    )
    this.#bySlug = prepare(store, (db, param) =>
      db.selectFrom('tenant').select(['id', 'slug', 'is_active']).where('slug', '=', param('slug')),
    )
    this.#domains = prepare(store, (db, param) =>
      db
        .selectFrom('tenant_domain')
        .select('domain')
        .where('tenant_id', '=', param('tenantId'))
        .limit(2),
    )
  }

  /**
   * Returns the principal as it acts under this header, or rejects with 403 for a foreign tenant. A global one
   * without the header needs no look-up.
   */
  narrow(principal: Principal, slug: string | undefined): Principal | Promise<Principal> {
    if (principal.tenantId !== null) return this.#inOwn(principal, principal.tenantId, slug)
    return slug === undefined ? principal : this.#inNamed(principal, slug)
  }

  async #inNamed(principal: Principal, slug: string): Promise<Principal> {
    return within(principal, await this.#bySlug.get({ slug }))
  }

  async #inOwn(
    principal: Principal,
    tenantId: number,
    slug: string | undefined,
  ): Promise<Principal> {
    const own = await this.#byId.get({ id: tenantId })
    if (slug !== undefined && own?.slug !== slug) throw wrongTenant()
    const acting = within(principal, own)
    return acting.domain === null ? acting : this.#inDomain(acting, tenantId)
  }

  /** Read each time, because the other domains may change. */
  async #inDomain(principal: Principal, tenantId: number): Promise<Principal> {
    const [first, second] = await this.#domains.all({ tenantId })
    const isOnlyDomain = second === undefined && first?.domain === principal.domain
    return { ...principal, isOnlyDomain }
  }
}

function within(principal: Principal, tenant: TenantRow | undefined): Principal {
  if (tenant === undefined || tenant.is_active === 0) throw wrongTenant()
  if (principal.tenantId === tenant.id && principal.tenantSlug === tenant.slug) return principal
  return { ...principal, tenantId: tenant.id, tenantSlug: tenant.slug }
}
