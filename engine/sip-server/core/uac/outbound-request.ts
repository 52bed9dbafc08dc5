/**
 * One request of an application, until its final response; an INVITE also until its ACK is settled.
 */
import {
  dialogId as dialogIdOf,
  dialogKey,
  isSubscribing,
  type AnsweredInvite,
  type Dialog,
} from '../../dialog/dialog.ts'
import type { Flow, Listener } from '../../flow.ts'
import { tagOf } from '../../../../schema/sip/fields.ts'
import { detachString, flattened, type SipMessage } from '../../../../schema/sip/message.ts'
import { ReleasingMap } from '../../../../schema/sip/releasing-map.ts'
import {
  type ClientFailure,
  type ClientUser,
  type SentRequest,
  silenceMs,
  transactionTimeoutMs,
} from '../../transaction/machine.ts'
import type { Deadline } from '../../transaction/deadlines.ts'
import { InviteClientTransaction } from '../../transaction/client.ts'
import type { TimedCall } from '../call-times.ts'
import { elsewhere } from '../hop-finder.ts'
import type { CoreParts } from '../parts.ts'
import type { ClientTransaction, Transactions } from '../transactions.ts'
import { retarget, type ComposedRequest } from '../request-writer.ts'
import type { CommandRef } from '../outbox.ts'

/** The parts that a request uses. */
export interface OutboundParts extends CoreParts {
  readonly requests: OutboundRequests
  readonly responses: OutboundUser
  readonly acknowledged: AcknowledgedUser
}

/** The ACK of a 2xx as it went out. */
export interface SentAck {
  readonly text: string
  readonly flow: Flow
}

/** Answers copies of an acknowledged 2xx, and later 2xx; `tag` is that of the branch. */
interface AcknowledgedUser {
  keep(outbound: OutboundRequest, tag: string, ack: SentAck, now: number): void
}

/** Gets the responses to a request. */
export interface OutboundUser {
  onResponse(outbound: OutboundRequest, response: SipMessage, flow: Flow, now: number): void
  /** No target has answered. */
  onLocalFailure(outbound: OutboundRequest, status: number, reason: string, now: number): void
  /** A target that was given up has accepted the INVITE after all. */
  onLateAnswer(outbound: OutboundRequest, response: SipMessage, flow: Flow, now: number): void
  onTerminated(outbound: OutboundRequest, now: number): void
}

/** Requests that wait for their final response. */
export class OutboundRequests {
  readonly #byId = new ReleasingMap<string, OutboundRequest>()
  /** SUBSCRIBE and REFER outside dialogs, by `dialogKey`. */
  readonly #subscribing = new Map<string, OutboundRequest>()

  add(outbound: OutboundRequest): void {
    this.#byId.set(outbound.transactionId, outbound)
    const key = subscribingKey(outbound)
    if (key !== undefined) this.#subscribing.set(flattened(key), outbound)
  }

  remove(outbound: OutboundRequest): void {
    this.#byId.delete(outbound.transactionId)
    const key = subscribingKey(outbound)
    if (key !== undefined) this.#subscribing.delete(key)
  }

  find(transactionId: string): OutboundRequest | undefined {
    return this.#byId.get(transactionId)
  }

  /** The request that a NOTIFY with this Call-ID and To tag would belong to. */
  subscribing(callId: string, localTag: string): OutboundRequest | undefined {
    return this.#subscribing.get(dialogKey(callId, localTag))
  }

