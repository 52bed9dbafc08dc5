/** `/tenants`: organisations and their domains, for global credentials. */
import type { ChangeDeps } from '../../changes/kinds.ts'
import { followTenant } from '../follow-rows.ts'
import { resourceRoutes } from '../resource-routes.ts'
import { TenantStore } from './tenant-store.ts'

export const tenantRoutes = (world: ChangeDeps) =>
  resourceRoutes({
    path: '/tenants',
    kind: 'tenant',
    scope: 'tenants',
    resource: new TenantStore(world.store, world.settings.hasMediaRelay, () =>
      world.tenants.clear(),
    ),
    world,
    changed: ({ id }) => followTenant(world, id),
  })
