/** Live calls: what is going on now, and the end of one by hand. */
import { z } from 'zod'
import { timeToText } from '../../../schema/columns.ts'
import type { ActiveCall } from '../../../schema/contracts/calls.ts'
import { ApiError } from '../../http/api-error.ts'
import { defineTool, type ToolUse } from '../tool.ts'
import { callUuid, MAX_ROWS, time, timeOrNull } from './shapes.ts'

const states = ['DIALING', 'RINGING', 'EARLY', 'ACTIVE', 'HELD'] as const

export const liveCall = z.object({
  call_uuid: z.string(),
  state: z.enum(states),
  direction: z.enum(['inbound', 'outbound', 'internal']),
  caller_id_number: z.string(),
  destination_number: z.string(),
  start_stamp: time,
  answer_stamp: time.nullable(),
  duration_seconds: z.int().describe('Since the answer, or since the start before it.'),
  set_id: z.int().nullable(),
  node: z.string().nullable(),
  carrier: z.string().nullable(),
  customer_id: z.int().nullable(),
})

export const listActiveCalls = defineTool({
  name: 'list_active_calls',
  title: 'List live calls',
  description: `Lists the calls that are going on now, oldest first, at most ${MAX_ROWS}; total counts all that match.`,
  effect: 'reads',
  scopes: ['calls:read'],
  input: z.strictObject({
    state: z.enum(states).optional(),
    limit: z.int().min(1).max(MAX_ROWS).default(50),
  }),
  output: z.object({ calls: z.array(liveCall), total: z.int() }),
  run({ state, limit }, use) {
    const { engine, steadyNow } = use
    const calls = engine.calls
      .list()
      .filter((call) => isVisible(call, use) && (state === undefined || call.state === state))
    return {
      calls: calls.slice(0, limit).map((call) => viewOf(call, steadyNow())),
      total: calls.length,
    }
  },
})

export const hangUpCall = defineTool({
  name: 'hangup_call',
  title: 'Hang up a call',
  description:
    'Ends one live call on both sides; it cannot be undone. With dry_run true it only tells which call would end. ' +
    'Do that first, and have a person confirm it.',
  effect: 'destroys',
  scopes: ['calls:control'],
  input: z.strictObject({
    call_uuid: callUuid,
    cause: z.int().min(1).max(127).default(16).describe('Q.850; 16 is normal clearing.'),
    dry_run: z.boolean().default(false).describe('True: nothing is ended.'),
  }),
  output: z.object({
    status: z.enum(['ending', 'would_end']),
    dry_run: z.boolean(),
    call: liveCall,
  }),
  run({ call_uuid: uuid, cause, dry_run }, use) {
    const { engine, steadyNow } = use
    const call = findCall(uuid, use)
    if (call === undefined) throw notLive()
    const view = viewOf(call, steadyNow())
    if (dry_run) return { status: 'would_end' as const, dry_run, call: view }
    switch (engine.calls.hangUp(uuid, cause)) {
      case 'ending':
        use.changed({ before: view, after: null })
        return { status: 'ending' as const, dry_run, call: view }
      case 'already_ending':
        throw new ApiError(
          409,
          'call_ending',
          'The call is ending already: there is nothing left to do',
        )
      case 'not_found':
        throw notLive()
    }
  },
})

const notLive = (): ApiError =>
  new ApiError(
    404,
    'not_found',
    'No live call has this uuid. list_active_calls shows the live ones, get_call finds one that has ended',
  )

/** A live call of the asker's tenant. */
export function findCall(uuid: string, use: ToolUse): ActiveCall | undefined {
  const call = use.engine.calls.find(uuid)
  return call !== undefined && isVisible(call, use) ? call : undefined
}

const isVisible = (call: ActiveCall, { principal: { tenantId } }: ToolUse): boolean =>
  tenantId === null || call.tenantId === tenantId

/** `now` by the steady clock. */
export function viewOf(call: ActiveCall, now: number) {
  const since = call.answeredAt ?? call.startedAt
  return {
    call_uuid: call.callUuid,
    state: call.state,
    direction: call.direction,
    caller_id_number: call.callerNumber,
    destination_number: call.calledNumber,
    start_stamp: timeToText(call.startedAt + call.stampOffsetMs),
    answer_stamp: timeOrNull(
      call.answeredAt === null ? null : call.answeredAt + call.stampOffsetMs,
    ),
    duration_seconds: Math.max(0, Math.floor((now - since) / 1_000)),
    set_id: call.setId,
    node: call.node,
    carrier: call.carrier,
    customer_id: call.customerId,
  }
}
