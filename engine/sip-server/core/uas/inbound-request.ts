/** Requests from the network, until an application has answered them. */
import { dialogId, type Dialog, knowsTimer, sessionExpiresOf } from '../../dialog/dialog.ts'
import type { Flow } from '../../flow.ts'
import { detachString, flattened, type SipMessage } from '../../../../schema/sip/message.ts'
import { ReleasingMap } from '../../../../schema/sip/releasing-map.ts'
import type { NewRequest, Refusal } from '../../options.ts'
import type { ServerUser } from '../../transaction/machine.ts'
import type { Deadline } from '../../transaction/deadlines.ts'
import type { RetransmitCache } from '../../transaction/retransmit-cache.ts'
import { NonInviteServerTransaction } from '../../transaction/server.ts'
import { echoOf, type Echo, type Vias } from '../app-headers.ts'
import type { TimedCall } from '../call-times.ts'
import type { CoreParts } from '../parts.ts'
import type { ServerTransaction, Transactions } from '../transactions.ts'
import type { Conflict } from '../../dialog/pending-requests.ts'
import { trimBlanks } from '../../../../schema/sip/headers.ts'
import { parseOptionTags, tagOf } from '../../../../schema/sip/fields.ts'

/** A received request with what is needed to answer it. */
export interface Arrival {
  readonly request: SipMessage
  readonly vias: Vias
  /** Key of its server transaction. */
  readonly key: string
  /** Outside dialogs: equal for all copies of the request; else ''. */
  readonly mergeKey: string
  /** The way of its responses. */
  readonly flow: Flow
  /** The flow that it came by. */
  readonly source: Flow
  /** Restored: our tag, which the caller may know. */
  readonly toTag?: string
}

/** A request as the options of the server get it. */
export const newRequestOf = (
  request: SipMessage,
  { listener, address, port }: Flow,
): NewRequest => ({
  method: request.method,
  uri: request.uri,
  protocol: listener.protocol,
  sourceAddress: address,
  sourcePort: port,
  text: request.text,
  get: (name) => request.get(name),
})

/** Answers a request in place of the application. */
interface Forwarder {
  cancel(now: number): void
}

export interface InboundParts extends CoreParts {
  readonly requests: InboundRequests
  /** The application has not answered in time. */
  readonly onSilence: (inbound: InboundRequest, now: number) => void
  /** The caller has to hear of the INVITE. */
  readonly onTrying: (inbound: InboundRequest, now: number) => void
}

/**
 * Requests that wait for an answer, and those outside dialogs until their transaction has ended.
 */
export class InboundRequests {
  /** The keys are ids that the application quotes. */
  readonly #byId = new ReleasingMap<string, InboundRequest>()
  /** The keys are server transactions: a CANCEL finds its request by them. */
  readonly #byKey = new ReleasingMap<string, InboundRequest>()
  /**
   * Server transactions by Call-ID, From tag and CSeq: a request may come by two ways (RFC 3261
   * §8.2.2.2).
   */
  readonly #merged = new Map<string, string>()
  /** The same for answered requests. */
  readonly #mergedBefore: RetransmitCache
  /** Some request was forwarded: before that none can have come round. */
  #hasForwarded = false

  constructor(transactions: Transactions) {
    this.#mergedBefore = transactions.retransmitCache()
  }

  add(inbound: InboundRequest): void {
    this.#byId.set(inbound.transactionId, inbound)
    this.#byKey.set(inbound.transaction.key, inbound)
  }

  /** The request that this application has to answer. */
  find(transactionId: string, clientId: number): InboundRequest | undefined {
    const inbound = this.#byId.get(transactionId)
    return inbound?.clientId === clientId ? inbound : undefined
  }

  byTransaction(key: string): InboundRequest | undefined {
    return this.#byKey.get(key)
  }

  ofClient(clientId: number): readonly InboundRequest[] {
    return [...this.#byId.values()].filter((inbound) => inbound.clientId === clientId)
  }

  /** The INVITE that is unanswered in this dialog. */
  inviteIn(dialog: Dialog): InboundRequest | undefined {
    return [...this.#byId.values()].find(
      (inbound) => inbound.dialog === dialog && inbound.request.method === 'INVITE',
    )
  }

  /** No application has to answer it any more. */
  handedOver({ transactionId }: InboundRequest): void {
    this.#byId.delete(transactionId)
  }

  remove({ transactionId, transaction }: InboundRequest): void {
    this.#byId.delete(transactionId)
    this.#byKey.delete(transaction.key)
  }

  /** RFC 3261 §8.2.2.2: the same request came before by another way, or has come round. */
  isMerged({ request, mergeKey }: Arrival): boolean {
    const hasComeRound =
      this.#hasForwarded && this.#mergedAs(spiralKey(mergeKey, request.uri)) !== undefined
    return hasComeRound || this.#mergedAs(mergeKey) !== undefined
  }

  #mergedAs(mergeKey: string): string | undefined {
    return this.#merged.get(mergeKey) ?? this.#mergedBefore.find(mergeKey)
  }

