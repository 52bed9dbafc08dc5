import type { TenantScope } from './tenants.ts'
import { requestHeader, type Step, whenKnown } from '../http/control-env.ts'

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
