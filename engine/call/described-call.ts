/** A live call as the API and its events show it. */
import type { ActiveCall } from '../../schema/contracts/calls.ts'
import type { LiveCall } from './call-machine/live.ts'

export function describe(call: LiveCall): ActiveCall {
  const { callUuid, callerNumber, calledNumber, startedAt } = call.start
  const { setId, node, carrier } = call.place
  return {
    callUuid,
    state: call.display,
    direction: call.direction,
    callerNumber,
    calledNumber,
    startedAt,
    answeredAt: call.answeredAt,
    stampOffsetMs: call.stampOffsetMs,
    tenantId: call.account?.tenantId ?? null,
    customerId: call.account?.customerId ?? null,
    peers: { ...call.peers },
    setId,
    node,
    instance: call.instance,
    carrier,
    transfer: call.transfer,
  }
}
