/** Responses from the network: to which request they belong, and what they do to dialogs. */
import type { Dialog } from '../../dialog/dialog.ts'
import type { Flow } from '../../flow.ts'
import { detachString } from '../../message/detach-string.ts'
import type { SipMessage } from '../../message/message.ts'
import { clientKey } from '../../transaction/matching.ts'
import { encodeResponseEvent } from '../../wire/event.ts'
import { otherFork, sendLocalBye } from '../local-bye.ts'
import { tellOutcome } from '../applications/call-details.ts'
import type { OutboundRequest } from './outbound-request.ts'
import { messageText } from '../uas/request-text.ts'
import { keepSession } from '../session/session.ts'
import { grantedSeconds, isSubscribing, keepSubscription } from '../session/subscription.ts'
import { termsOfResponse } from '../session/terms.ts'
import { confirmedDialog, formDialog, formEarlyDialog } from './form-dialog.ts'
import { acknowledgeAnswer } from './send-ack.ts'
import type { Stack } from '../stack.ts'

/** RFC 3261 §17.1.3: branch of the top Via and method of the CSeq; strays are dropped. */
export function receiveResponse(stack: Stack, response: SipMessage, flow: Flow, now: number): void {
  const branch = response.via?.branch
  if (branch === undefined) return
  const transaction = stack.clientTransactions.get(clientKey(branch, response.method))
  if (transaction?.method === response.method) transaction.receive(response, flow, now)
}

/** A response of a transaction of an application's request. */
export function handleResponse(
  stack: Stack,
  outbound: OutboundRequest,
  response: SipMessage,
  flow: Flow,
  now: number,
): void {
  const { status } = response
  if (status === 100) return handleTrying(stack, outbound, response, flow, now)
  if (status < 200) return handleProvisional(stack, outbound, response, flow, now)
  if (outbound.sent.method === 'INVITE' && status < 300)
    return handleAnswer(stack, outbound, response, flow, now)
  if (outbound.hasFinal) return
  const { dialogId } = outbound
  if (outbound.isInitial && status < 300) subscribed(stack, outbound, response, flow, now)
  tellFailure(stack, outbound, status, response.text, now)
  settleDialog(stack, outbound, response, now)
  deliver(stack, outbound, response, dialogId, flow, now)
  outbound.finished()
  endIfGone(stack, outbound, status, now)
}

/** A dialog that a subscription holds open; a NOTIFY may have begun, or even ended it before. */
function subscribed(
  stack: Stack,
  outbound: OutboundRequest,
  response: SipMessage,
  flow: Flow,
  now: number,
): void {
  const { sent, dialog } = outbound
  if (!isSubscribing(sent.method) || dialog?.state === 'terminated') return
  if (/^\s*false/i.test(response.get('Refer-Sub') ?? '')) return
  formDialog(stack, outbound, response, flow)
  if (outbound.dialog)
    keepSubscription(stack, outbound.dialog, grantedSeconds(undefined, response), now)
}

/** RFC 3261 §12.2.1.2, RFC 5057 §5.1: the peer does not know the dialog, or nobody is there. */
function endIfGone(
  stack: Stack,
  { dialog, isInitial, sent: { method } }: OutboundRequest,
  status: number,
  now: number,
): void {
  if (isInitial || dialog === undefined || dialog.state !== 'confirmed') return
  if (dialog.usage === 'subscription') {
    if (status === 481 || (status === 408 && method === 'NOTIFY')) stack.forget(dialog)
    return
  }
  const isGone = status === 481 && !hasOwnUsage.has(method)
  const isSilent = status === 408 && (method === 'INVITE' || method === 'UPDATE')
  if (isGone || isSilent) sendLocalBye(stack, dialog, 'Dialog is gone', 'tell', now)
}

/** Their 481 speaks of a subscription or of a provisional response, not of the call. */
const hasOwnUsage = new Set(['PRACK', 'REFER', 'SUBSCRIBE', 'NOTIFY', 'BYE'])

/**
 * §8.1.3.4: Trying is between the hops and forms no dialog; as from drachtio-server, no application by
 * TCP hears of it. One in this process does, for a new INVITE: to move on from a silent destination
 * it must know which one is not silent.
 */
