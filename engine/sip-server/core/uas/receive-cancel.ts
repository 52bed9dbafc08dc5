/** CANCEL from the network: RFC 3261 §9.2. */
import type { Flow } from '../../flow.ts'
import type { SipMessage } from '../../message/message.ts'
import type { Via } from '../../message/via.ts'
import { serverKey } from '../../transaction/matching.ts'
import { NonInviteServerTransaction } from '../../transaction/non-invite-server.ts'
import { encodeRequestEvent } from '../../wire/event.ts'
import { tellStop } from '../applications/call-details.ts'
import { ServerEnd } from './inbound-request.ts'
import { requestText, type Vias } from './request-text.ts'
import { echoOf, responseText } from './response-text.ts'
import { answer } from './send-response.ts'
import type { Stack } from '../stack.ts'

/**
 * Hop by hop: answered here, 200 whatever the INVITE's state. An INVITE without a final response
 * ends with 487, and its application learns of it; one that was answered is not touched (§9.2).
 */
export function receiveCancel(
  stack: Stack,
  cancel: SipMessage,
  via: Via,
  arrival: { readonly vias: Vias; readonly key: string; readonly flow: Flow },
  now: number,
): void {
  const inviteKey = serverKey(cancel, via, 'INVITE')
  const invite = stack.serverTransactions.get(inviteKey)
  const end = new ServerEnd(stack, arrival.key, invite?.toTag ?? stack.options.token())
  const transaction = new NonInviteServerTransaction(arrival.key, arrival.flow, end, stack)
  stack.serverTransactions.set(arrival.key, transaction)
  const reply = (status: number, reason: string): void =>
    transaction.respond(
      status,
      responseText(echoOf(cancel, arrival.vias), status, reason, end.toTag, ''),
      now,
    )
  if (invite === undefined) return reply(481, 'Call/Transaction Does Not Exist')
  reply(200, 'OK')
  const inbound = stack.inboundByKey.get(inviteKey)
  if (inbound === undefined) return
  inbound.wasCancelled = true
  tellStop(stack, 'network', 'call-canceled', cancel.text, now)
  if (inbound.forwardedBy) return inbound.forwardedBy.cancel(now)
  // Before the 487: the answer is the application's last word on its side.
  const dialogId = inbound.wasAnswered ? inbound.dialogId : ''
  answer(stack, inbound, 487, 'Request Terminated', '', now)
  stack.deliver(
    inbound.clientId,
    encodeRequestEvent({
      id: stack.nextId(),
      meta: stack.networkMeta(cancel.text, arrival.flow, now),
      transactionId: inbound.transactionId,
      dialogId,
      text: requestText(cancel, arrival.vias),
    }),
  )
}