  ofClient(clientId: number): readonly OutboundRequest[] {
    return [...this.#byId.values()].filter((outbound) => outbound.clientId === clientId)
  }

  get size(): number {
    return this.#byId.size
  }

  get subscribingCount(): number {
    return this.#subscribing.size
  }
}

const subscribingKey = ({ isInitial, sent }: OutboundRequest): string | undefined =>
  isInitial && isSubscribing(sent.method) ? dialogKey(sent.callId, tagOf(sent.from)) : undefined

type Timer = 'timerC' | 'cancelTimeout' | 'silence'

export class OutboundRequest implements ClientUser, TimedCall, AnsweredInvite {
  readonly transactionId: string
  readonly clientId: number
  readonly isInitial: boolean
  /** Interval of the session timer that it asks for. */
  readonly sessionSeconds: number | undefined
  readonly startedAt: number
  hasRung = false
  readonly #parts: OutboundParts
  #sent: SentRequest
  #contact: string
  #dialog: Dialog | undefined
  #flow: Flow
  #hasFinal = false
  #wasCancelled = false
  #ack: SentAck | undefined
  #answeredTag: string | undefined
  /** Last RSeq per tag of reliable provisionals. */
  #lastRSeq: Map<string, number> | undefined
  #transaction: ClientTransaction | undefined
  #heldCancel: string | undefined
  #hasTarget = true
  #timerC: Deadline<Timer> | undefined
  #cancelTimeout: Deadline<Timer> | undefined
  /** Further targets, should this one fail (RFC 3263 §4.3); undefined: none. */
  #others: readonly Flow[] | undefined
  #silence: Deadline<Timer> | undefined
  /** How many targets were given up because they were silent. */
  #silentTargets = 0

  constructor(
    parts: OutboundParts,
    clientId: number,
    composed: ComposedRequest,
    dialog: Dialog | undefined,
    now: number,
  ) {
    this.#parts = parts
    this.transactionId = parts.ids.transactionId()
    this.clientId = clientId
    this.startedAt = now
    this.#sent = composed.sent
    this.#contact = composed.contact
    this.#flow = composed.flow
    this.#dialog = dialog
    this.isInitial = dialog === undefined
    this.sessionSeconds = composed.sessionSeconds
  }

  get sent(): SentRequest {
    return this.#sent
  }

  get contact(): string {
    return this.#contact
  }

  get flow(): Flow {
    return this.#flow
  }

  /** The dialog that it was sent in, or that its responses have begun. */
  get dialog(): Dialog | undefined {
    return this.#dialog
  }

  get hasFinal(): boolean {
    return this.#hasFinal
  }

  get wasCancelled(): boolean {
    return this.#wasCancelled
  }

  get isUnwanted(): boolean {
    return this.#wasCancelled && this.isInitial
  }

  /** An INVITE outside dialogs. */
  get isCall(): boolean {
    return this.isInitial && this.#sent.method === 'INVITE'
  }

