/** BYEs that the stack sends by itself; the application learns of them as `unsolicited` requests. */
import type { Dialog } from '../dialog/dialog.ts'
import type { ClientUser } from '../transaction/context.ts'
import { NonInviteClientTransaction } from '../transaction/non-invite-client.ts'
import { encodeUnsolicited } from '../wire/event.ts'
import { composeFor, flowInDialog } from './compose.ts'
import { tellStop } from './applications/call-details.ts'
import type { Stack } from './stack.ts'

/** Its BYE ends no call. */
export const otherFork = 'Call completed elsewhere'
export const sessionExpired = 'Session timer expired'

const reasonFor = (text: string) =>
  text === sessionExpired ? 'session-expired' : 'system-initiated-termination'

const deaf: Omit<ClientUser, 'onTerminated'> = {
  onResponse: () => undefined,
  onFailure: () => undefined,
}

/** RFC 3261 §13.3.1.4: no ACK for our 2xx within 64·T1. */
export function endUnacknowledged(stack: Stack, dialog: Dialog, now: number): void {
  dialog.reliable2xx = undefined
  sendLocalBye(stack, dialog, 'ACK timeout', 'tell', now)
}

/** Ends a dialog from our side. `tell`: its application still believes in it. */
export function sendLocalBye(
  stack: Stack,
  dialog: Dialog,
  text: string,
  audience: 'tell' | 'silent',
  now: number,
): void {
  if (dialog.state === 'terminated') return
  stack.forget(dialog)
  // Only calls end by BYE; a subscription is not asked for any more, and so lapses.
  if (dialog.usage !== 'invite') return
  // A peer that cannot be reached by it ends by its own timers.
  const flow = flowInDialog(stack, dialog)
  dialog.localCseq += 1
  const lines = `Reason: SIP ;cause=200 ;text="${text}"\r\n`
  const sent = composeFor(stack, dialog, 'BYE', dialog.localCseq, flow, { lines, body: '' })
  const onTerminated = (): void => stack.clientTransactions.remove(sent.branch)
  const user = { ...deaf, onTerminated }
  const transaction = new NonInviteClientTransaction(sent, sent.branch, flow, user, stack, now)
  stack.clientTransactions.add(sent.branch, transaction)
  if (text !== otherFork) tellStop(stack, 'application', reasonFor(text), sent.text, now)
  if (audience === 'silent') return
  const meta = stack.applicationMeta(sent.text, flow, now)
  const event = { id: stack.nextId(), meta, dialogId: dialog.id, text: sent.text }
  stack.deliver(dialog.clientId, encodeUnsolicited(event))
}
