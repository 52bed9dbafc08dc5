/** A live call of another node, as this one sees it and ends it, for a caller that it has admitted itself. */
import { z } from 'zod'
import { type LiveCall, liveCall } from '../nodes/live-call.ts'
import { bodyOf } from '../nodes/answer-data.ts'
import type { AskedNodes } from '../nodes/other-nodes.ts'
import type { Peer } from '../nodes/peer.ts'

export interface CallElsewhere {
  readonly call: LiveCall
  readonly peer: Peer
}

/** Undefined: no node has it for this tenant. 'unknown': none that answered has it. */
export async function callElsewhere(
  callUuid: string,
  tenantId: number | null,
  elsewhere: AskedNodes | undefined,
): Promise<CallElsewhere | 'unknown' | undefined> {
  const answer = await elsewhere?.answered({ kind: 'live_call', callUuid, tenantId })
  if (answer === undefined || answer === 'unknown') return answer
  const call = bodyOf(answer, liveCall)
  return call === undefined ? 'unknown' : { call, peer: answer.peer }
}

/** Of the engine there. */
export const hangUpAnswer = z.object({ result: z.enum(['ending', 'not_found', 'already_ending']) })

/** Undefined: the node may have ended it, or not. */
export async function hangUpElsewhere(
  { call, peer }: CallElsewhere,
  { cause, tenantId }: { readonly cause: number; readonly tenantId: number | null },
  elsewhere: AskedNodes,
): Promise<z.output<typeof hangUpAnswer>['result'] | undefined> {
  const asked = { kind: 'hang_up', callUuid: call.call_uuid, tenantId, cause } as const
  const answer = await elsewhere.tell(peer, asked)
  return answer && bodyOf(answer, hangUpAnswer)?.result
}
