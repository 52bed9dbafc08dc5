/** CANCEL from the network: RFC 3261 §9.2. */
import type { SipMessage } from '../../message/message.ts'
import type { Via } from '../../message/via.ts'
import type { ApplicationEvents } from '../applications/events.ts'
import type { Identifiers } from '../identifiers.ts'
import { serverKey, type Transactions } from '../transactions.ts'
import type { Arrival, InboundRequests } from './inbound-request.ts'
import { echoOf, requestText, responseText } from './message-text.ts'
import { noSuchCall } from './rejection.ts'
import type { Responder } from './responder.ts'

export interface CancelPorts {
  readonly transactions: Transactions
  readonly requests: InboundRequests
  readonly events: ApplicationEvents
  readonly responder: Responder
  readonly ids: Identifiers
}

/**
 * Hop by hop: answered here, 200 whatever the INVITE's state. An INVITE without a final response
 * ends with 487, and its application learns of it; one that was answered is not touched (§9.2).
 */
export function receiveCancel(ports: CancelPorts, arrival: Arrival, via: Via, now: number): void {
  const { transactions, events, requests, responder } = ports
  const { request: cancel, vias, flow } = arrival
  const inviteKey = keyOfInvite(ports, cancel, via)
  const inviteTag = transactions.tagOfInvite(inviteKey)
  // It cannot be challenged (§22.1): what has another address than the INVITE is none of its caller's.
  const from = transactions.server(inviteKey)?.flow.address ?? flow.address
  if (inviteTag === undefined || from !== flow.address)
    return void responder.refuse(arrival, noSuchCall)
  answer(ports, arrival, inviteTag, now)
  const inbound = requests.byTransaction(inviteKey)
  if (inbound === undefined) return
  events.callStopped('network', 'call-canceled', cancel.text, now)
  if (inbound.cancelled(now)) return
  // Before the 487: the answer is the application's last word on its side.
  const dialogId = inbound.wasAnswered ? inbound.dialogId : ''
  responder.answer(inbound, 487, 'Request Terminated', '', now)
  const { clientId, transactionId } = inbound
  const passed = { transactionId, dialogId, text: requestText(cancel, vias) }
  events.request(clientId, passed, cancel, flow, now)
}

/** `toTag` is our tag in the responses to the INVITE. */
function answer(
  { transactions }: CancelPorts,
  { request, vias, key, flow }: Arrival,
  toTag: string,
  now: number,
): void {
  const transaction = transactions.startServer(key, false, flow, {
    toTag,
    onAckTimeout: () => undefined,
    onTerminated: () => transactions.endServer(key),
  })
  transaction.respond(200, responseText(echoOf(request, vias), 200, 'OK', toTag, ''), now)
}

/**
 * §9.1 wants the very Via of the INVITE. A phone behind NAT that has learned its public address from
 * `rport` may write that one: branch, Call-ID, From tag and number still tell what it means.
 */
function keyOfInvite(
  { transactions, requests }: CancelPorts,
  cancel: SipMessage,
  via: Via,
): string {
  const key = serverKey(cancel, via, 'INVITE')
  if (transactions.tagOfInvite(key) !== undefined) return key
  const likely = requests.invitedBy(cancel)
  return likely?.startsWith(`${via.branch.toLowerCase()} `) === true ? likely : key
}
