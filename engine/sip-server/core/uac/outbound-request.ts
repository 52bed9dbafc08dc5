/** One request of an application, until its final response; an INVITE also until its ACK is settled. */
import { dialogId as dialogIdOf, dialogKey, type Dialog } from '../../dialog/dialog.ts'
import type { Flow, Listener } from '../../flow.ts'
import { detachString } from '../../message/detach-string.ts'
import type { SipMessage } from '../../message/message.ts'
import type { ClientFailure, ClientUser } from '../../transaction/context.ts'
import type { Deadline } from '../../transaction/deadlines.ts'
import { InviteClientTransaction } from '../../transaction/invite-client.ts'
import { NonInviteClientTransaction } from '../../transaction/non-invite-client.ts'
import type { SentRequest } from '../../transaction/sent-request.ts'
import { silenceMs, transactionTimeoutMs } from '../../transaction/timers.ts'
import { tagOf } from '../app-headers.ts'
import type { TimedCall } from '../call-times.ts'
import type { Composed } from '../compose.ts'
import { isSubscribing } from '../session/subscription.ts'
import type { Stack } from '../stack.ts'
import { LostAttempt } from './lost-attempt.ts'
import {
  deliverLocalFailure,
  endFork,
  handleResponse,
  transactionEnded,
} from './receive-response.ts'
import { sendCancel } from './send-cancel.ts'
import { avoidUntil, isSamePlace, retarget } from './ways.ts'

type Timer = 'timerC' | 'cancelTimeout' | 'silence'

export class OutboundRequest implements ClientUser, TimedCall {
  readonly transactionId: string
  readonly clientId: number
  /** After the final response only what a late answer of another fork needs. */
  sent: SentRequest
  contact: string
  /** The dialog that it was sent in, or that its responses have begun. */
  dialog: Dialog | undefined
  readonly isInitial: boolean
  /** Of the session timer that it asks for. */
  readonly sessionSeconds: number | undefined
  flow: Flow
  hasFinal = false
  wasCancelled = false
  readonly startedAt: number
  hasRung = false
  /** The ACK of its 2xx as sent: repeated for every copy of the 2xx. */
  ack: { readonly text: string; readonly flow: Flow } | undefined
  /** Tag of the answer that counts; another tag in a 2xx is another fork (RFC 3261 §13.2.2.4). */
  answeredTag: string | undefined
  /** Last RSeq per tag of reliable provisionals: copies are not passed on (RFC 3262 §4). */
  lastRSeq: Map<string, number> | undefined
  readonly #stack: Stack
  #transaction: InviteClientTransaction | NonInviteClientTransaction | undefined
  #heldCancel: string | undefined
  #hasWay = true
  #timerC: Deadline<Timer> | undefined
  #cancelTimeout: Deadline<Timer> | undefined
  /** Where it may still go if this target fails (RFC 3263 §4.3); undefined: nowhere. */
  #others: readonly Flow[] | undefined
  #silence: Deadline<Timer> | undefined

  constructor(
    stack: Stack,
    clientId: number,
    composed: Composed,
    dialog: Dialog | undefined,
    now: number,
  ) {
    this.#stack = stack
    this.transactionId = stack.newTransactionId()
    this.clientId = clientId
    this.startedAt = now
    this.sent = composed.sent
    this.contact = composed.contact
    this.flow = composed.flow
    this.dialog = dialog
    this.isInitial = dialog === undefined
    this.sessionSeconds = composed.sessionSeconds
  }

  /** The dialog id that responses carry: from the first one on for what can form a dialog (1.4). */
  get dialogId(): string {
    if (this.dialog) return this.dialog.id
    const { method, callId, from } = this.sent
    if (method !== 'INVITE' && method !== 'SUBSCRIBE') return ''
    return dialogIdOf(callId, tagOf(from))
  }

  /** It will go along the first of `flows`; the others stand by. None: it cannot be sent. */
  aim(flows: readonly Flow[]): void {
    const [first, ...others] = flows
    this.#hasWay = first !== undefined
    if (others.length > 0) this.#others = others
    if (first === undefined || first === this.flow) return
    const { listener } = this.flow
    if (first.listener !== listener) this.#rewrite(listener, first.listener, this.sent.branch)
    this.flow = first
  }

