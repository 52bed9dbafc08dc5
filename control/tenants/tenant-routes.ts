/** `/tenants`: organisations and their domains, for global credentials. */
import type { TenantScope } from '../auth/tenants.ts'
import type { ControlDeps } from '../deps.ts'
import { resourceRoutes } from '../provisioning/resource-routes.ts'
import { TenantStore } from './tenant-store.ts'

/**
 * @param tenants forgets what it has of them.
 * @param reloadCustomers takes a deactivated tenant out of charging.
 */
export const tenantRoutes = (
  { store, now, engine, settings }: Pick<ControlDeps, 'store' | 'now' | 'engine' | 'settings'>,
  tenants: Pick<TenantScope, 'clear'>,
  reloadCustomers: () => Promise<void>,
) =>
  resourceRoutes({
    path: '/tenants',
    scope: 'tenants',
    resource: new TenantStore(store, settings.hasMediaRelay, () => tenants.clear()),
    ...{ store, now },
    changed: async () => {
      await engine.reloadRouting()
      await reloadCustomers()
    },
  })