  /** The dialog id that responses carry: from the first one on for what can form a dialog. */
  get dialogId(): string {
    if (this.#dialog) return this.#dialog.id
    const { method, callId, from } = this.#sent
    if (method !== 'INVITE' && method !== 'SUBSCRIBE') return ''
    return dialogIdOf(callId, tagOf(from))
  }

  /** A response, or a NOTIFY before it, has begun a dialog. */
  formed(dialog: Dialog): void {
    this.#dialog = dialog
  }

  /**
   * Chooses the first of `flows`; the others are for failures. None: the request cannot be sent.
   */
  aim(flows: readonly Flow[]): void {
    const first = flows[0]
    this.#hasTarget = first !== undefined
    if (flows.length > 1) this.#others = flows.slice(1)
    if (first === undefined || first === this.#flow) return
    const { listener } = this.#flow
    if (first.listener !== listener) this.#rewrite(listener, first.listener, this.#sent.branch)
    this.#flow = first
  }

  start(now: number): void {
    if (!this.#hasTarget) return this.onFailure('transport', now)
    if (this.#heldCancel !== undefined) return this.#failLocally(487, 'Request Terminated', now)
    const { transactions } = this.#parts
    this.#transaction = transactions.startClient(this.#sent, this.#flow, this, now)
    const { deadlines, timers } = transactions
    if (!this.#others) return
    const patienceMs = silenceMs(timers, this.#sent.method, this.#silentTargets)
    this.#silence = deadlines.start(this, 'silence', patienceMs, now)
  }

  onResponse(response: SipMessage, flow: Flow, now: number): void {
    this.#silence?.cancel()
    if (response.status === 503 && this.#others && this.#moveOn(now, response)) return
    if (this.#sent.method === 'INVITE') this.#superviseInvite(response.status, now)
    this.#parts.responses.onResponse(this, response, flow, now)
  }

  onFailure(failure: ClientFailure, now: number): void {
    if (this.#others && this.#moveOn(now)) return
    // RFC 3261 §8.1.3.1: a timeout looks like a 408, a transport error like a 503.
    if (failure === 'timeout') this.#failLocally(408, 'Request Timeout', now)
    else this.#failLocally(503, 'Service Unavailable', now)
  }

  onTerminated(now: number): void {
    this.#parts.transactions.endClient(this.#sent.branch)
    this.#parts.responses.onTerminated(this, now)
  }

  onTimer(timer: Timer, now: number): void {
    if (timer === 'timerC') return this.cancel('', now)
    if (timer === 'silence') {
      this.#silentTargets += 1
      return void this.#moveOn(now)
    }
    if (this.#transaction?.state !== 'proceeding') return
    this.#parts.transactions.endClient(this.#sent.branch)
    this.#failLocally(487, 'Request Terminated', now)
  }

  /**
   * §9.1: not before a provisional response; until then it is held, and the INVITE not repeated.
   */
  cancel(lines: string, now: number): void {
    if (this.#wasCancelled) return
    this.#wasCancelled = true
    const transaction = this.#transaction
    if (transaction instanceof InviteClientTransaction && transaction.state === 'proceeding')
      return this.#sendCancel(lines, now)
    this.#heldCancel = lines
    if (transaction instanceof InviteClientTransaction) transaction.stopRetransmitting()
  }

  /** RFC 3262 §4: a reliable provisional that came before, or out of order, is not passed on. */
  isRepeatedReliable(response: SipMessage): boolean {
    const value = response.get('RSeq')
    const rseq = value === undefined ? Number.NaN : Number(value)
    if (Number.isNaN(rseq)) return false
    this.#lastRSeq ??= new Map()
    const last = this.#lastRSeq.get(response.toTag)
    if (last !== undefined && rseq !== last + 1) return true
    this.#lastRSeq.set(detachString(response.toTag), rseq)
    return false
  }

  /** §13.2.2.4: whether a 2xx is the first one, a copy of it, or one of another branch. */
  noteAnswer(tag: string): 'first' | 'copy' | 'other-branch' {
    if (this.#answeredTag === undefined) {
      this.#answeredTag = tag
      return 'first'
    }
    return this.#answeredTag === tag ? 'copy' : 'other-branch'
  }

  acknowledge(dialog: Dialog, lines: string, body: string, now: number): string {
    const { writer, transactions } = this.#parts
    const flow = writer.flowInDialog(dialog)
    const { text } = writer.numbered(dialog, 'ACK', this.#sent.cseq, flow, { lines, body })
    if (dialog === this.#dialog) this.#acknowledged({ text, flow }, dialog.isForked, now)
    dialog.ackSent()
    transactions.send(text, flow, '')
    return text
  }

  /** Unless the dialog has other branches, its ACK goes to a cache, for copies of the 2xx. */
  #acknowledged(ack: SentAck, isForked: boolean, now: number): void {
    const transaction = this.#transaction
    const isKept =
      transaction instanceof InviteClientTransaction && transaction.state === 'accepted'
    if (isForked || !isKept || this.#answeredTag === undefined) {
      this.#ack = ack
      return
    }
    transaction.leaveAccepted()
    this.#parts.transactions.endClient(this.#sent.branch)
    this.#parts.acknowledged.keep(this, this.#answeredTag, ack, now)
  }

  /** A copy of the 2xx has come. */
  repeatAck(): void {
    if (this.#ack) this.#parts.transactions.send(this.#ack.text, this.#ack.flow, '')
  }

  /** The application has its final response, or is gone. */
  finished(): void {
    this.#hasFinal = true
    this.#timerC?.cancel()
    this.#timerC = undefined
    // The callee of a cancelled INVITE may never answer: without this limit its transaction would
    // stay for ever.
    if (this.#transaction?.state !== 'proceeding') this.#cancelTimeout?.cancel()
    this.#silence?.cancel()
    this.#parts.requests.remove(this)
    if (!this.isInitial) this.#dialog?.pending.localEnds(this.#sent.method)
  }

  #superviseInvite(status: number, now: number): void {
    if (status >= 200) return
    // §16.6 step 11 as a UAC: an INVITE that rings for ever is cancelled.
    const { deadlines, timers } = this.#parts.transactions
    this.#timerC?.cancel()
    this.#timerC = deadlines.start(this, 'timerC', timers.cMs, now)
    if (this.#heldCancel === undefined) return
    this.#sendCancel(this.#heldCancel, now)
    this.#heldCancel = undefined
  }

  #sendCancel(lines: string, now: number): void {
    const { transactions } = this.#parts
    transactions.cancel(this.#sent, this.#flow, lines, now)
    // §9.1: without a final response 64·T1 later the INVITE counts as cancelled.
    const timeoutMs = transactionTimeoutMs(transactions.timers)
    this.#cancelTimeout = transactions.deadlines.start(this, 'cancelTimeout', timeoutMs, now)
  }

  /** This target has failed: on to the next one, unless the application no longer wants any. */
  #moveOn(now: number, refusal?: SipMessage): boolean {
    const flows = this.#others ?? []
    const [next, ...others] = refusal ? elsewhere(flows, this.#flow) : flows
    const isTooLate = this.#hasFinal || this.#wasCancelled || (this.isInitial && this.#dialog)
    if (next === undefined || isTooLate) return false
    const { hops, transactions, responses, ids } = this.#parts
    const sent = this.#sent
    const flow = this.#flow
    hops.failed(flow, refusal, now)
    const onAnswer = (response: SipMessage, from: Flow, at: number): void =>
      responses.onLateAnswer(this, response, from, at)
    this.#transaction?.handOver(abandonedAttempt(transactions, sent, flow, onAnswer))
    this.#timerC?.cancel()
    this.#others = others.length > 0 ? others : undefined
    this.#rewrite(flow.listener, next.listener, ids.branch())
    this.#flow = next
    this.start(now)
    return true
  }

  #rewrite(from: Listener, to: Listener, branch: string): void {
    const { sent, contact } = retarget(this, from, to, branch)
    this.#sent = sent
    this.#contact = contact
  }

  #failLocally(status: number, reason: string, now: number): void {
    if (!this.#hasFinal) this.#parts.responses.onLocalFailure(this, status, reason, now)
  }
}

/**
 * The user of an attempt that was given up for the next target (RFC 3263 §4.3). The application
 * gets no event; a target that begins to ring is cancelled, one that answers gets ACK and BYE.
 */
function abandonedAttempt(
  transactions: Transactions,
  sent: SentRequest,
  flow: Flow,
  onAnswer: (response: SipMessage, flow: Flow, now: number) => void,
): ClientUser {
  let isCancelled = false
  const end = { onTimer: () => transactions.endClient(sent.branch) }
  return {
    onResponse: (response, from, now) => {
      if (sent.method !== 'INVITE' || response.status >= 300) return
      if (response.status >= 200) return onAnswer(response, from, now)
      if (isCancelled) return
      isCancelled = true
      transactions.cancel(sent, flow, '', now)
      // §9.1: it may never answer; it has no timer of its own any more.
      transactions.deadlines.start(end, 'end', transactionTimeoutMs(transactions.timers), now)
    },
    onFailure: () => undefined,
    onTerminated: () => end.onTimer(),
  }
}

// Requests that an application asks for; response-receiver.ts handles their responses.

/** The command of an application, and the ids that it quotes. */
export interface RequestCommand extends CommandRef {
  readonly transactionId: string
  readonly dialogId: string
  readonly routeUrl: string
}
