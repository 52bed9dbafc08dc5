/** The history of a node of a dispatcher set: what changed its state, which operator, and since when it is out. */
import { z } from 'zod'
import { timeToText } from '../../../schema/columns.ts'
import type { NodeStatus } from '../../../schema/contracts/dispatcher.ts'
import { changesOf, downSince, type HistoryReader } from './state-history.ts'
import { type Asked, count, moment } from './views.ts'

export const nodeHistoryOf = z.strictObject({
  node: z.strictObject({
    id: z.int(),
    set_id: z.int(),
    destination: z.string(),
    state: z.enum(['active', 'probing', 'inactive']),
    active_calls: count,
  }),
  down_since: moment
    .nullable()
    .describe(
      'When it went out of service first, on any node of the platform. Null: it is active.',
    ),
  down_because: z.string().nullable(),
  last_probe: z
    .strictObject({ at: moment, status: z.int(), reason: z.string() })
    .nullable()
    .describe('Status 0: no answer.'),
  changes: z
    .array(
      z.strictObject({
        at: moment,
        from: z.string(),
        to: z.string(),
        cause: z.enum(['probe', 'call', 'operator', 'reload', 'register']),
        reason: z.string(),
        by: z.string().nullable().describe('The operator, as in the audit log.'),
        seen_by: z.string().describe('The node of the platform.'),
      }),
    )
    .describe('Newest first.'),
  has_older: z.boolean().describe('The period has older changes.'),
})

export async function nodeHistory(
  reader: HistoryReader,
  { setId, node }: { readonly setId: number; readonly node: NodeStatus },
  asked: Asked,
): Promise<z.output<typeof nodeHistoryOf>> {
  const { nodeId: id, destination, state, activeCalls, lastProbe } = node
  const since = state === 'active' ? undefined : await downSince(reader, 'node', id)
  const { changes, hasOlder } = await changesOf(reader, 'node', id, asked)
  return {
    node: { id, set_id: setId, destination, state, active_calls: activeCalls },
    down_since: since === undefined ? null : timeToText(since.at),
    down_because: since?.reason ?? null,
    last_probe: lastProbe && { ...lastProbe, at: timeToText(lastProbe.at) },
    changes,
    has_older: hasOlder,
  }
}
