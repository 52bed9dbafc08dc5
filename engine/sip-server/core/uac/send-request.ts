/** Requests that an application asks for; what their responses do is in receive-response.ts. */
import type { Dialog } from '../../dialog/dialog.ts'
import type { SipMessage } from '../../message/message.ts'
import { cancelOf } from '../../transaction/sent-request.ts'
import { composeInDialog, composeOutOfDialog, type Composed } from '../compose.ts'
import { flowsTo } from '../next-hop.ts'
import type { Stack } from '../stack.ts'
import { acknowledge, refuse, type AppRequest } from './command-answers.ts'
import { OutboundRequest } from './outbound-request.ts'
import { waysOf } from './ways.ts'

/** An application's request outside any dialog. */
export function sendOutOfDialog(
  stack: Stack,
  command: AppRequest,
  message: SipMessage,
  now: number,
): void {
  const composed = composeOutOfDialog(stack, command, message)
  if ('problem' in composed) return refuse(stack, command, composed.problem)
  const outbound = new OutboundRequest(stack, command.clientId, composed, undefined)
  launch(stack, command, outbound, composed, now)
}

/** An application's request inside a dialog; its ACK takes another way (send-ack.ts). */
export function sendInDialog(
  stack: Stack,
  command: AppRequest,
  message: SipMessage,
  now: number,
): void {
  const dialog = stack.dialogs.find(command.dialogId)
  if (dialog === undefined || dialog.clientId !== command.clientId)
    return refuse(stack, command, 'Server error: unable to find dialog for dialog id provided')
  if (message.method === 'INVITE' && dialog.hasLocalInvite)
    return holdOrRefuse(stack, dialog, command, message)
  if (message.method === 'BYE') dialog.session?.stop()
  const composed = composeInDialog(stack, dialog, message)
  if ('problem' in composed) return refuse(stack, command, composed.problem)
  if (message.method === 'INVITE') dialog.hasLocalInvite = true
  const outbound = new OutboundRequest(stack, command.clientId, composed, dialog)
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
  const sent = { ...outbound.sent, method: 'CANCEL', text: cancelOf(outbound.sent, lines) }
  const toTell = { sent, contact: '', body: '' }
  acknowledge(stack, command, outbound.flow, stack.newTransactionId(), toTell, now)
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
  const { question, body } = composed
  if (question === undefined) outbound.aim(waysOf(stack, composed, [composed.flow], now))
  const { sent, contact, flow } = outbound
  acknowledge(stack, command, flow, outbound.transactionId, { sent, contact, body }, now)
  if (question === undefined) return outbound.start(now)
  stack.resolve(question, (targets, later) => {
    const flows = stack.avoided.sorted(
      flowsTo(stack.options.listeners(), question.host, targets),
      later,
    )
    outbound.aim(waysOf(stack, composed, flows, later))
    outbound.start(later)
  })
}
