/**
 * One dialog as one side sees it: RFC 3261 §12. Identifiers, sequence numbers, route set and
 * targets, and which requests are pending in it. Its state changes only here. It sends no messages.
 */
import { type Conflict, PendingRequests } from './pending-requests.ts'
import type { Reliable1xx } from './reliable-1xx.ts'
import type { Reliable2xx } from './reliable-2xx.ts'
import type { SessionTimer, SessionTerms } from './session-timer.ts'
import { type Flow, isReliable, requestFlow } from '../flow.ts'
import { detachString, flattened, type SipMessage } from '../../../schema/sip/message.ts'
import {
  parseUri,
  parseMinSE,
  parseOptionTags,
  parseSessionExpires,
  type SessionExpires,
} from '../../../schema/sip/fields.ts'
import { type Deadlines, LongDeadline } from '../transaction/deadlines.ts'
import type { Refresher } from '../options.ts'

type DialogState = 'early' | 'confirmed' | 'terminated'

/** An INVITE of ours that was answered with 2xx and waits for the application's ACK. */
export interface AnsweredInvite {
  readonly flow: Flow
  /** The INVITE began the dialog, and was cancelled too late. */
  readonly isUnwanted: boolean
  /** Sends the ACK, and again for every copy of the 2xx (§13.2.2.4). Returns the text. */
  acknowledge(dialog: Dialog, lines: string, body: string, now: number): string
}

/** A peer that invents tags must not fill the memory. */
const MAX_BRANCHES = 16

export class Dialog {
  readonly id: string
  /** The key under which requests from the network find the dialog. */
  readonly key: string
  readonly role: DialogRole
  readonly usage: DialogUsage
  readonly callId: string
  readonly localTag: string
  readonly local: string
  readonly remoteTag: string
  readonly remote: string
  readonly pending = new PendingRequests()
  #clientId: number
  #state: DialogState
  #localCseq: number
  #remoteCseq: number
  #contact: string
  #flow: Flow
  #isFlowBound: boolean
  #routeSet: readonly string[]
  #remoteTarget: string
  #route: RoutedRequest | undefined
  #nextHop: Flow | undefined
  /** It is known that the peer may name this target and this route set. */
  #isWayJudged = false
  #namedTarget: string | undefined
  /** A provisional response has answered the offer of the INVITE; as UAS: an unreliable one. */
  #hasEarlyAnswer = false
  /** RSeq (as UAC) of the last reliable provisional response for which no PRACK has gone out. */
  #unacknowledgedRSeq: number | undefined
  /**
   * Early dialogs of other branches of the same INVITE, by their lower-case tag; all have the same
   * id.
   */
  #branches: Map<string, Dialog> | undefined
  #answeredInvite: AnsweredInvite | undefined
  #reliable2xx: Reliable2xx | undefined
  #reliable1xx: Reliable1xx | undefined
  #subscriptionEnd: LongDeadline | undefined
  #session: SessionTimer | undefined

  constructor(start: DialogStart) {
    this.role = start.role
    this.usage = start.usage
    this.local = detachString(start.local)
    this.remote = detachString(start.remote)
    this.localTag = detachString(start.localTag)
    this.remoteTag = detachString(start.remoteTag)
    this.#clientId = start.clientId
    this.#state = start.state ?? 'early'
    this.#localCseq = start.localCseq
    this.#remoteCseq = start.remoteCseq
    this.#routeSet = start.routeSet.map(detachString)
    this.#remoteTarget = detachString(start.remoteTarget)
    this.#contact = detachString(start.contact)
    this.#flow = start.flow
    this.#isFlowBound = start.isFlowBound
    const inviterTag = start.role === 'uac' ? this.localTag : this.remoteTag
    this.id = flattened(dialogId(start.callId, inviterTag))
    this.callId = this.id.slice(0, start.callId.length)
    this.key = flattened(dialogKey(this.callId, this.localTag))
  }

  /** The application that has it. */
  get clientId(): number {
    return this.#clientId
  }