function handleTrying(
  stack: Stack,
  outbound: OutboundRequest,
  response: SipMessage,
  flow: Flow,
  now: number,
): void {
  if (!outbound.isInitial || outbound.sent.method !== 'INVITE' || outbound.hasFinal) return
  if (!stack.applications.isInProcess(outbound.clientId)) return
  deliver(stack, outbound, response, outbound.dialogId, flow, now)
}

function handleProvisional(
  stack: Stack,
  outbound: OutboundRequest,
  response: SipMessage,
  flow: Flow,
  now: number,
): void {
  if (outbound.hasFinal || isRepeatedReliable(outbound, response)) return
  if (outbound.isInitial && outbound.sent.method === 'INVITE' && response.toTag !== '')
    formEarlyDialog(stack, outbound, response, flow)
  timeCall(stack, outbound, response.status, now)
  noteEarlyAnswer(outbound, response)
  deliver(stack, outbound, response, outbound.dialogId, flow, now)
}

function timeCall(stack: Stack, outbound: OutboundRequest, status: number, now: number): void {
  if (outbound.isInitial && outbound.sent.method === 'INVITE')
    stack.callTimes.outbound.responded(outbound, status, now)
}

/** RFC 3262 §4: a reliable provisional that came before, or out of order, is not passed on. */
function isRepeatedReliable(outbound: OutboundRequest, response: SipMessage): boolean {
  const value = response.get('RSeq')
  const rseq = value === undefined ? Number.NaN : Number(value)
  if (Number.isNaN(rseq)) return false
  outbound.lastRSeq ??= new Map()
  const last = outbound.lastRSeq.get(response.toTag)
  if (last !== undefined && rseq !== last + 1) return true
  outbound.lastRSeq.set(detachString(response.toTag), rseq)
  return false
}

/** Which PRACK belongs to which branch, and whether the offer of the INVITE is answered. */
function noteEarlyAnswer({ dialog }: OutboundRequest, response: SipMessage): void {
  if (dialog === undefined) return
  const branch = dialog.branchOf(response.toTag) ?? dialog
  if (response.has('RSeq')) branch.unacknowledgedRSeq = Number(response.get('RSeq'))
  if (response.bodyStart < response.text.length) branch.hasEarlyAnswer = true
}

/** A 2xx to an INVITE: the first one counts, its copies are acknowledged again, other forks ended. */
function handleAnswer(
  stack: Stack,
  outbound: OutboundRequest,
  response: SipMessage,
  flow: Flow,
  now: number,
): void {
  if (outbound.answeredTag === undefined) {
    outbound.answeredTag = response.toTag
    if (outbound.hasFinal) return endFork(stack, outbound, response, flow, now)
    if (outbound.isInitial) {
      tellOutcome(stack, 'network', 'uac', response.status, response.text, now)
      timeCall(stack, outbound, response.status, now)
      formDialog(stack, outbound, response, flow)
    } else outbound.dialog?.refreshTarget(response)
    if (outbound.dialog) {
      stack.answered.set(outbound.dialog.id, outbound)
      refreshed(stack, outbound, outbound.dialog, response, now)
    }
    deliver(stack, outbound, response, outbound.dialogId, flow, now)
    return outbound.finished()
  }
  if (response.toTag !== outbound.answeredTag) return endFork(stack, outbound, response, flow, now)
  if (outbound.ack) stack.send(outbound.ack.text, outbound.ack.flow, '')
}

/** RFC 4028 §7.2: a 2xx to what may refresh a session. */
function refreshed(
  stack: Stack,
  { sessionSeconds, sent }: OutboundRequest,
  dialog: Dialog,
  response: SipMessage,
  now: number,
): void {
  if (sessionSeconds === undefined && !response.has('Session-Expires')) return
  const terms = termsOfResponse(response, sessionSeconds, stack.options.minSessionSeconds)
  const localSdp = sent.text.slice(sent.text.indexOf('\r\n\r\n') + 4)
  keepSession(stack, dialog, terms, { peer: response, localSdp }, now)
}

