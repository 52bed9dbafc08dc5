/**
 * Determines the tenant in which a request acts (SPECIFICATION.md §5.3 and §5.5): a tenant
 * credential in its own tenant, a global one in all, or in the one that `X-Tenant-Slug` names.
 */
import { compile, type Statement } from '../../schema/sql/compiled.ts'
import type { Store } from '../../schema/open.ts'
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

/** Reads rows on each use (5 µs): a renamed or deactivated tenant takes effect from the next request. */
export class TenantScope {
  readonly #byId: Statement<{ id: number }, TenantRow>
  readonly #bySlug: Statement<{ slug: string }, TenantRow>
  readonly #domains: Statement<{ tenantId: number }, { readonly domain: string }>

  constructor(store: Store) {
    this.#byId = compile(store, (db, param) =>
      db.selectFrom('tenant').select(['id', 'slug', 'is_active']).where('id', '=', param('id')),
    )
    this.#bySlug = compile(store, (db, param) =>
      db.selectFrom('tenant').select(['id', 'slug', 'is_active']).where('slug', '=', param('slug')),
    )
    this.#domains = compile(store, (db, param) =>
      db
        .selectFrom('tenant_domain')
        .select('domain')
        .where('tenant_id', '=', param('tenantId'))
        .limit(2),
    )
  }

  /** Returns the principal as it acts under this header. Throws 403 for a foreign tenant. */
  narrow(principal: Principal, slug: string | undefined): Principal {
    if (principal.tenantId === null) {
      if (slug === undefined) return principal
      return within(principal, this.#bySlug.get({ slug }))
    }
    const own = this.#byId.get({ id: principal.tenantId })
    if (slug !== undefined && own?.slug !== slug) throw wrongTenant()
    const acting = within(principal, own)
    return acting.domain === null ? acting : this.#inDomain(acting, principal.tenantId)
  }

  /** Read each time, because the other domains may change. */
  #inDomain(principal: Principal, tenantId: number): Principal {
    const [first, second] = this.#domains.all({ tenantId })
    const isOnlyDomain = second === undefined && first?.domain === principal.domain
    return { ...principal, isOnlyDomain }
  }
}

function within(principal: Principal, tenant: TenantRow | undefined): Principal {
  if (tenant === undefined || tenant.is_active === 0) throw wrongTenant()
  if (principal.tenantId === tenant.id && principal.tenantSlug === tenant.slug) return principal
  return { ...principal, tenantId: tenant.id, tenantSlug: tenant.slug }
}
