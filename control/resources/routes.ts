/** The routes of the resources that have no more than the five. */
import { Hono } from 'hono'
import type { ChangeDeps } from '../changes/kinds.ts'
import type { ControlEnv } from '../http/control-env.ts'
import { type WithOthers, countsElsewhere } from '../nodes/other-nodes.ts'
import { aiAgents } from './ai-agents.ts'
import { carriers, withLiveStatus } from './carriers.ts'
import { inboundRoutes } from './inbound-routes.ts'
import { outboundRoutes } from './outbound-routes.ts'
import { resourceRoutes } from './resource-routes.ts'
import { tenants } from './tenants.ts'

export function plainResourceRoutes(world: ChangeDeps & WithOthers) {
  const { engine, others } = world
  return new Hono<ControlEnv>()
    .route('/', resourceRoutes(world, tenants))
    .route('/', resourceRoutes(world, outboundRoutes))
    .route('/', resourceRoutes(world, inboundRoutes))
    .route(
      '/',
      resourceRoutes(world, carriers, {
        show: (carrier) => withLiveStatus(carrier, engine),
        async withOthers(c, listed) {
          const ids = listed.map(({ id }) => id)
          const more = await countsElsewhere(c, others, 'carriers', ids)
          if (more === undefined) return listed
          return listed.map(({ status, ...carrier }) => ({
            ...carrier,
            status: { ...status, active_calls: status.active_calls + more(carrier.id) },
          }))
        },
      }),
    )
    .route(
      '/',
      resourceRoutes(world, aiAgents, {
        show: (agent) => ({ ...agent, active_calls: engine.calls.countByAgent(agent.id) }),
        async withOthers(c, listed) {
          const ids = listed.map(({ id }) => id)
          const more = await countsElsewhere(c, others, 'agents', ids)
          if (more === undefined) return listed
          return listed.map((agent) => ({
            ...agent,
            active_calls: agent.active_calls + more(agent.id),
          }))
        },
      }),
    )
}
