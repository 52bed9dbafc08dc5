/** `/telephony/ai-agents`: AI agents, each a number with a SIP URI. */
import type { ControlDeps } from '../deps.ts'
import { resourceRoutes } from '../provisioning/resource-routes.ts'
import { AgentStore } from './agent-store.ts'

export function agentRoutes({
  store,
  now,
  engine,
  settings,
}: Pick<ControlDeps, 'store' | 'now' | 'engine' | 'settings'>) {
  return resourceRoutes({
    ...{ store, now },
    path: '/telephony/ai-agents',
    scope: 'agents',
    resource: new AgentStore(store, settings.hasMediaRelay),
    lookUp: (uris) => engine.lookUp(uris),
    changed: () => engine.reloadRouting(),
    show: (agent) => ({ ...agent, active_calls: engine.calls.countByAgent(agent.id) }),
  })
}