  start(now: number): void {
    const { sent, flow } = this
    if (!this.#hasWay) return this.onFailure('transport', now)
    if (this.#heldCancel !== undefined) return this.#failLocally(487, 'Request Terminated', now)
    this.#transaction =
      sent.method === 'INVITE'
        ? new InviteClientTransaction(sent, flow, this, this.#stack, now)
        : new NonInviteClientTransaction(sent, sent.branch, flow, this, this.#stack, now)
    this.#stack.clientTransactions.add(sent.branch, this.#transaction)
    if (this.#others) this.#watchSilence(now)
  }

  onResponse(response: SipMessage, flow: Flow, now: number): void {
    this.#silence?.cancel()
    if (response.status === 503 && this.#others && this.#moveOn(now, response)) return
    if (this.sent.method === 'INVITE') this.#superviseInvite(response.status, now)
    handleResponse(this.#stack, this, response, flow, now)
    const isFirstFinal = response.status >= 200 && this.sent.text !== ''
    if (isFirstFinal && this.sent.method === 'INVITE') this.sent = remains(this.sent, this.dialog)
  }

  onFailure(failure: ClientFailure, now: number): void {
    if (this.#others && this.#moveOn(now)) return
    // RFC 3261 §8.1.3.1: a timeout looks like a 408, a transport error like a 503.
    if (failure === 'timeout') this.#failLocally(408, 'Request Timeout', now)
    else this.#failLocally(503, 'Service Unavailable', now)
  }

  onTerminated(now: number): void {
    this.#stack.clientTransactions.remove(this.sent.branch)
    transactionEnded(this.#stack, this, now)
  }

  onTimer(timer: Timer, now: number): void {
    if (timer === 'timerC') return this.cancel('', now)
    if (timer === 'silence') return void this.#moveOn(now)
    this.#stack.clientTransactions.remove(this.sent.branch)
    this.#failLocally(487, 'Request Terminated', now)
  }

  /** §9.1: not before a provisional response; until then it is held, and the INVITE not repeated. */
  cancel(lines: string, now: number): void {
    if (this.wasCancelled) return
    this.wasCancelled = true
    const transaction = this.#transaction
    if (transaction instanceof InviteClientTransaction && transaction.state === 'proceeding')
      return this.#sendCancel(lines, now)
    this.#heldCancel = lines
    if (transaction instanceof InviteClientTransaction) transaction.stopRetransmitting()
  }

  /** The application has its final response. */
  finished(): void {
    this.hasFinal = true
    this.#timerC?.cancel()
    this.#cancelTimeout?.cancel()
    this.#timerC = this.#cancelTimeout = undefined
    this.#silence?.cancel()
    this.#stack.outbound.delete(this.transactionId)
    const { dialog, sent } = this
    if (this.isInitial && isSubscribing(sent.method))
      this.#stack.subscribing.delete(dialogKey(sent.callId, tagOf(sent.from)))
    if (this.isInitial || dialog === undefined) return
    if (sent.method === 'INVITE') dialog.hasLocalInvite = false
    else if (sent.method === 'UPDATE') dialog.hasLocalOffer = false
  }

  #superviseInvite(status: number, now: number): void {
    if (status >= 200) return
    // §16.6 step 11 as a UAC: an INVITE that rings for ever is cancelled.
    this.#timerC?.cancel()
    this.#timerC = this.#stack.deadlines.start(this, 'timerC', this.#stack.timers.cMs, now)
    if (this.#heldCancel === undefined) return
    this.#sendCancel(this.#heldCancel, now)
    this.#heldCancel = undefined
  }

  #sendCancel(lines: string, now: number): void {
    const stack = this.#stack
    sendCancel(stack, this.sent, this.flow, lines, now)
    // §9.1: without a final response 64·T1 later the INVITE counts as cancelled.
    const timeoutMs = transactionTimeoutMs(stack.timers)
    this.#cancelTimeout = stack.deadlines.start(this, 'cancelTimeout', timeoutMs, now)
  }

  /** This target has failed: on to the next one, unless the application no longer wants any. */
  #moveOn(now: number, refusal?: SipMessage): boolean {
    const ways = this.#others ?? []
    // A target that has said no would say it by another transport, too.
    const [next, ...others] = refusal ? ways.filter((way) => !isSamePlace(way, this.flow)) : ways
    const isTooLate = this.hasFinal || this.wasCancelled || (this.isInitial && this.dialog)
    if (next === undefined || isTooLate) return false
    const stack = this.#stack
    const { sent, flow } = this
    stack.avoided.avoid(flow, avoidUntil(flow, refusal, now))
    this.#transaction?.handOver(
      new LostAttempt(stack, sent, flow, (response, from, at) =>
        endFork(stack, this, response, from, at),
      ),
    )
    this.#timerC?.cancel()
    this.#others = others.length > 0 ? others : undefined
    this.#rewrite(flow.listener, next.listener, stack.newBranch())
    this.flow = next
    this.start(now)
    return true
  }

  #watchSilence(now: number): void {
    const { deadlines, timers } = this.#stack
    this.#silence = deadlines.start(this, 'silence', silenceMs(timers), now)
  }

  #rewrite(from: Listener, to: Listener, branch: string): void {
    const { sent, contact } = retarget(this, from, to, branch)
    this.sent = sent
    this.contact = contact
  }

  #failLocally(status: number, reason: string, now: number): void {
    if (!this.hasFinal) deliverLocalFailure(this.#stack, this, status, reason, now)
  }
}

/** A client transaction lingers for 64·T1 after a 2xx; the texts of its request need not. */
const remains = (sent: SentRequest, dialog: Dialog | undefined): SentRequest => ({
  ...sent,
  uri: detachString(sent.uri),
  via: '',
  routes: [],
  maxForwards: '',
  from: dialog?.local ?? detachString(sent.from),
  to: detachString(sent.to),
  callId: dialog?.callId ?? detachString(sent.callId),
  credentials: '',
  text: '',
})
