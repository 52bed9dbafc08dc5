/** Requests from the network: repeated? in a dialog? a CANCEL? else new, and for an application. */
import type { Dialog } from '../../dialog/dialog.ts'
import { defaultPort, type Flow } from '../../flow.ts'
import { checkRequest } from '../../message/check.ts'
import type { SipMessage } from '../../message/message.ts'
import type { Via } from '../../message/via.ts'
import { forwardInDialog, nextStepOf } from '../proxy/forward-in-dialog.ts'
import { serverKey } from '../../transaction/matching.ts'
import { dialogOfEarlyNotify, notified } from '../session/subscription.ts'
import { encodeRequestEvent } from '../../wire/event.ts'
import { tellAttempt, tellStop } from '../applications/call-details.ts'
import { chooseApplication } from '../applications/choose-application.ts'
import { InboundRequest, mergeKey, spiralKey } from './inbound-request.ts'
import { objectionTo } from './objection.ts'
import { overlapOf } from './overlap.ts'
import { receiveAck } from './receive-ack.ts'
import { endInviteByBye, endPendingInvite, receiveCancel } from './receive-cancel.ts'
import { takePrack } from './reliable-provisional.ts'
import { answer, answerStateless, refuseStateless } from './send-response.ts'
import { completeVias, requestText, type Vias } from './request-text.ts'
import type { Stack } from '../stack.ts'

/** Methods that this server understands; others get 501 (RFC 3261 §8.2.1 and §21.5.2). */
const knownMethods = new Set([
  'INVITE',
  'ACK',
  'BYE',
  'CANCEL',
  'OPTIONS',
  'REGISTER',
  'UPDATE',
  'PRACK',
  'INFO',
  'REFER',
  'MESSAGE',
  'NOTIFY',
  'SUBSCRIBE',
  'PUBLISH',
])

export function receiveRequest(stack: Stack, request: SipMessage, flow: Flow, now: number): void {
  const via = request.via
  if (via === undefined) return
  const key = serverKey(request, via, request.method)
  if (request.method === 'ACK') return receiveAck(stack, request, key, flow, now)
  const running = stack.serverTransactions.get(key)
  if (running) return running.repeated(now)

  const vias = completeVias(request, via, flow)
  const responseFlow = returnFlow(via, flow)
  // §21.5.4, before anything is looked at that a refusal does not need.
  if (request.method === 'INVITE' && stack.options.refusesCall?.(request, flow) === true)
    return answerStateless(stack, request, vias, responseFlow, overloaded)
  const fault = checkRequest(request, flow.listener.protocol)
  if (fault) {
    if (fault.status !== 416) stack.traffic.faulty.requests += 1
    return answerStateless(stack, request, vias, responseFlow, fault)
  }
  if (request.method === 'CANCEL')
    return receiveCancel(stack, request, via, { vias, key, flow: responseFlow }, now)
  accept(stack, request, { vias, key, flow: responseFlow, source: flow }, now)
}

/** A caller that obeyed a longer time would leave us idle as soon as a part of the load is refused. */
const overloaded = { status: 503, reason: 'Service Unavailable', lines: 'Retry-After: 1\r\n' }

interface Arrival {
  readonly vias: Vias
  readonly key: string
  readonly flow: Flow
  readonly source: Flow
}

