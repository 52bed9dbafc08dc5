/** Requests that an application asks for; what their responses do is in receive-response.ts. */
import { dialogKey, type Dialog } from '../../dialog/dialog.ts'
import { detachString } from '../../message/detach-string.ts'
import type { SipMessage } from '../../message/message.ts'
import { cancelOf } from '../../transaction/sent-request.ts'
import { composeInDialog, composeOutOfDialog, type Composed } from '../compose.ts'
import type { Stack } from '../stack.ts'
import { tellAttempt, tellStop } from '../applications/call-details.ts'
import { acknowledge, refuse, type AppRequest } from './command-answers.ts'
import { tagOf } from '../app-headers.ts'
import { isSubscribing } from '../session/subscription.ts'
import { branchFor } from './form-dialog.ts'
import { OutboundRequest } from './outbound-request.ts'
import { lookUp, waysOf } from './ways.ts'

/** An application's request outside any dialog. */
export function sendOutOfDialog(
  stack: Stack,
  command: AppRequest,
  message: SipMessage,
  now: number,
): void {
  const composed = composeOutOfDialog(stack, command, message)
  if ('problem' in composed) return refuse(stack, command, composed.problem)
  if (message.method === 'INVITE') tellAttempt(stack, 'application', composed.sent.text, now)
  const outbound = new OutboundRequest(stack, command.clientId, composed, undefined, now)
  const { callId, from } = composed.sent
  if (isSubscribing(message.method))
    stack.subscribing.set(detachString(dialogKey(callId, tagOf(from))), outbound)
  launch(stack, command, outbound, composed, now)
}

/** An application's request inside a dialog; its ACK takes another way (send-ack.ts). */
export function sendInDialog(
  stack: Stack,
  command: AppRequest,
  message: SipMessage,
  now: number,
): void {
  const found = stack.dialogs.find(command.dialogId)
  if (found === undefined || found.clientId !== command.clientId)
    return refuse(stack, command, 'Server error: unable to find dialog for dialog id provided')
  const dialog = branchFor(found, message)
  if (message.method === 'INVITE' && dialog.hasLocalInvite)
    return holdOrRefuse(stack, dialog, command, message)
  if (message.method === 'BYE') dialog.session?.stop()
  const composed = composeInDialog(stack, dialog, message)
  if ('problem' in composed) return refuse(stack, command, composed.problem)
  if (message.method === 'INVITE') dialog.hasLocalInvite = true
  else if (message.method === 'UPDATE') dialog.hasLocalOffer = composed.body !== ''
  else if (message.method === 'PRACK') dialog.unacknowledgedRSeq = undefined
  if (message.method === 'BYE')
    tellStop(stack, 'application', 'normal-release', composed.sent.text, now)
  const outbound = new OutboundRequest(stack, command.clientId, composed, dialog, now)
  launch(stack, command, outbound, composed, now)
}

const MAX_HELD = 4

/** The application cannot know of a refresh of the stack's own (RFC 4028): its re-INVITE comes next. */
function holdOrRefuse(
  stack: Stack,
  dialog: Dialog,
  command: AppRequest,
  message: SipMessage,
): void {
  const refuseNow = (): void =>
    refuse(stack, command, 'a re-INVITE is already in progress in this dialog')
  const isRefresh = dialog.session?.abandonRefresh !== undefined
  if (!isRefresh || dialog.held.length >= MAX_HELD) return refuseNow()
  const held = {
    send: (at: number) => sendInDialog(stack, command, message, at),
    refuse: refuseNow,
  }
  dialog.held = [...dialog.held, held]
}

/** CANCEL of an INVITE that the application has sent. */
export function cancelOutbound(
  stack: Stack,
  command: AppRequest,
  lines: string,
  now: number,
): void {
  const outbound = stack.outbound.get(command.transactionId)
  if (
    outbound === undefined ||
    outbound.clientId !== command.clientId ||
    outbound.sent.method !== 'INVITE' ||
    !outbound.isInitial
  )
    return refuse(
      stack,
      command,
      `unable to cancel unknown transaction id: ${command.transactionId}`,
    )
  outbound.cancel(lines, now)
  const text = cancelOf(outbound.sent, lines)
  tellStop(stack, 'application', 'call-canceled', text, now)
  acknowledge(stack, command, outbound.flow, stack.newTransactionId(), { text }, now)
}

/** The application learns the transaction id before anything can come back under it. */
function launch(
  stack: Stack,
  command: AppRequest,
  outbound: OutboundRequest,
  composed: Composed,
  now: number,
): void {
  stack.outbound.set(outbound.transactionId, outbound)
  const { question } = composed
  if (question === undefined) outbound.aim(waysOf(stack, composed, [composed.flow], now))
  const { sent, flow } = outbound
  acknowledge(stack, command, flow, outbound.transactionId, sent, now)
  if (question === undefined) return outbound.start(now)
  lookUp(stack, question, (flows, later) => {
    outbound.aim(waysOf(stack, composed, flows, later))
    outbound.start(later)
  })
}
