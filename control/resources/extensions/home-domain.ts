/** Determines the SIP domain of an extension. */
import { type RequestScope, wrongTenant } from '../../auth/tenants.ts'
import type { Store } from '../../../schema/open.ts'
import { all } from '../../../schema/sql/query.ts'
import type { Reference } from '../../http/fields.ts'
import { badReference, tenantOf } from '../references.ts'

export interface Home {
  readonly tenantId: number
  readonly domain: string
}

interface Wish {
  readonly tenant?: Reference | null | undefined
  readonly domain?: string | null | undefined
}

/**
 * Returns the domain that the writer is bound to, or that the body names, or else the tenant's first one
 * (in display order). Without a tenant, there must be a domain that is the only one at all. Throws 400, and
 * 403 for a domain that the writer may not use.
 */
export async function homeOf(
  store: Store,
  { tenant, domain }: Wish,
  scope: RequestScope,
): Promise<Home> {
  const tenantId = await tenantOf(store, tenant, scope)
  const bound = scope.domain ?? null
  if (bound !== null && domain != null && domain !== bound) throw wrongTenant()
  const wanted = bound ?? domain ?? null
  const found = await all(
    store,
    store.db
      .selectFrom('tenant_domain')
      .selectAll()
      .$if(tenantId !== null, (query) => query.where('tenant_id', '=', tenantId ?? 0))
      .$if(wanted !== null, (query) => query.where('domain', '=', wanted ?? ''))
      .orderBy('domain')
      .limit(2),
  )
  const [home] = found
  if (home === undefined)
    throw badReference('domain', wanted === null ? noDomain(tenantId) : 'is unknown')
  if (tenantId === null && found.length > 1)
    throw badReference('tenant', 'is required, or a domain: there are several')
  return { tenantId: home.tenant_id, domain: home.domain }
}

const noDomain = (tenantId: number | null): string =>
  tenantId === null
    ? 'there is none yet: create a tenant with a domain first'
    : 'the tenant has none: give it one first'
