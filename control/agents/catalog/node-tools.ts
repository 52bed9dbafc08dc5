/** The processes of the installation. */
import { z } from 'zod'
import { timeToText } from '../../../schema/columns.ts'
import { ApiError } from '../../http/api-error.ts'
import { defineTool } from '../tool.ts'
import { MAX_ROWS, time } from './shapes.ts'

const node = z.object({
  name: z.string(),
  state: z
    .enum(['starting', 'serving', 'draining', 'stopped', 'lost'])
    .describe('lost: not heard for 10 s.'),
  epoch: z.int().describe('Grows with each start.'),
  live_calls: z.int(),
  heartbeat_at: time,
  version: z.string(),
  is_this: z.boolean().describe('It answers this call.'),
  differing_settings: z
    .array(z.string())
    .describe('Settings in which it differs from another node, and must not.'),
})

export const listNodes = defineTool({
  name: 'list_nodes',
  title: 'List nodes',
  description:
    'Lists the nodes of this platform: the processes that share its database. For PBX nodes use get_dispatcher_status.',
  effect: 'reads',
  scopes: ['metrics:read'],
  input: z.strictObject({}),
  output: z.object({ nodes: z.array(node).describe(`At most ${MAX_ROWS}.`) }),
  run: (_, { nodes, principal: { tenantId } }) => {
    if (tenantId !== null)
      throw new ApiError(403, 'forbidden', 'The nodes of the platform are shown to its own keys')
    const listed = nodes.list().slice(0, MAX_ROWS)
    return {
      nodes: listed.map(({ liveCalls, heartbeatAt, isThis, ...rest }) => ({
        name: rest.name,
        state: rest.state,
        epoch: rest.epoch,
        version: rest.version,
        live_calls: liveCalls,
        heartbeat_at: timeToText(heartbeatAt),
        is_this: isThis,
        differing_settings: [...(nodes.differingSettings.get(rest.name) ?? [])],
      })),
    }
  },
})
