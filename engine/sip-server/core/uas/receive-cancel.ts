/** CANCEL from the network: RFC 3261 §9.2. */
import type { Dialog } from '../../dialog/dialog.ts'
import type { Flow } from '../../flow.ts'
import type { SipMessage } from '../../message/message.ts'
import type { Via } from '../../message/via.ts'
import { serverKey } from '../../transaction/matching.ts'
import { NonInviteServerTransaction } from '../../transaction/non-invite-server.ts'
import { encodeRequestEvent } from '../../wire/event.ts'
import { tellStop } from '../applications/call-details.ts'
import { mergeKey, type InboundRequest, ServerEnd } from './inbound-request.ts'
import { tellGivenUp } from './reliable-provisional.ts'
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
  const inviteKey = keyOfInvite(stack, cancel, via)
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

/**
 * §9.1 wants the very Via of the INVITE. A phone behind NAT that has learned its public address from
 * `rport` may write that one: branch, Call-ID, From tag and number still tell what it means.
 */
function keyOfInvite(stack: Stack, cancel: SipMessage, via: Via): string {
  const key = serverKey(cancel, via, 'INVITE')
  if (stack.serverTransactions.has(key)) return key
  const likely = stack.merged.get(mergeKey(cancel, 'INVITE'))
  return likely?.startsWith(`${via.branch.toLowerCase()} `) === true ? likely : key
}

/**
 * §15.1.2: a BYE in an early dialog ends its INVITE, too. For the application, which has no dialog
 * yet, its caller has given up.
 */
export function endInviteByBye(stack: Stack, dialog: Dialog, bye: SipMessage, now: number): void {
  const invite = pendingInvite(stack, dialog)
  if (invite === undefined) return stack.forget(dialog)
  invite.wasCancelled = true
  tellStop(stack, 'network', 'call-canceled', bye.text, now)
  answer(stack, invite, 487, 'Request Terminated', '', now)
  tellGivenUp(stack, invite, 'SIP ;cause=487 ;text="BYE before the answer"', now)
}

/** The same for a re-INVITE that the application has not answered. It hears of the BYE. */
export function endPendingInvite(stack: Stack, dialog: Dialog, now: number): void {
  const invite = pendingInvite(stack, dialog)
  if (invite) answer(stack, invite, 487, 'Request Terminated', '', now)
}

const pendingInvite = (stack: Stack, dialog: Dialog): InboundRequest | undefined =>
  [...stack.inbound.values()].find(
    (each) => each.dialog === dialog && each.request.method === 'INVITE',
  )