function accept(stack: Stack, request: SipMessage, arrival: Arrival, now: number): void {
  const refuse = (status: number, reason: string, lines = ''): void =>
    answerStateless(stack, request, arrival.vias, arrival.flow, { status, reason, lines })
  if (stack.ownRoutes.areGiven && request.toTag !== '' && forward(stack, request, arrival, now))
    return
  if (!knownMethods.has(request.method))
    return refuse(501, 'Not Implemented', `Allow: ${allowed(stack)}\r\n`)
  const objection = objectionTo(request, stack.options.minSessionSeconds)
  if (objection) return refuse(objection.status, objection.reason, objection.lines)

  if (request.toTag !== '') return acceptInDialog(stack, request, arrival, now)
  // §12.2.2 and RFC 3262 §3: these exist only in dialogs.
  if (request.method === 'BYE' || request.method === 'UPDATE' || request.method === 'PRACK')
    return refuse(481, 'Call/Transaction Does Not Exist')
  // §8.2.2.2: the same request by another way.
  const merge = mergeKey(request)
  const isLoop = stack.hasForwarded && stack.merged.has(spiralKey(merge, request.uri))
  if (isLoop || stack.merged.has(merge)) return refuse(482, 'Loop Detected')
  // §8.1.1.8: without a Contact there is no way back into the dialog.
  if (request.method === 'INVITE' && !request.has('Contact'))
    return refuse(400, 'Missing Contact Header')

  // §21.5.4; requests in dialogs were let through above: a full house must be able to empty itself.
  if (stack.isFull) {
    if (request.method === 'INVITE') stack.traffic.refusedWhenFull += 1
    return refuse(503, 'Service Unavailable', 'Retry-After: 5\r\n')
  }
  const chosen = chooseApplication(stack, request, arrival.source)
  if (request.method === 'INVITE') tellAttempt(stack, 'network', request.text, now)
  if (chosen.kind !== 'application') return refuseUntaken(stack, request, arrival, chosen.kind, now)
  const { clientId } = chosen
  stack.merged.set(merge, arrival.key)
  const inbound = begin(stack, request, arrival, { clientId, dialog: undefined }, now)
  stack.deliver(
    clientId,
    encodeRequestEvent({
      id: stack.nextId(),
      meta: stack.networkMeta(request.text, arrival.source, now),
      transactionId: inbound.transactionId,
      dialogId: '',
      local: arrival.source.listener,
      text: requestText(request, arrival.vias),
    }),
  )
}

/** A request of a call that was forwarded, and in which this server stayed. */
function forward(stack: Stack, request: SipMessage, arrival: Arrival, now: number): boolean {
  const step = nextStepOf(stack, request, arrival.source)
  if (step === undefined) return false
  if (step.kind === 'forward') {
    const inbound = begin(stack, request, arrival, { clientId: NOBODY, dialog: undefined }, now)
    forwardInDialog(stack, inbound, step, now)
  } else {
    const tooManyHops = { status: 483, reason: 'Too Many Hops' }
    answerStateless(stack, request, arrival.vias, arrival.flow, tooManyHops)
  }
  return true
}

/** No application owns it. */
const NOBODY = 0

/** No application takes it; who keeps the records hears of the call all the same. */
function refuseUntaken(
  stack: Stack,
  request: SipMessage,
  arrival: Arrival,
  why: 'nobody' | 'away',
  now: number,
): void {
  const refusal =
    why === 'away'
      ? { status: 480, reason: 'Temporarily Unavailable' }
      : refusalOfUnwanted(stack, request.method)
  const text = refuseStateless(stack, request, arrival.vias, arrival.flow, refusal)
  if (request.method === 'INVITE') tellStop(stack, 'application', 'call-rejected', text, now)
}

/** No application asked for the method: all are away, or none ever wants it. */
function refusalOfUnwanted(
  stack: Stack,
  method: string,
): { readonly status: number; readonly reason: string; readonly lines: string } {
  const methods = stack.applications.methods()
  const isAnyoneThere = methods.length > 0
  return isAnyoneThere && !methods.includes(method)
    ? { status: 405, reason: 'Method Not Allowed', lines: `Allow: ${allowed(stack)}\r\n` }
    : { status: 503, reason: 'Service Unavailable', lines: 'Retry-After: 5\r\n' }
}

/** §12.2.2, RFC 3311 §5.2, RFC 6665 §4.4.1. */
const refreshesTarget = new Set(['INVITE', 'UPDATE', 'SUBSCRIBE', 'NOTIFY'])

