/** A live call as tools show it. */
import { z } from 'zod'
import { timeToText } from '../../schema/columns.ts'
import type { ActiveCall } from '../../schema/contracts/calls.ts'
import { directions } from '../../schema/contracts/field-values.ts'

/** States that the tools show: in lower case, like those of nodes and keys. */
export const liveStates = ['dialing', 'ringing', 'early', 'active', 'held'] as const

const time = z.string().meta({ format: 'date-time' })

export const liveCall = z.object({
  call_uuid: z.string(),
  state: z.enum(liveStates),
  direction: z.enum(directions),
  caller_id_number: z.string(),
  destination_number: z.string(),
  start_stamp: time,
  answer_stamp: time.nullable(),
  duration_seconds: z.int().describe('Since the answer, or since the start if not answered.'),
  set_id: z.int().nullable(),
  node: z.string().nullable(),
  instance: z.string().describe('The instance of Tollgate that has the call.'),
  carrier: z.string().nullable(),
  customer_id: z.int().nullable(),
})

export type LiveCallView = z.output<typeof liveCall>

export const liveStateOf = ({ state }: ActiveCall) => words[state]

const words = {
  DIALING: 'dialing',
  RINGING: 'ringing',
  EARLY: 'early',
  ACTIVE: 'active',
  HELD: 'held',
} as const

/** @param now steady time. */
export function liveCallView(call: ActiveCall, now: number): LiveCallView {
  const since = call.answeredAt ?? call.startedAt
  const stamp = (at: number) => timeToText(at + call.stampOffsetMs)
  return {
    call_uuid: call.callUuid,
    state: liveStateOf(call),
    direction: call.direction,
    caller_id_number: call.callerNumber,
    destination_number: call.calledNumber,
    start_stamp: stamp(call.startedAt),
    answer_stamp: call.answeredAt === null ? null : stamp(call.answeredAt),
    duration_seconds: Math.max(0, Math.floor((now - since) / 1_000)),
    set_id: call.setId,
    node: call.node,
    instance: call.instance,
    carrier: call.carrier,
    customer_id: call.customerId,
  }
}
