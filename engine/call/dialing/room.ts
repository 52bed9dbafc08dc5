/** Whether a destination that takes so many calls at once takes one more: a carrier, a node of a set, an AI agent. */
import type { Dispatcher } from '../../dispatcher/dispatcher.ts'
import type { Routing } from '../../routing/routing.ts'
import { noCandidate, refused, type Refusal } from '../cdr/end-reason.ts'
import type { Destination } from '../inbound/route.ts'

export interface RoomDeps {
  readonly routing: Pick<Routing, 'admitCarrierCall' | 'admitAgentCall'>
  readonly dispatcher: Pick<Dispatcher, 'admitCall'>
}

/** A destination that is asked before it is tried. */
export type Limited = Extract<Destination, { readonly kind: 'gateway' | 'node' | 'agent' }>

/** `tell` hears whether the call is to be counted there in that turn of the event loop. Other nodes may have to be asked before. */
export function takeRoom(
  destination: Limited,
  isEmergency: boolean,
  deps: RoomDeps,
  done: (isTaken: boolean) => void,
): void {
  const taken = requestRoom(destination, isEmergency, deps)
  if (typeof taken === 'boolean') done(taken)
  else void taken.then(done)
}

function requestRoom(
  destination: Limited,
  isEmergency: boolean,
  { routing, dispatcher }: RoomDeps,
): boolean | Promise<boolean> {
  switch (destination.kind) {
    case 'node':
      return dispatcher.admitCall(destination.nodeId)
    case 'agent':
      return routing.admitAgentCall(destination.agentId)
    case 'gateway':
    default:
      return routing.admitCarrierCall(destination.carrierId, isEmergency)
  }
}

/** What the caller gets when no other destination is left. */
export function fullEnd(destination: Limited, retryAfterSeconds: number): Refusal {
  const headers = { 'Retry-After': String(retryAfterSeconds) }
  const { status, reason } = noCandidate
  switch (destination.kind) {
    case 'node':
      return refused(status, reason, 'node_limit', headers, `node ${destination.nodeId}`)
    case 'agent':
      return refused(503, UNAVAILABLE, 'agent_limit', headers, `agent ${destination.agentId}`)
    case 'gateway':
    default:
      return refused(503, UNAVAILABLE, 'carrier_limit', headers, `carrier ${destination.carrierId}`)
  }
}

const UNAVAILABLE = 'Service Unavailable'
