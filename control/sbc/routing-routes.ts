/** `/routing/carriers`, `/outbound-routes`, `/inbound-routes`: where calls come from and where they may go. */
import { Hono } from 'hono'
import type { ControlDeps } from '../deps.ts'
import type { ControlEnv } from '../http/control-env.ts'
import { resourceRoutes } from '../provisioning/resource-routes.ts'
import { CarrierStore } from './carrier-store.ts'
import { withLiveStatus } from './carrier-status.ts'
import { InboundRouteStore } from './routes/inbound-route-store.ts'
import { reservedNetworks } from './source-claims.ts'
import { OutboundRouteStore } from './routes/outbound-route-store.ts'

export function routingRoutes({
  store,
  now,
  engine,
  settings,
}: Pick<ControlDeps, 'store' | 'now' | 'engine' | 'settings'>) {
  const common = { now, changed: () => engine.reloadRouting() }
  return new Hono<ControlEnv>()
    .route(
      '/',
      resourceRoutes({
        ...common,
        path: '/routing/carriers',
        scope: 'carriers',
        resource: new CarrierStore(store, reservedNetworks(settings.reservedNetworks)),
        show: (carrier) => withLiveStatus(carrier, engine),
      }),
    )
    .route(
      '/',
      resourceRoutes({
        ...common,
        path: '/outbound-routes',
        scope: 'routes',
        resource: new OutboundRouteStore(store),
      }),
    )
    .route(
      '/',
      resourceRoutes({
        ...common,
        path: '/inbound-routes',
        scope: 'routes',
        resource: new InboundRouteStore(store),
      }),
    )
}
