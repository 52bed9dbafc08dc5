/** `GET /nodes`: the processes of this installation. Of the platform alone. */
import { Hono } from 'hono'
import { timeToText } from '../../schema/columns.ts'
import type { NodeStatus } from '../../schema/contracts/nodes.ts'
import { requiresGlobal } from '../auth/requires.ts'
import type { Platform } from '../http/platform.ts'
import type { ControlEnv } from '../http/control-env.ts'
import { ok } from '../http/envelope.ts'

export const nodeRoutes = ({ nodes }: Pick<Platform, 'nodes'>) =>
  new Hono<ControlEnv>().get('/nodes', requiresGlobal('metrics:read'), (c) =>
    ok(
      c,
      nodes.list().map((node) => ({
        ...viewOf(node),
        differing_settings: nodes.differingSettings.get(node.name) ?? [],
      })),
    ),
  )

const viewOf = ({ name, epoch, address, version, state, ...node }: NodeStatus) => ({
  name,
  epoch,
  address,
  version,
  state,
  live_calls: node.liveCalls,
  started_at: timeToText(node.startedAt),
  heartbeat_at: timeToText(node.heartbeatAt),
  is_this: node.isThis,
})

export type ProcessNodeView = ReturnType<typeof viewOf> & {
  readonly differing_settings: readonly string[]
}
