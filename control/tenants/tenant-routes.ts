/** `/tenants`: organisations and their domains, for global credentials. */
import type { ChangeWorld } from '../changes/change-world.ts'
import { resourceRoutes } from '../provisioning/resource-routes.ts'
import { TenantStore } from './tenant-store.ts'

/** @param reloadCustomers takes a deactivated tenant out of charging. */
export const tenantRoutes = (world: ChangeWorld, reloadCustomers: () => Promise<void>) =>
  resourceRoutes({
    path: '/tenants',
    kind: 'tenant',
    scope: 'tenants',
    resource: new TenantStore(world.store, world.settings.hasMediaRelay, () =>
      world.tenants.clear(),
    ),
    world,
    changed: async () => {
      await world.engine.reloadRouting()
      await reloadCustomers()
    },
  })
