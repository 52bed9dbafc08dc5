/** `/telephony/ai-agents`: AI agents, each a number with a SIP URI. */
import type { ChangeDeps } from '../../changes/kinds.ts'
import { type WithOthers, countsElsewhere } from '../../nodes/other-nodes.ts'
import { resourceRoutes } from '../resource-routes.ts'
import { AgentStore } from './agent-store.ts'

export function agentRoutes(world: ChangeDeps & WithOthers) {
  const { store, engine, settings, others } = world
  return resourceRoutes({
    world,
    path: '/telephony/ai-agents',
    kind: 'agent',
    scope: 'agents',
    resource: new AgentStore(store, settings.ownPlaces, settings.hasMediaRelay),
    lookUp: (uris) => engine.lookUp(uris),
    changed: ({ id }) => engine.reloadRouting({ of: 'agent', ids: [id] }),
    show: (agent) => ({ ...agent, active_calls: engine.calls.countByAgent(agent.id) }),
    withOthers: async (c, agents) => {
      const ids = agents.map(({ id }) => id)
      const more = await countsElsewhere(c, others, 'agents', ids)
      if (more === undefined) return agents
      return agents.map((agent) => ({
        ...agent,
        active_calls: (agent.active_calls ?? 0) + more(agent.id),
      }))
    },
  })
}
