/** CANCEL from the network: RFC 3261 §9.2. */
import type { SipMessage } from '../../message/message.ts'
import type { Via } from '../../message/via.ts'
import type { ServerUser } from '../../transaction/context.ts'
import { serverKey } from '../../transaction/matching.ts'
import type { ApplicationEvents } from '../applications/events.ts'
import type { Identifiers } from '../identifiers.ts'
import type { Transactions } from '../transactions.ts'
import type { Arrival, InboundRequests } from './inbound-request.ts'
import { echoOf, requestText, responseText } from './message-text.ts'
import type { Responder } from './responder.ts'

interface CancelPorts {
  readonly transactions: Transactions
  readonly requests: InboundRequests
  readonly events: ApplicationEvents
  readonly responder: Responder
  readonly ids: Identifiers
}

export class CancelReceiver {
  readonly #ports: CancelPorts

  constructor(ports: CancelPorts) {
    this.#ports = ports
  }

  /**
   * Hop by hop: answered here, 200 whatever the INVITE's state. An INVITE without a final response
   * ends with 487, and its application learns of it; one that was answered is not touched (§9.2).
   */
  receive(arrival: Arrival, via: Via, now: number): void {
    const { events, requests, responder } = this.#ports
    const { request: cancel, vias, flow } = arrival
    const inviteKey = this.#keyOfInvite(cancel, via)
    if (!this.#answer(arrival, inviteKey, now)) return
    const inbound = requests.byTransaction(inviteKey)
    if (inbound === undefined) return
    inbound.cancelled()
    events.callStopped('network', 'call-canceled', cancel.text, now)
    if (inbound.forwarder) return inbound.forwarder.cancel(now)
    // Before the 487: the answer is the application's last word on its side.
    const dialogId = inbound.wasAnswered ? inbound.dialogId : ''
    responder.answer(inbound, 487, 'Request Terminated', '', now)
    const { clientId, transactionId } = inbound
    const passed = { transactionId, dialogId, text: requestText(cancel, vias) }
    events.request(clientId, passed, cancel.text, flow, now)
  }

  /** False: there is no such INVITE. */
  #answer({ request, vias, key, flow }: Arrival, inviteKey: string, now: number): boolean {
    const { transactions, ids } = this.#ports
    const invite = transactions.server(inviteKey)
    const toTag = invite?.toTag ?? ids.token()
    const user: ServerUser = {
      toTag,
      onAckTimeout: () => undefined,
      onTerminated: () => transactions.endServer(key),
    }
    const transaction = transactions.startServer(key, false, flow, user)
    const [status, reason] = invite
      ? ([200, 'OK'] as const)
      : ([481, 'Call/Transaction Does Not Exist'] as const)
    const text = responseText(echoOf(request, vias), status, reason, toTag, '')
    transaction.respond(status, text, now)
    return invite !== undefined
  }

  /**
   * §9.1 wants the very Via of the INVITE. A phone behind NAT that has learned its public address from
   * `rport` may write that one: branch, Call-ID, From tag and number still tell what it means.
   */
  #keyOfInvite(cancel: SipMessage, via: Via): string {
    const { transactions, requests } = this.#ports
    const key = serverKey(cancel, via, 'INVITE')
    if (transactions.server(key)) return key
    const likely = requests.invitedBy(cancel)
    return likely?.startsWith(`${via.branch.toLowerCase()} `) === true ? likely : key
  }
}
