/** `/tenants`: organisations and their domains, for global credentials. */
import type { ChangeWorld } from '../changes/change-world.ts'
import { resourceRoutes } from '../provisioning/resource-routes.ts'
import { TenantStore } from './tenant-store.ts'

export const tenantRoutes = (world: ChangeWorld) =>
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

/** What of this process follows a tenant that was written: its numbers and domains, and whether its customers may call. */
export async function followTenant(
  { engine, ocs }: Pick<ChangeWorld, 'engine' | 'ocs'>,
  id: number,
): Promise<void> {
  const changed = { of: 'tenant', ids: [id] } as const
  await engine.reloadRouting(changed)
  await ocs?.reloadCustomers(changed)
}
