import type { MiddlewareHandler } from 'hono'
import type { TenantScope } from '../auth/tenants.ts'
import type { ControlEnv } from '../http/control-env.ts'
import { requestHeader } from '../http/request-head.ts'

/** Narrows the principal to the tenant it acts in; 403 when that is not its own. */
export function tenantScope(tenants: TenantScope): MiddlewareHandler<ControlEnv> {
  return (c, next) => {
    const presented = c.get('presented')
    if (presented.kind !== 'accepted') return next()
    const slug = requestHeader(c, 'x-tenant-slug')
    const { principal } = presented
    const narrowed = tenants.narrow(principal, slug)
    if (narrowed !== principal) c.set('presented', { kind: 'accepted', principal: narrowed })
    return next()
  }
}
