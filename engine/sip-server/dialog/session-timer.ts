/**
 * How long a session may go on without a refresh, and whose part the refresh is: RFC 4028. What a
 * refresh is made of is the core's matter.
 */
import { detachString } from '../../../schema/sip/message.ts'
import { type Deadlines, LongDeadline } from '../transaction/deadlines.ts'

export interface SessionTerms {
  readonly seconds: number
  /** The refresh is our part. */
  readonly isOurs: boolean
  /** The peer takes part; else we look by ourselves whether it is still there (§7.2). */
  readonly isAgreed: boolean
}

export interface SessionUser {
  onRefreshDue(now: number): void
  /** No refresh came in time. */
  onExpired(now: number): void
}

export class SessionTimer {
  #localSdp = ''
  #takesUpdate = false
  #minSeconds = 0
  /** Status of the refusal since the session was refreshed; 0: none. */
  #refusedWith = 0
  #abandonRefresh: (() => void) | undefined
  #terms: SessionTerms
  #expiresAt = 0
  #isRefreshNext = false
  #dueAt = 0
  readonly #user: SessionUser
  readonly #deadline: LongDeadline

  constructor(terms: SessionTerms, user: SessionUser, deadlines: Deadlines, now: number) {
    this.#terms = terms
    this.#user = user
    this.#deadline = new LongDeadline(deadlines, (at) => this.#onDue(at))
    this.renew(terms, now)
  }

  get terms(): SessionTerms {
    return this.#terms
  }

  /** The offer of a re-INVITE that changes nothing; '': unknown. */
  get localSdp(): string {
    return this.#localSdp
  }

  /** A body without a description says nothing new. */
  noteLocalSdp(body: string): void {
    const sdp = descriptionIn(body)
    if (sdp !== '') this.#localSdp = detachString(sdp)
  }

  /** The peer takes UPDATE, which needs no offer (§7.4). */
  get takesUpdate(): boolean {
    return this.#takesUpdate
  }

  /** Undefined: the peer does not say. */
  noteTakesUpdate(takesUpdate: boolean | undefined): void {
    this.#takesUpdate = takesUpdate ?? this.#takesUpdate
  }

  /** The peer's last word on the shortest interval. */
  get minSeconds(): number {
    return this.#minSeconds
  }

  /**
   * 422: lengthens the interval to what the peer takes; false: the peer asks for nothing new
   * (§7.4).
   */
  lengthen(minSeconds: number, now: number): boolean {
    if (minSeconds <= this.#minSeconds) return false
    this.#minSeconds = minSeconds
    const terms = this.#terms
    this.renew({ ...terms, seconds: Math.max(terms.seconds, minSeconds) }, now)
    return true
  }

  /** The session began before this process. */
  resume(minSeconds: number, refreshInMs: number, now: number): void {
    this.#minSeconds = minSeconds
    if (this.#terms.isOurs) this.retry(refreshInMs, now)
  }

  /**
   * Notes the refusal of a refresh; false: the same refusal came before, since the last refresh.
   */
  refused(status: number): boolean {
    const isNew = this.#refusedWith !== status
    this.#refusedWith = status
    return isNew
  }

  get isRefreshing(): boolean {
    return this.#abandonRefresh !== undefined
  }

  /** `abandon` is called if the session ends before the refresh. */
  refreshBegins(abandon: () => void): void {
    this.#abandonRefresh = abandon
  }

  refreshEnds(): void {
    this.#abandonRefresh = undefined
  }

  /** The session was refreshed. */
  renew(terms: SessionTerms, now: number): void {
    this.#terms = terms
    this.#refusedWith = 0
    const { seconds, isOurs } = terms
    // §10: BYE before the other side counts the session as expired.
    this.#expiresAt = now + (seconds - Math.min(32, seconds / 3)) * 1_000
    this.#isRefreshNext = isOurs
    // §7.2: at half the interval there is time for a second attempt.
    this.#set(isOurs ? now + seconds * 500 : this.#expiresAt, now)
  }

  /** Another attempt after `delayMs`, if there is time for one. */
  retry(delayMs: number, now: number): void {
    const at = now + delayMs
    this.#isRefreshNext = at < this.#expiresAt
    this.#set(Math.min(at, this.#expiresAt), now)
  }

  /** When the next refresh of ours is due, or the session expires. */
  get dueAt(): number {
    return this.#dueAt
  }

  #set(at: number, now: number): void {
    this.#dueAt = at
    this.#deadline.set(at, now)
  }

  stop(): void {
    this.#deadline.cancel()
    this.#abandonRefresh?.()
    this.#abandonRefresh = undefined
  }

  #onDue(now: number): void {
    if (!this.#isRefreshNext) return this.#user.onExpired(now)
    this.#isRefreshNext = false
    this.#set(this.#expiresAt, now)
    return this.#user.onRefreshDue(now)
  }
}

/**
 * The session description in a body of ours: all of it, or a part of several (RFC 2046 §5.1.1),
 * where the line break before the next delimiter is no line of its own.
 */
function descriptionIn(body: string): string {
  if (body === '' || body.startsWith('v=0')) return body
  const gap = /\n\r?\n(?=v=0\r?\n)/.exec(body)
  if (gap === null) return ''
  const start = gap.index + gap[0].length
  const end = body.indexOf('\n--', start)
  const sdp = end === -1 ? body.slice(start) : body.slice(start, end + 1)
  return sdp.replace(/(\r?\n)\r?\n$/, '$1')
}