function acceptInDialog(stack: Stack, request: SipMessage, arrival: Arrival, now: number): void {
  const dialog =
    stack.dialogs.ofRequest(request) ?? dialogOfEarlyNotify(stack, request, arrival.source)
  const refuse = (status: number, reason: string, lines = ''): void =>
    answerStateless(stack, request, arrival.vias, arrival.flow, { status, reason, lines })
  if (dialog === undefined) return refuse(481, 'Call/Transaction Does Not Exist')
  if (!stack.applications.isAuthenticated(dialog.clientId) && !takenOver(stack, dialog, request))
    return answerOrphan(stack, dialog, request, refuse)
  // §15: the called side must not end what it has not answered; the application knows of no dialog.
  if (request.method === 'BYE' && dialog.state === 'early' && dialog.role === 'uac')
    return refuse(481, 'Call/Transaction Does Not Exist')
  // §12.2.2: an older number is out of order.
  if (!dialog.acceptsCseq(request.cseq?.number ?? 0)) return refuse(500, 'Server Internal Error')
  const overlap = overlapOf(dialog, request, now)
  if (overlap) return refuse(overlap.status, overlap.reason, overlap.lines)
  if (request.method === 'PRACK' && !takePrack(dialog.reliable1xx, request, now))
    return refuse(481, 'Call/Transaction Does Not Exist')
  if (request.method === 'INVITE') dialog.hasRemoteInvite = true
  else if (request.method === 'UPDATE') dialog.hasRemoteUpdate = true
  if (refreshesTarget.has(request.method)) dialog.refreshTarget(request)
  if (request.method === 'NOTIFY') notified(stack, dialog, request, now)
  if (arrival.source.connectionId !== 0) dialog.isFlowBound = true
  if (dialog.isFlowBound) dialog.flow = arrival.source

  const { clientId } = dialog
  const inbound = begin(stack, request, arrival, { clientId, dialog }, now)
  if (request.method === 'BYE' && dialog.state === 'early' && dialog.role === 'uas') {
    answer(stack, inbound, 200, 'OK', '', now)
    return endInviteByBye(stack, dialog, request, now)
  }
  // The dialog ends when the BYE arrives (§15.1.2), whatever the application answers.
  if (request.method === 'BYE') {
    tellStop(stack, 'network', 'normal-release', request.text, now)
    stack.forget(dialog)
    if (dialog.hasRemoteInvite) endPendingInvite(stack, dialog, now)
  }
  stack.deliver(
    clientId,
    encodeRequestEvent({
      id: stack.nextId(),
      meta: stack.networkMeta(request.text, arrival.source, now),
      transactionId: inbound.transactionId,
      dialogId: dialog.id,
      text: requestText(request, arrival.vias),
    }),
  )
}

/** A subscription whose application has gone is renewed by any that asked for SUBSCRIBE. */
function takenOver(stack: Stack, dialog: Dialog, request: SipMessage): boolean {
  if (dialog.usage !== 'subscription' || dialog.role !== 'uas') return false
  const next = stack.applications.next(request.method)
  if (next === undefined) return false
  dialog.clientId = next
  return true
}

/** The application of the dialog has gone: the peer may end it, and hears that it cannot be changed. */
function answerOrphan(
  stack: Stack,
  dialog: Dialog,
  request: SipMessage,
  answerWith: (status: number, reason: string, lines?: string) => void,
): void {
  if (request.method !== 'BYE') return answerWith(503, 'Service Unavailable', 'Retry-After: 5\r\n')
  stack.forget(dialog)
  answerWith(200, 'OK')
}

function begin(
  stack: Stack,
  request: SipMessage,
  arrival: Arrival,
  owner: { readonly clientId: number; readonly dialog: Dialog | undefined },
  now: number,
): InboundRequest {
  const inbound = new InboundRequest(stack, { request, ...arrival, ...owner }, now)
  stack.inbound.set(inbound.transactionId, inbound)
  stack.inboundByKey.set(arrival.key, inbound)
  stack.serverTransactions.set(arrival.key, inbound.transaction)
  // §8.2.6.1 and §17.2.1: Trying at once, so that the peer stops repeating.
  if (request.method === 'INVITE') answer(stack, inbound, 100, 'Trying', '', now)
  return inbound
}

/**
 * RFC 3261 §18.2.2 and RFC 3581 §4: the same connection; by UDP the source address, and the source
 * port where `rport` asks for it, else the port of the Via. Of `maddr` only a group is believed: a
 * sender that names somebody else's address would have our answers, and their copies, sent there.
 */
export function returnFlow(via: Via, source: Flow): Flow {
  const { listener, address, connectionId } = source
  const port = via.port === 0 ? defaultPort(listener.protocol) : via.port
  if (connectionId !== 0) return { ...source, returnPort: port }
  if (via.params.has('rport')) return source
  const maddr = via.params.get('maddr')
  const isGroup = maddr !== undefined && isMulticast(maddr)
  return { listener, address: isGroup ? maddr : address, port, connectionId }
}

const allowed = (stack: Stack): string => {
  const inDialog = ['ACK', 'BYE', 'CANCEL', 'INFO', 'PRACK', 'UPDATE']
  return [...new Set([...stack.applications.methods(), ...inDialog])].join(', ')
}

/** 224.0.0.0/4, ff00::/8. */
const isMulticast = (address: string): boolean =>
  /^2(?:2[4-9]|3\d)(?:\.\d{1,3}){3}$/.test(address) || /^ff[\da-f]{2}:[\da-f:]*$/i.test(address)
