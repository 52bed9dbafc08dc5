/** ACK has two natures: for a failure it belongs to the transaction, for a 2xx to the dialog (RFC 3261 §17, §13). */
import type { Flow } from '../../flow.ts'
import type { SipMessage } from '../../message/message.ts'
import { InviteServerTransaction } from '../../transaction/invite-server.ts'
import { encodeRequestEvent } from '../../wire/event.ts'
import { forwardAck } from '../proxy/forward-in-dialog.ts'
import { completeVias, messageText } from './request-text.ts'
import type { Stack } from '../stack.ts'

/** Never answered, whatever is wrong with it. */
export function receiveAck(
  stack: Stack,
  ack: SipMessage,
  key: string,
  flow: Flow,
  now: number,
): void {
  const transaction = stack.serverTransactions.get(key)
  // A sender that reuses the INVITE's branch for the ACK of a 2xx finds the transaction Accepted.
  if (transaction instanceof InviteServerTransaction && transaction.state !== 'accepted')
    return transaction.acknowledged(now)
  const dialog = stack.dialogs.ofRequest(ack)
  if (stack.ownRoutes.areGiven && dialog === undefined && ack.via !== undefined)
    return forwardAck(stack, ack, completeVias(ack, ack.via, flow), flow, now)
  const awaiting = dialog?.reliable2xx
  // None waiting: a copy, which the application has seen already.
  if (dialog === undefined || awaiting === undefined || awaiting.cseq !== ack.cseq?.number) return
  awaiting.stop()
  dialog.reliable2xx = undefined
  stack.deliver(
    dialog.clientId,
    encodeRequestEvent({
      id: stack.nextId(),
      meta: stack.networkMeta(ack.text, flow, now),
      transactionId: awaiting.transactionId,
      dialogId: dialog.id,
      text: messageText(ack),
    }),
  )
}