/** §13.2.2.4: an answer of another fork, or after the application was told of a failure. */
export function endFork(
  stack: Stack,
  outbound: OutboundRequest,
  response: SipMessage,
  flow: Flow,
  now: number,
): void {
  const dialog = confirmedDialog(outbound, response, flow)
  const kept = outbound.ack
  acknowledgeAnswer(stack, outbound, dialog, '', '')
  outbound.ack = kept
  sendLocalBye(stack, dialog, otherFork, 'silent', now)
}

/** What a final response other than a 2xx to INVITE does to the dialog of its request. */
function settleDialog(
  stack: Stack,
  outbound: OutboundRequest,
  response: SipMessage,
  now: number,
): void {
  const { dialog, isInitial, sent } = outbound
  if (dialog === undefined) return
  const { status } = response
  if (sent.method === 'INVITE' && isInitial) return stack.forget(dialog)
  if (sent.method === 'UPDATE' && status < 300) {
    dialog.refreshTarget(response)
    if (dialog.state === 'confirmed') refreshed(stack, outbound, dialog, response, now)
    return
  }
  // A challenged BYE is sent again by the application; any other answer ends the dialog.
  if (sent.method === 'BYE' && status !== 401 && status !== 407) return stack.forget(dialog)
  if (dialog.usage === 'invite') return
  // RFC 6665 §4.1.2: refused, so whatever a NOTIFY has begun is over.
  if (isInitial && status >= 300) return stack.forget(dialog)
  if (sent.method === 'SUBSCRIBE' && status < 300) {
    dialog.refreshTarget(response)
    keepSubscription(stack, dialog, grantedSeconds(undefined, response), now)
  }
  if (sent.method === 'NOTIFY' && /\r\nSubscription-State:\s*terminated/i.test(sent.text))
    stack.forget(dialog)
}

function deliver(
  stack: Stack,
  outbound: OutboundRequest,
  response: SipMessage,
  dialogId: string,
  flow: Flow,
  now: number,
): void {
  stack.deliver(
    outbound.clientId,
    encodeResponseEvent({
      id: stack.nextId(),
      meta: stack.networkMeta(response.text, flow, now),
      transactionId: outbound.transactionId,
      dialogId,
      text: messageText(response),
    }),
  )
}

/** A response that no peer sent: the application must get exactly one final answer (§8.1.3.1). */
export function deliverLocalFailure(
  stack: Stack,
  outbound: OutboundRequest,
  status: number,
  reason: string,
  now: number,
): void {
  const { sent, dialogId, dialog } = outbound
  const text =
    `SIP/2.0 ${status} ${reason}\r\nVia: ${sent.via}\r\nFrom: ${sent.from}\r\nTo: ${sent.to}\r\n` +
    `Call-ID: ${sent.callId}\r\nCSeq: ${sent.cseq} ${sent.method}\r\nContent-Length: 0\r\n\r\n`
  tellFailure(stack, outbound, status, text, now)
  if (dialog && (outbound.isInitial || sent.method === 'BYE')) stack.forget(dialog)
  stack.deliver(
    outbound.clientId,
    encodeResponseEvent({
      id: stack.nextId(),
      meta: stack.networkMeta(text, outbound.flow, now),
      transactionId: outbound.transactionId,
      dialogId,
      text,
    }),
  )
  outbound.finished()
  endIfGone(stack, outbound, status, now)
}

function tellFailure(
  stack: Stack,
  { sent, isInitial, wasCancelled }: OutboundRequest,
  status: number,
  text: string,
  now: number,
): void {
  if (sent.method === 'INVITE' && isInitial && !wasCancelled)
    tellOutcome(stack, 'network', 'uac', status, text, now)
}

/** Timer M: nobody acknowledged the answer, so the peer still waits: acknowledge it and hang up. */
export function transactionEnded(stack: Stack, outbound: OutboundRequest, now: number): void {
  const { dialog } = outbound
  if (outbound.sent.method !== 'INVITE' || dialog === undefined) return
  dialog.forks = undefined
  if (stack.answered.get(dialog.id) !== outbound) return
  acknowledgeAnswer(stack, outbound, dialog, '', '')
  sendLocalBye(stack, dialog, 'ACK timeout', 'tell', now)
}
