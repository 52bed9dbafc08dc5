/** The routes of the resources that have no more than the five. */
import { Hono } from 'hono'
import type { ChangeDeps } from '../changes/kinds.ts'
import type { ControlEnv } from '../http/control-env.ts'
import { type WithOthers, countsOfPeers } from '../nodes/other-nodes.ts'
import { aiAgents } from './ai-agents.ts'
import { carriers, withLiveStatus } from './carriers.ts'
import { inboundRoutes } from './inbound-routes.ts'
import { outboundRoutes } from './outbound-routes.ts'
import { resourceRoutes } from './resource-routes.ts'
import { tenants } from './tenants.ts'

export function plainResourceRoutes(deps: ChangeDeps & WithOthers) {
  const { engine, others } = deps
  return new Hono<ControlEnv>()
    .route('/', resourceRoutes(deps, tenants))
    .route('/', resourceRoutes(deps, outboundRoutes))
    .route('/', resourceRoutes(deps, inboundRoutes))
    .route(
      '/',
      resourceRoutes(deps, carriers, {
        show: (carrier) => withLiveStatus(carrier, engine),
        async withOthers(c, listed) {
          const ids = listed.map(({ id }) => id)
          const more = await countsOfPeers(c, others, 'carriers', ids)
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
      resourceRoutes(deps, aiAgents, {
        show: (agent) => ({ ...agent, active_calls: engine.calls.countByAgent(agent.id) }),
        async withOthers(c, listed) {
          const ids = listed.map(({ id }) => id)
          const more = await countsOfPeers(c, others, 'agents', ids)
          if (more === undefined) return listed
          return listed.map((agent) => ({
            ...agent,
            active_calls: agent.active_calls + more(agent.id),
          }))
        },
      }),
    )
}