  get state(): DialogState {
    return this.#state
  }

  /** Moves a subscription to another application. */
  takeOver(clientId: number): void {
    this.#clientId = clientId
  }

  confirm(): void {
    if (this.#state === 'early') this.#state = 'confirmed'
  }

  /** §13.2.2.4: the 2xx says anew how the peer of an early dialog is reached. */
  confirmedBy({ routeSet, remoteTarget, flow, isFlowBound }: RouteToPeer): void {
    this.confirm()
    this.#routeSet = routeSet.map(detachString)
    this.#flow = flow
    this.#isFlowBound = isFlowBound
    this.#moveTarget(remoteTarget)
  }

  /**
   * Ends the dialog: stops its timers and refuses commands that wait. `DialogTable.remove` calls
   * it.
   */
  end(): void {
    this.#state = 'terminated'
    this.#answeredInvite = undefined
    this.#reliable2xx?.stop()
    this.#reliable1xx?.stop()
    this.#session?.stop()
    this.#subscriptionEnd?.cancel()
    this.pending.refuseHeld()
  }

  // ---- sequence numbers and targets (§12.2) ----

  get localCseq(): number {
    return this.#localCseq
  }

  get remoteCseq(): number {
    return this.#remoteCseq
  }

  /** §12.2.1.1: the number of the next request of ours. */
  nextLocalCseq(): number {
    this.#localCseq += 1
    return this.#localCseq
  }

  /**
   * §12.2.2: a request with a number below the last one is out of order. Equal numbers belong to
   * ACK.
   */
  acceptsCseq(number: number): boolean {
    if (number < this.#remoteCseq) return false
    this.#remoteCseq = number
    return true
  }

  get contact(): string {
    return this.#contact
  }

  changeContact(contact: string): void {
    this.#contact = contact
  }

  /**
   * §12.2.1.2 and §12.2.2: target refresh requests and their 2xx, which came by `flow`, move the
   * remote target.
   */
  refreshTarget(message: SipMessage, flow: Flow): void {
    const target = message.contact?.uri ?? this.#remoteTarget
    if (target === this.#remoteTarget) return
    this.#moveTarget(target)
    const { address, port } = this.#flow
    const hasMoved = flow.address !== address || flow.port !== port
    if (hasMoved && !this.#isFlowBound) this.#flow = requestFlow(flow)
  }

  #moveTarget(target: string): void {
    this.#remoteTarget = detachString(target)
    this.#namedTarget = undefined
    this.#route = this.#nextHop = undefined
    this.#isWayJudged = false
  }

  get isWayJudged(): boolean {
    return this.#isWayJudged
  }

  wayJudged(): void {
    this.#isWayJudged = true
  }

  /**
   * Its peer may not name them: requests go to where it has sent from, which `uri` names. Where its
   * connection is gone it may come back over another.
   */
  returnByFlow(uri: string): void {
    const { listener, connectionId } = this.#flow
    const isLost = isReliable(listener.protocol) && connectionId === 0
    const named = isLost && !this.hasRoutes ? this.#remoteTarget : undefined
    this.#routeSet = []
    this.#moveTarget(uri)
    this.#namedTarget = named
    this.#isWayJudged = true
    this.#isFlowBound = !isLost
  }

  /**
   * The Contact of a peer that is not followed while its connection is gone: a phone may register
   * it over a new one.
   */
  get namedTarget(): string | undefined {
    return this.#namedTarget
  }

  /** Its peer has a connection again, and gets its own Contact in requests. */
  peerIsBack(): void {
    if (this.#namedTarget !== undefined) this.#moveTarget(this.#namedTarget)
  }

  get routeToPeer(): RouteToPeer {
    const [routeSet, remoteTarget] = [this.#routeSet, this.#namedTarget ?? this.#remoteTarget]
    return { routeSet, remoteTarget, flow: this.#flow, isFlowBound: this.#isFlowBound }
  }

  /** §12.2.1.1: Request-URI and Route of the next request. */
  nextRequestRoute(): RoutedRequest {
    return (this.#route ??= routeBy(this.#routeSet, this.#remoteTarget))
  }

  /** The flow of the last request or response of the peer. */
  get flow(): Flow {
    return this.#flow
  }

  get isFlowBound(): boolean {
    return this.#isFlowBound
  }

  get hasRoutes(): boolean {
    return this.#routeSet.length > 0
  }

  /** Hop of the next request while it is bound to no flow; undefined: not known yet. */
  get nextHop(): Flow | undefined {
    return this.#nextHop
  }

  rememberNextHop(flow: Flow): void {
    this.#nextHop = flow
  }

  /**
   * Whether this is the address of the flow, of the next hop, of the remote target, or of a route.
   */
  isPeerAt(address: string): boolean {
    if (this.#flow.address === address || this.#nextHop?.address === address) return true
    const places = [this.#remoteTarget, ...this.#routeSet]
    return places.some((place) => parseUri(bareUri(place))?.host === address)
  }

  /** A request of the peer came by `flow`. Requests go back over a connection from then on. */
  noteRequestFlow(flow: Flow): void {
    if (flow.connectionId !== 0) {
      this.#isFlowBound = true
      this.peerIsBack()
    }
    if (this.#isFlowBound) this.#flow = flow
  }

  /** Requests go to the remote target again, over a new connection. */
  connectionLost(): void {
    this.#isFlowBound = false
    this.#flow = { ...this.#flow, connectionId: 0 }
  }

  // ---- pending requests (§14) ----

  /** An INVITE in either direction has no final response or no ACK yet. */
  get isInvitePending(): boolean {
    const { hasLocalInvite, hasRemoteInvite } = this.pending
    const isUnacknowledged = this.#reliable2xx !== undefined || this.#answeredInvite !== undefined
    return hasLocalInvite || hasRemoteInvite || isUnacknowledged
  }

  /** A request of ours goes out. */
  localRequestBegins(method: string, hasBody: boolean): void {
    this.pending.localBegins(method, hasBody)
    if (method === 'PRACK') this.#unacknowledgedRSeq = undefined
    else if (method === 'BYE') this.#session?.stop()
  }

  /** A request of the peer was accepted, which came by `flow`. */
  remoteRequestBegins(request: SipMessage, flow: Flow): void {
    this.pending.remoteBegins(request.method)
    if (refreshesTarget.has(request.method)) this.refreshTarget(request, flow)
  }

  /** A request of the peer has its final response. */
  remoteRequestEnds(method: string): void {
    this.pending.remoteEnds(method)
    if (method === 'INVITE') this.#reliable1xx?.stop()
  }

  /** The reason why a request of the peer must wait; undefined: it need not. */
  conflictOf(request: SipMessage): Conflict | undefined {
    const unanswered = this.#isOfferUnanswered ? this.role : undefined
    return this.pending.conflictOf(request, this.#state === 'early', unanswered)
  }

  /**
   * The offer of the first INVITE has no answer yet. RFC 3262 §5 wants the answer in a reliable
   * provisional response; drachtio-server, and peers that send an UPDATE then, accept any.
   */
  get #isOfferUnanswered(): boolean {
    if (this.#state !== 'early' || this.usage !== 'invite' || this.#hasEarlyAnswer) return false
    return this.role === 'uac' || this.#reliable1xx?.hasAgreed !== true
  }

  // ---- responses that must arrive (§13, RFC 3262) ----

  /** Our 2xx to an INVITE is repeated until its ACK. */
  answeredWith(reliable2xx: Reliable2xx): void {
    this.#state = 'confirmed'
    this.#reliable2xx = reliable2xx
  }

  get awaitsAck(): boolean {
    return this.#reliable2xx !== undefined
  }

  /** The 2xx that an ACK with that number acknowledges; undefined: none waits for it. */
  takeAck(cseq: number | undefined): Reliable2xx | undefined {
    const awaiting = this.#reliable2xx
    if (awaiting === undefined || awaiting.cseq !== cseq) return undefined
    awaiting.stop()
    this.#reliable2xx = undefined
    return awaiting
  }

  /** The provisional responses (as UAS) that wait for their PRACK. */
  get reliable1xx(): Reliable1xx | undefined {
    return this.#reliable1xx
  }

  /** The reliable provisional responses of the INVITE with that number. */
  reliable1xxOf(cseq: number, begin: () => Reliable1xx): Reliable1xx {
    const current = this.#reliable1xx
    return current?.cseq === cseq ? current : (this.#reliable1xx = begin())
  }

  /** An unreliable provisional response (as UAS) has carried a session description. */
  answeredEarly(): void {
    this.#hasEarlyAnswer = true
  }

  /** Notes (as UAC) which PRACK belongs to which branch, and whether the offer is answered. */
  provisionalReceived(response: SipMessage): void {
    const branch = this.branchOf(response.toTag) ?? this
    if (response.has('RSeq')) branch.#unacknowledgedRSeq = Number(response.get('RSeq'))
    if (response.hasBody) branch.#hasEarlyAnswer = true
  }

  get answeredInvite(): AnsweredInvite | undefined {
    return this.#answeredInvite
  }

  /** The 2xx to `invite` has come (as UAC). */
  awaitAck(invite: AnsweredInvite): void {
    this.#answeredInvite = invite
  }

  ackSent(): void {
    this.#answeredInvite = undefined
  }

  // ---- branches of one INVITE (§12.1.2) ----

  /** The dialog of this INVITE with that remote tag. */
  branchOf(remoteTag: string): Dialog | undefined {
    const tag = remoteTag.toLowerCase()
    return this.remoteTag.toLowerCase() === tag ? this : this.#branches?.get(tag)
  }

  addBranch(branch: Dialog): void {
    this.#branches ??= new Map()
    if (this.#branches.size < MAX_BRANCHES)
      this.#branches.set(branch.remoteTag.toLowerCase(), branch)
  }

  /** This branch was answered. Until the transaction ends, another branch may still answer. */
  succeeds(early: Dialog): void {
    this.#branches = early.#branches
    if (early.remoteTag !== this.remoteTag) this.#branches ??= new Map()
    this.#branches?.set(early.remoteTag.toLowerCase(), early)
  }

  get hasBranches(): boolean {
    return this.#branches !== undefined && this.#state === 'early'
  }

  /** Another branch has answered, or rung, as well. */
  get isForked(): boolean {
    return this.#branches !== undefined
  }

  forgetBranches(): void {
    this.#branches = undefined
  }

  /**
   * The early dialog that a request of the application means, by its To tag or by its PRACK's RSeq.
   */
  branchFor(toTag: string, rseq: number | undefined): Dialog {
    const named = this.branchOf(toTag)
    if (named || rseq === undefined) return named ?? this
    const branches = [this, ...(this.#branches?.values() ?? [])]
    return branches.find((branch) => branch.#unacknowledgedRSeq === rseq) ?? this
  }

  // ---- sessions and subscriptions ----

  /** Absent: the session has no timer (RFC 4028). */
  get session(): SessionTimer | undefined {
    return this.#session
  }

  startSession(timer: SessionTimer): void {
    this.#session = timer
  }

  /** A subscription lives on until `at` unless it is renewed again (RFC 6665). */
  renewSubscription(at: number, deadlines: Deadlines, onExpired: () => void, now: number): void {
    if (this.usage !== 'subscription' || this.#state === 'terminated') return
    this.#subscriptionEnd ??= new LongDeadline(deadlines, onExpired)
    this.#subscriptionEnd.set(at, now)
  }
}

/** §12.2.2, RFC 3311 §5.2, RFC 6665 §4.4.1. */
const refreshesTarget = new Set(['INVITE', 'UPDATE', 'SUBSCRIBE', 'NOTIFY'])

/**
 * Whether a method may begin a subscription outside a dialog: SUBSCRIBE, and REFER by implication
 * (RFC 3515 §2.4.4).
 */
export const isSubscribing = (method: string): boolean =>
  method === 'SUBSCRIBE' || method === 'REFER'

/**
 * The id that drachtio applications know: Call-ID and the tag of the party that sent the INVITE.
 */
export const dialogId = (callId: string, inviterTag: string): string =>
  `${callId};from-tag=${inviterTag}`

/** Call-ID and our tag: tags are compared without case (§19.3). */
export const dialogKey = (callId: string, localTag: string): string =>
  `${callId} ${localTag.toLowerCase()}`

/** The party that sent the INVITE is `uac`; the dialog's id carries that party's tag. */
export type DialogRole = 'uac' | 'uas'

/** The usage that a dialog lives for: a call, or a subscription (RFC 6665). */
type DialogUsage = 'invite' | 'subscription'

interface RouteToPeer {
  readonly routeSet: readonly string[]
  readonly remoteTarget: string
  readonly flow: Flow
  /** Requests go back by `flow` instead of to the remote target: a stream, or a peer behind NAT. */
  readonly isFlowBound: boolean
}

interface DialogStart extends RouteToPeer {
  readonly role: DialogRole
  readonly usage: DialogUsage
  /** Default: `early`. */
  readonly state?: 'early' | 'confirmed'
  readonly clientId: number
  readonly callId: string
  /**
   * Header values that name the two parties, each with its tag; `remote` may lack one (RFC 2543).
   */
  readonly local: string
  readonly remote: string
  readonly localTag: string
  readonly remoteTag: string
  readonly localCseq: number
  /** -1 until the other side has sent a request. */
  readonly remoteCseq: number
  /** Our Contact in this dialog. */
  readonly contact: string
}

/**
 * Route sets: RFC 3261 §12.2.1.1 in dialogs, §8.1.2 outside, §16.6 step 6 for forwarded requests.
 */
interface RoutedRequest {
  readonly uri: string
  readonly routes: readonly string[]
  /** The URI or Route value that names the next hop. */
  readonly hop: string
}

/**
 * Request-URI, Route and next hop of a request for `uri`. A strict router that comes next stands in
 * the Request-URI; then `uri` goes to the end of the Route.
 */
export function routeBy(routeSet: readonly string[], uri: string): RoutedRequest {
  const [first, ...rest] = routeSet
  if (first === undefined || isLoose(first)) return { uri, routes: routeSet, hop: first ?? uri }
  return { uri: bareUri(first), routes: [...rest, `<${uri}>`], hop: first }
}

const isLoose = (route: string): boolean => parseUri(bareUri(route))?.params.has('lr') ?? false

/** The URI inside `<…>`, or the value itself. */
export function bareUri(value: string): string {
  const open = value.indexOf('<')
  if (open === -1) return value.trim()
  const close = value.indexOf('>', open)
  return value.slice(open + 1, close === -1 ? undefined : close)
}

// How long a session lasts, and which side refreshes it: RFC 4028 §7.2 and §9. Pure.

export const sessionExpiresOf = (message: SipMessage): SessionExpires | undefined => {
  const value = message.get('Session-Expires')
  return value === undefined ? undefined : parseSessionExpires(value)
}

/** The shortest interval that a request accepts; 0: any. */
export const minSeOf = (message: SipMessage): number => parseMinSE(message.get('Min-SE') ?? '') ?? 0

/**
 * A proxy may add `Session-Expires` for a sender that does not know the extension; only `Supported`
 * or `Require` shows that it does.
 */
export const knowsTimer = (message: SipMessage): boolean =>
  parseOptionTags([...message.all('Supported'), ...message.all('Require')]).includes('timer')

/** Whether the sender takes UPDATE; undefined: it does not say. */
export const takesUpdate = (message: SipMessage): boolean | undefined =>
  message.has('Allow') ? parseOptionTags(message.all('Allow')).includes('update') : undefined

interface SessionSettings {
  readonly minSessionSeconds: number
  readonly defaultRefresher: Refresher
}

/**
 * The terms of our 2xx to `request`. `given` is what the application wants, `current` what holds;
 * without either, a peer that does not name the refresher gets a session timer only by
 * `defaultRefresher`.
 */
export function termsOfAnswer(
  request: SipMessage,
  given: string | undefined,
  current: SessionTerms | undefined,
  { minSessionSeconds: minSeconds, defaultRefresher }: SessionSettings,
): SessionTerms | undefined {
  const wanted = given === undefined ? undefined : parseSessionExpires(given)
  const offered = sessionExpiresOf(request)
  const isLeftToUs =
    wanted === undefined && offered?.refresher === undefined && current === undefined
  if (isLeftToUs && (offered === undefined || defaultRefresher === 'none')) return undefined
  const most = offered?.seconds ?? Infinity
  const seconds = Math.min(wanted?.seconds ?? offered?.seconds ?? current?.seconds ?? most, most)
  const isAgreed = knowsTimer(request)
  const least = Math.max(minSeconds, isAgreed ? minSeOf(request) : 0)
  // §9, Table 2: the side that the request names; a peer that does not know the extension cannot
  // refresh.
  const ours = isLeftToUs ? defaultRefresher : current?.isOurs ? 'uas' : 'uac'
  const refresher = offered?.refresher ?? wanted?.refresher ?? ours
  return { seconds: Math.max(seconds, least), isOurs: !isAgreed || refresher === 'uas', isAgreed }
}

/** The header lines that say so; §9: `Require: timer` obliges a peer that is to refresh. */
export function linesOfAnswer(
  { seconds, isOurs, isAgreed }: SessionTerms,
  isRequired: boolean,
): string {
  const expires = `Session-Expires: ${seconds};refresher=${isOurs ? 'uas' : 'uac'}\r\n`
  return isAgreed && !isOurs && !isRequired ? `Require: timer\r\n${expires}` : expires
}

/**
 * The terms of a 2xx to a request of ours that asked for `asked` seconds. A peer that says nothing
 * leaves the refresh to us (§7.2): its silence would otherwise never be noticed.
 */
export function termsOfResponse(
  response: SipMessage,
  asked: number | undefined,
  minSeconds: number,
): SessionTerms | undefined {
  const granted = sessionExpiresOf(response)
  const seconds = granted?.seconds ?? asked
  if (seconds === undefined) return undefined
  return {
    seconds: Math.max(seconds, minSeconds),
    isOurs: granted?.refresher !== 'uas',
    isAgreed: granted !== undefined,
  }
}

/** Header lines for the session in a request of ours (§7.4: the roles stay). */
export const linesOfRequest = ({ seconds, isOurs }: SessionTerms, minSeconds: number): string =>
  `Supported: timer\r\nSession-Expires: ${seconds};refresher=${isOurs ? 'uac' : 'uas'}\r\n` +
  `Min-SE: ${minSeconds}\r\n`

/**
 * The same for a request of the application, which need not say so itself; `given` is what it says.
 * Empty where nothing can be refreshed.
 */
export function sessionFor(
  { session, state }: Dialog,
  method: string,
  given: string | undefined,
  minSeconds: number,
): { readonly lines: string; readonly seconds: number | undefined } {
  if (method !== 'INVITE' && method !== 'UPDATE') return { lines: '', seconds: undefined }
  if (given !== undefined || session === undefined || state !== 'confirmed')
    return { lines: '', seconds: secondsIn(given) }
  const least = Math.max(minSeconds, session.minSeconds)
  return { lines: linesOfRequest(session.terms, least), seconds: session.terms.seconds }
}

export const secondsIn = (sessionExpires: string | undefined): number | undefined =>
  sessionExpires === undefined ? undefined : parseSessionExpires(sessionExpires)?.seconds
