/** `/routing/carriers`, with its test calls, `/outbound-routes`, `/inbound-routes`. */
import type { ChangeDeps } from '../../changes/kinds.ts'
import { Hono } from 'hono'
import { fieldsWhere, type Written } from '../../auth/requires.ts'
import { countsElsewhere, type WithOthers } from '../../nodes/other-nodes.ts'
import type { ControlEnv } from '../../http/control-env.ts'
import { resourceRoutes } from '../resource-routes.ts'
import { CarrierStore } from './carrier-store.ts'
import type { CarrierView } from './carrier-view.ts'
import { withLiveStatus, withMoreCalls } from './carrier-status.ts'
import { InboundRouteStore } from '../routes/inbound-route-store.ts'
import { OutboundRouteStore, type OutboundRouteView } from '../routes/outbound-route-store.ts'
import { reservedBy } from '../source-claims.ts'

export function routingRoutes(world: ChangeDeps & WithOthers) {
  const { store, engine, settings, others } = world
  const carriers = new CarrierStore(store, reservedBy(settings), settings.hasMediaRelay)
  const common = (kind: 'carrier' | 'outbound_route' | 'inbound_route') => ({
    world,
    kind,
    changed: ({ id }: { readonly id: number }) => engine.reloadRouting({ of: kind, ids: [id] }),
  })
  return new Hono<ControlEnv>()
    .route(
      '/',
      resourceRoutes({
        ...common('carrier'),
        path: '/routing/carriers',
        scope: 'carriers',
        resource: carriers,
        lookUp: (uris) => engine.lookUp(uris),
        show: (carrier) => withLiveStatus(carrier, engine),
        withOthers: async (c, listed) => {
          const ids = listed.map(({ id }) => id)
          const more = await countsElsewhere(c, others, 'carriers', ids)
          return more === undefined ? listed : listed.map((carrier) => withMoreCalls(carrier, more))
        },
        beyond: whoPays,
      }),
    )
    .route(
      '/',
      resourceRoutes({
        ...common('outbound_route'),
        path: '/outbound-routes',
        scope: 'routes',
        resource: new OutboundRouteStore(store),
        beyond: freeCalls,
      }),
    )
    .route(
      '/',
      resourceRoutes({
        ...common('inbound_route'),
        path: '/inbound-routes',
        scope: 'routes',
        resource: new InboundRouteStore(store),
      }),
    )
}

/** Setting the payer requires the scope that assigns numbers to customers. */
const whoPays = ({ before, after }: Written<CarrierView>) =>
  fieldsWhere(
    [
      after.customer_id !== null && after.customer_id !== before?.customer_id,
      'customer',
      ['customers:write'],
    ],
    [after.payer === 'from_number' && before?.payer !== after.payer, 'payer', ['customers:write']],
  )

/** Emergency calls use no wallet: the route's carrier and prefix are worth money. */
const freeCalls = ({ before, after }: Written<OutboundRouteView>) =>
  fieldsWhere([
    after.emergency && JSON.stringify(after) !== JSON.stringify(before),
    'emergency',
    ['wallets:write'],
  ])
