/** The dialogs that responses to a request of ours begin: one for each branch that answers (RFC 3261 §12.1.2). */
import { Dialog } from '../../dialog/dialog.ts'
import { isReliable, type Flow } from '../../flow.ts'
import { detachString } from '../../message/detach-string.ts'
import type { SipMessage } from '../../message/message.ts'
import { tagOf } from '../app-headers.ts'
import type { Stack } from '../stack.ts'
import { isBehindNat } from './behind-nat.ts'
import type { OutboundRequest } from './outbound-request.ts'

/** A peer that invents tags must not fill the memory. */
const MAX_FORKS = 16

/** A provisional response with a tag. Other branches get an early dialog each, under the same id. */
export function formEarlyDialog(
  stack: Stack,
  outbound: OutboundRequest,
  response: SipMessage,
  flow: Flow,
): void {
  const first = outbound.dialog
  if (first === undefined) {
    outbound.dialog = dialogFrom(outbound, response, flow)
    return stack.dialogs.add(outbound.dialog)
  }
  const { toTag } = response
  if (first.branchOf(toTag)) return
  first.forks ??= new Map()
  if (first.forks.size < MAX_FORKS)
    first.forks.set(detachString(toTag.toLowerCase()), dialogFrom(outbound, response, flow))
}

/** A 2xx; the route set is taken again from it (§13.2.2.4). */
export function formDialog(
  stack: Stack,
  outbound: OutboundRequest,
  response: SipMessage,
  flow: Flow,
): void {
  const before = outbound.dialog
  const dialog = confirmedDialog(outbound, response, flow)
  if (before) {
    stack.dialogs.remove(before)
    before.ended()
    // Until the transaction ends, a branch that has lost may still answer.
    if (before.remoteTag !== dialog.remoteTag) before.forks ??= new Map()
    before.forks?.set(before.remoteTag.toLowerCase(), before)
    dialog.forks = before.forks
  }
  outbound.dialog = dialog
  stack.dialogs.add(dialog)
}

/** In no table yet. */
export function confirmedDialog(
  outbound: OutboundRequest,
  response: SipMessage,
  flow: Flow,
): Dialog {
  const dialog = dialogFrom(outbound, response, flow)
  dialog.state = 'confirmed'
  const early = outbound.dialog?.branchOf(response.toTag)
  if (early) {
    // What was sent in the early dialog (PRACK, UPDATE) has used up numbers.
    dialog.localCseq = early.localCseq
    dialog.remoteCseq = early.remoteCseq
  }
  return dialog
}

function dialogFrom(outbound: OutboundRequest, response: SipMessage, flow: Flow): Dialog {
  const { sent } = outbound
  const routeSet = response.list('Record-Route').toReversed()
  return new Dialog({
    role: 'uac',
    usage: sent.method === 'INVITE' ? 'invite' : 'subscription',
    clientId: outbound.clientId,
    callId: sent.callId,
    local: sent.from,
    remote: response.get('To') ?? sent.to,
    localTag: tagOf(sent.from),
    remoteTag: response.toTag,
    localCseq: sent.cseq,
    remoteCseq: -1,
    routeSet,
    // A 2xx without Contact is against §12.1.1: the INVITE's own target is the best guess.
    remoteTarget: response.contact?.uri ?? sent.uri,
    contact: outbound.contact,
    flow,
    isFlowBound:
      isReliable(flow.listener.protocol) ||
      (routeSet.length === 0 && isBehindNat(sent, response, flow)),
  })
}

/** The early dialog in which an application's request is meant: all branches have the same id. */
export function branchFor(dialog: Dialog, message: SipMessage): Dialog {
  if (dialog.forks === undefined || dialog.state !== 'early') return dialog
  const named = dialog.branchOf(tagOf(message.get('To') ?? ''))
  if (named) return named
  if (message.method !== 'PRACK') return dialog
  const rseq = Number.parseInt(message.get('RAck') ?? '', 10)
  const branches = [dialog, ...dialog.forks.values()]
  return branches.find(({ unacknowledgedRSeq }) => unacknowledgedRSeq === rseq) ?? dialog
}
