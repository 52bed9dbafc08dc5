/** Tools for live calls: list them, hang one up. */
import { z } from 'zod'
import { directions } from '../../../schema/contracts/field-values.ts'
import { timeToText } from '../../../schema/columns.ts'
import type { ActiveCall } from '../../../schema/contracts/calls.ts'
import { dataOf } from '../../nodes/answer-data.ts'
import type { AskedNodes } from '../../nodes/other-nodes.ts'
import { toolRequest } from '../tool-request.ts'
import { ApiError } from '../../http/api-error.ts'
import { defineChange } from '../change-tool.ts'
import { quoted } from '../clean.ts'
import { defineTool, type ToolUse } from '../tool.ts'
import { callUuid, MAX_ROWS, time, timeOrNull } from './shapes.ts'

/** Of the tools: states are in lower case, as those of nodes and keys. */
const states = ['dialing', 'ringing', 'early', 'active', 'held'] as const

export const liveCall = z.object({
  call_uuid: z.string(),
  state: z.enum(states),
  direction: z.enum(directions),
  caller_id_number: z.string(),
  destination_number: z.string(),
  start_stamp: time,
  answer_stamp: time.nullable(),
  duration_seconds: z.int().describe('Since the answer, or since the start if not answered.'),
  set_id: z.int().nullable(),
  node: z.string().nullable(),
  carrier: z.string().nullable(),
  customer_id: z.int().nullable(),
})

export const listActiveCalls = defineTool({
  name: 'list_active_calls',
  title: 'List live calls',
  description: `Lists the live calls, oldest first, at most ${MAX_ROWS}. total counts all matching calls.`,
  effect: 'reads',
  scopes: ['calls:read'],
  input: z.strictObject({
    state: z.enum(states).optional(),
    limit: z.int().min(1).max(MAX_ROWS).default(50),
  }),
  output: z.object({
    calls: z.array(liveCall),
    total: z.int(),
    unreachable_nodes: z
      .array(z.string())
      .optional()
      .describe('Nodes of the platform that did not answer: their calls are missing.'),
  }),
  async run({ state, limit }, use) {
    const { engine, steadyNow } = use
    const calls = engine.calls
      .list()
      .filter((call) => isVisible(call, use) && (state === undefined || stateOf(call) === state))
    const own = calls.slice(0, limit).map((call) => viewOf(call, steadyNow()))
    if (use.elsewhere === undefined) return { calls: own, total: calls.length }
    const others = await listsElsewhere(use.elsewhere, { state, limit })
    const all = [...own, ...others.calls].toSorted((a, b) =>
      a.start_stamp < b.start_stamp ? -1 : 1,
    )
    return {
      calls: all.slice(0, limit),
      total: calls.length + others.total,
      ...(others.unreachable.length > 0 && { unreachable_nodes: [...others.unreachable] }),
    }
  },
})

/** A node of an older version writes states in upper case. */
const listedCall = liveCall.extend({ state: z.string().toLowerCase().pipe(z.enum(states)) })
const listed = z.object({ calls: z.array(listedCall).max(MAX_ROWS), total: z.int() })

/** Each node runs the tool for itself. */
async function listsElsewhere(
  elsewhere: AskedNodes,
  input: { readonly state?: string | undefined; readonly limit: number },
) {
  const { answers, unreachable } = await elsewhere.gather(toolRequest('list_active_calls', input))
  const lists = answers.flatMap((answer) => dataOf(answer, listed) ?? [])
  return {
    calls: lists.flatMap(({ calls }) => calls),
    total: lists.reduce((sum, { total }) => sum + total, 0),
    unreachable,
  }
}

export const hangUpCall = defineChange({
  name: 'hangup_call',
  title: 'Hang up a call',
  description:
    'Hangs up one live call on both legs. This cannot be undone. With dry_run true, it only returns the call that would end. ' +
    'Do a dry run first, and have a person confirm it.',
  effect: 'destroys',
  reason: 'optional',
  isAboutCall: true,
  scopes: ['calls:control'],
  input: z.strictObject({
    call_uuid: callUuid,
    cause: z.int().min(1).max(127).default(16).describe('Q.850; 16 is normal clearing.'),
  }),
  output: z.object({ status: z.enum(['ending', 'would_end']), call: liveCall }),
  plan({ call_uuid: uuid, cause }, use) {
    const { engine, steadyNow } = use
    const call = findCall(uuid, use)
    if (call === undefined) throw notLive()
    const view = viewOf(call, steadyNow())
    return {
      target: { kind: 'live_call', id: uuid },
      ...{ before: view.state, after: null, undo: 'none' },
      effect: `The call from ${quoted(call.callerNumber)} to ${quoted(call.calledNumber)} ends for both parties.`,
      affected: { live_calls: 1 },
      preview: { status: 'would_end' as const, call: view },
      async apply() {
        switch (engine.calls.hangUp(uuid, cause)) {
          case 'ending':
            return { status: 'ending' as const, call: view }
          case 'already_ending':
            throw new ApiError(409, 'call_ending', 'The call is already ending')
          case 'not_found':
            throw notLive()
        }
      },
    }
  },
})

const notLive = (): ApiError =>
  new ApiError(
    404,
    'not_found',
    'No live call has this uuid. list_active_calls lists live calls; get_call finds ended ones',
  )

/** Returns a live call of the caller's tenant. */
export function findCall(uuid: string, use: ToolUse): ActiveCall | undefined {
  const call = use.engine.calls.find(uuid)
  return call !== undefined && isVisible(call, use) ? call : undefined
}

const isVisible = (call: ActiveCall, { principal: { tenantId } }: ToolUse): boolean =>
  tenantId === null || call.tenantId === tenantId

const stateOf = ({ state }: ActiveCall) => words[state]

const words = {
  DIALING: 'dialing',
  RINGING: 'ringing',
  EARLY: 'early',
  ACTIVE: 'active',
  HELD: 'held',
} as const

/** `now` is steady time. */
export function viewOf(call: ActiveCall, now: number) {
  const since = call.answeredAt ?? call.startedAt
  return {
    call_uuid: call.callUuid,
    state: stateOf(call),
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