  addMerge(mergeKey: string, transactionKey: string): void {
    this.#merged.set(mergeKey, transactionKey)
  }

  /**
   * A forwarded request may come back with another Request-URI, as a spiral (§6): not for the same,
   * which would go round for ever (§16.3 step 4).
   */
  addSpiral(merge: string, uri: string, transactionKey: string): string {
    const key = flattened(spiralKey(merge, uri))
    this.#merged.set(key, transactionKey)
    this.#hasForwarded = true
    return key
  }

  forgetMerge(key: string, transactionKey: string): void {
    if (this.#merged.get(key) === transactionKey) this.#merged.delete(key)
  }

  /**
   * Its transaction is over: for as long as a copy may come by the same way, one may come by
   * another.
   */
  keepMerge(key: string, transactionKey: string, now: number): void {
    this.forgetMerge(key, transactionKey)
    this.#mergedBefore.add(key, transactionKey, now)
  }

  /** The transaction of the INVITE that a CANCEL means by Call-ID, From tag and CSeq. */
  invitedBy(cancel: SipMessage): string | undefined {
    return this.#mergedAs(mergeKeyOf(cancel, 'INVITE'))
  }

  /** Number of requests without a final response, forwarded ones included. */
  get size(): number {
    return this.#byKey.size
  }

  get sizes(): Readonly<
    Record<'inboundRequests' | 'inboundByKey' | 'forwarding' | 'merged', number>
  > {
    const [inboundRequests, inboundByKey] = [this.#byId.size, this.#byKey.size]
    const forwarding = inboundByKey - inboundRequests
    const merged = this.#merged.size + this.#mergedBefore.size
    return { inboundRequests, inboundByKey, forwarding, merged }
  }
}

const spiralKey = (merge: string, uri: string): string => `${merge} ${uri}`

/** Equal for copies of one request, whichever way they came. */
export const mergeKeyOf = (request: SipMessage, method: string): string =>
  flattened(`${request.callId} ${request.fromTag} ${request.cseq?.number ?? 0} ${method}`)

type Timer = 'application' | 'trying'

export class InboundRequest implements TimedCall {
  readonly transactionId: string
  /** The application that has to answer; 0: none, or not known yet. */
  clientId: number
  readonly request: SipMessage
  readonly transaction: ServerTransaction
  /** The header lines that every response copies. */
  readonly echo: Echo
  readonly isInitial: boolean
  readonly startedAt: number
  hasRung = false
  /** 100 Trying was sent. */
  isTrying = false
  #dialog: Dialog | undefined
  #forwarder: Forwarder | undefined
  #wasAnswered = false
  #wasCancelled = false
  #isTagFixed: boolean
  readonly #parts: InboundParts
  readonly #end: ServerEnd
  readonly #applicationTimer: Deadline<Timer>
  #tryingTimer: Deadline<Timer> | undefined

  /**
   * `clientId` is the application that has to answer, 0 for none; `dialog` the one that it came in.
   */
  constructor(
    parts: InboundParts,
    { request, vias, key, mergeKey, flow, toTag }: Arrival,
    clientId: number,
    dialog: Dialog | undefined,
    now: number,
  ) {
    const { ids, transactions } = parts
    const { deadlines, timers } = transactions
    this.#parts = parts
    this.transactionId = ids.transactionId()
    this.clientId = clientId
    this.request = request
    this.echo = echoOf(request, vias)
    this.#dialog = dialog
    this.isInitial = dialog === undefined
    this.startedAt = now
    this.#isTagFixed = toTag !== undefined
    this.#end = new ServerEnd(parts, key, dialog?.localTag ?? toTag ?? ids.token())
    if (mergeKey !== '') this.#end.merge(mergeKey)
    this.transaction = transactions.startServer(key, request.method === 'INVITE', flow, this.#end)
    this.#applicationTimer = deadlines.start(this, 'application', timers.applicationMs, now)
    parts.requests.add(this)
  }

  /** Our tag. */
  get localTag(): string {
    return this.#end.toTag
  }

  /** Takes our tag from the application's first response: later the caller has got one. */
  chooseTag(to: string): void {
    const isOpen = this.isInitial && !this.#wasAnswered && !this.#isTagFixed
    const tag = isOpen ? tagOf(to) : ''
    if (tag !== '') this.#end.toTag = detachString(tag)
  }

  /** Our tag, for good: the next process will use it. */
  fixTag(): string {
    this.#isTagFixed = true
    return this.#end.toTag
  }

  /** The dialog that it came in, or that the application's answer has begun. */
  get dialog(): Dialog | undefined {
    return this.#dialog
  }

  formed(dialog: Dialog): void {
    this.#dialog = dialog
  }

  /** The id by which the application knows the dialog of this request. */
  get dialogId(): string {
    return this.#dialog?.id ?? dialogId(this.request.callId, this.request.fromTag)
  }

  /** An INVITE outside dialogs. */
  get isCall(): boolean {
    return this.isInitial && this.request.method === 'INVITE'
  }

  /** The application has responded, so the dialog id is known to it. */
  get wasAnswered(): boolean {
    return this.#wasAnswered
  }

  respondedTo(): void {
    this.#wasAnswered = true
    this.#tryingTimer?.cancel()
  }

  /** 100 Trying leaves after this time, unless there is another response before. */
  tryWithin(delayMs: number, now: number): void {
    this.#tryingTimer ??= this.#parts.transactions.deadlines.start(this, 'trying', delayMs, now)
  }

  get wasCancelled(): boolean {
    return this.#wasCancelled
  }

  /** Its caller has given up. True: the forwarder will answer it. */
  cancelled(now: number): boolean {
    this.#wasCancelled = true
    this.#forwarder?.cancel(now)
    return this.#forwarder !== undefined
  }

  /** The request is forwarded: another server answers it, and the application need not. */
  handOver(forwarder: Forwarder, now: number): void {
    const isTryingDue = this.#tryingTimer?.target !== undefined
    this.#tryingTimer?.cancel()
    if (isTryingDue) this.#parts.onTrying(this, now)
    this.#forwarder = forwarder
    this.#end.forwarded(this.request.uri)
    this.#applicationTimer.cancel()
    this.#parts.requests.handedOver(this)
  }

  /** Ends a non-INVITE request without an answer (RFC 4320 §4.2). */
  abandon(now: number): void {
    this.#finished()
    if (this.transaction instanceof NonInviteServerTransaction) this.transaction.abandon(now)
  }

  /**
   * The request has its final response. RFC 3261 §8.2.2.2 speaks of ongoing transactions: a refused
   * one is over, and a proxy that tries its destinations one after the other may come back to this
   * server by another one.
   */
  answered(status: number, now: number): void {
    this.#finished()
    if (status < 300) this.#end.keepMerge(now)
    else this.#end.forgetMerge()
  }

  /** The request was answered without state. */
  dismiss(): void {
    this.#finished()
    this.#end.onTerminated()
  }

  #finished(): void {
    this.#applicationTimer.cancel()
    this.#tryingTimer?.cancel()
    this.#parts.requests.remove(this)
    this.#dialog?.remoteRequestEnds(this.request.method)
  }

  onTimer(timer: Timer, now: number): void {
    if (timer === 'trying') this.#parts.onTrying(this, now)
    else this.#parts.onSilence(this, now)
  }
}

/**
 * The user of the server transaction. It outlives a refused INVITE, whose transaction waits for the
 * ACK.
 */
class ServerEnd implements ServerUser {
  toTag: string
  readonly #parts: InboundParts
  readonly #key: string
  #mergeKey = ''

  constructor(parts: InboundParts, key: string, toTag: string) {
    this.#parts = parts
    this.#key = key
    this.toTag = toTag
  }

  onAckTimeout(): void {
    this.#parts.log('debug', 'no ACK for a failure response', { transaction: this.#key })
  }

  onTerminated(): void {
    this.#parts.transactions.endServer(this.#key)
    this.forgetMerge()
  }

  merge(mergeKey: string): void {
    this.#mergeKey = mergeKey
    this.#parts.requests.addMerge(mergeKey, this.#key)
  }

  forwarded(uri: string): void {
    const merge = this.#mergeKey
    if (merge === '') return
    this.forgetMerge()
    this.#mergeKey = this.#parts.requests.addSpiral(merge, uri, this.#key)
  }

  keepMerge(now: number): void {
    if (this.#mergeKey !== '') this.#parts.requests.keepMerge(this.#mergeKey, this.#key, now)
  }

  forgetMerge(): void {
    if (this.#mergeKey !== '') this.#parts.requests.forgetMerge(this.#mergeKey, this.#key)
  }
}

// Why a readable request is rejected before an application sees it: RFC 3261 §8.2.2.3, §8.2.3 and
// §14.2.

export const noSuchCall: Refusal = { status: 481, reason: 'Call/Transaction Does Not Exist' }
export const tooManyHops: Refusal = { status: 483, reason: 'Too Many Hops' }
/** A sender may try again after so many seconds. */
export const unavailable = (seconds: number): Refusal => ({
  status: 503,
  reason: 'Service Unavailable',
  lines: `Retry-After: ${seconds}\r\n`,
})

/**
 * Extensions that a peer may insist on: applications do what they ask, or it needs nothing beyond
 * passing headers on; session timers and reliable provisional responses are this server's work.
 */
const understood: ReadonlySet<string> = new Set(
  (
    '100rel timer replaces norefersub path outbound gruu from-change histinfo privacy ' +
    'tdialog join ' +
    'eventlist answermode resource-priority geolocation siprec record-aware'
  ).split(' '),
)

/**
 * The answer to a request outside or inside a dialog; never asked for ACK and CANCEL (§8.2.2.3).
 */
export function rejectionFor(request: SipMessage, minSessionSeconds: number): Refusal | undefined {
  return (
    unknownExtension(request) ??
    unknownEncoding(request) ??
    unknownBody(request) ??
    shortSession(request, minSessionSeconds)
  )
}

/** RFC 4028 §9; a sender without the extension could do nothing with the answer. */
function shortSession(request: SipMessage, minSeconds: number): Refusal | undefined {
  if (request.method !== 'INVITE' && request.method !== 'UPDATE') return undefined
  if (!request.has('Session-Expires')) return undefined
  const seconds = sessionExpiresOf(request)?.seconds
  if (seconds === undefined || seconds >= minSeconds || !knowsTimer(request)) return undefined
  const lines = `Min-SE: ${minSeconds}\r\n`
  return { status: 422, reason: 'Session Interval Too Small', lines }
}

function unknownExtension(request: SipMessage): Refusal | undefined {
  // A new INVITE is a call: its application judges what it asks, and keeps the record of the
  // refusal.
  const isCall = request.method === 'INVITE' && request.toTag === ''
  if (isCall || !request.has('Require')) return undefined
  const unknown = parseOptionTags(request.all('Require')).filter((tag) => !understood.has(tag))
  if (unknown.length === 0) return undefined
  return { status: 420, reason: 'Bad Extension', lines: `Unsupported: ${unknown.join(', ')}\r\n` }
}

function unknownEncoding(request: SipMessage): Refusal | undefined {
  if (!request.has('Content-Encoding')) return undefined
  if (parseOptionTags(request.all('Content-Encoding')).every((coding) => coding === 'identity'))
    return undefined
  return unsupported('Accept-Encoding: identity\r\n')
}

/**
 * A session is described in SDP, alone or with other parts, unless the body may be ignored
 * (§20.11).
 */
function unknownBody(request: SipMessage): Refusal | undefined {
  if (request.method !== 'INVITE' || !request.hasBody) return undefined
  const type = trimBlanks((request.get('Content-Type') ?? '').split(';', 1)[0] ?? '').toLowerCase()
  if (type === 'application/sdp' || type.startsWith('multipart/')) return undefined
  const disposition = request.get('Content-Disposition') ?? ''
  if (/;\s*handling\s*=\s*optional/i.test(disposition)) return undefined
  return unsupported('Accept: application/sdp, multipart/mixed\r\n')
}

const unsupported = (lines: string): Refusal => ({
  status: 415,
  reason: 'Unsupported Media Type',
  lines,
})

/** A request that must wait for another in its dialog. */
export const rejectionOf = (conflict: Conflict, now: number): Refusal =>
  conflict === 'glare'
    ? { status: 491, reason: 'Request Pending' }
    : {
        status: 500,
        reason: 'Server Internal Error',
        // §14.2: a time between 0 and 10 seconds, chosen at random.
        lines: `Retry-After: ${Math.floor(now % 10)}\r\n`,
      }
