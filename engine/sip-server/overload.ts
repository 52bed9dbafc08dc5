/**
 * Refuses new calls while what arrives waits too long: measures ten times a second, and says of
 * each new call whether there is room for it. Requests inside dialogs are never asked about.
 * Without new calls it measures once a second: ten wake-ups are half of what a process costs that
 * has nothing to do.
 */
import type { Flow, Listener } from './flow.ts'
import type { SipMessage } from '../../schema/sip/message.ts'
import type { ServerLog } from './options.ts'
import { Backlog } from './backlog.ts'
import { AdmissionControl } from './admission-control.ts'

export interface OverloadDeps {
  readonly now: () => number
  readonly token: () => string
  /** Sends to one of our own listeners. */
  readonly send: (text: string, flow: Flow) => void
  /** Calls that are let in whatever the load; asked only about one that would be refused. */
  readonly isUrgent: (requestUri: string) => boolean
  /** Whether calls of this source are refused before those of others. */
  readonly isStranger: (source: Flow) => boolean
  /** The part of the time since it was asked last in which the event loop had work to do. */
  readonly utilization: () => number
  /** Calls `work` every `everyMs` until the returned function is called. */
  readonly repeat: (work: () => void, everyMs: number) => () => void
  readonly log: ServerLog
}

/** How busy the server is. */
export interface Load {
  /** How long what arrives now waits before it is read. Milliseconds. */
  readonly lagMs: number
  /** The part of new calls that is let in: 1 is all of them. */
  readonly share: number
  /** New calls that were refused since the start. */
  readonly refused: number
}

const periodMs = 100
const restingPeriodMs = 1_000

/** So many measurements without a new call, and it rests. */
const restsAfter = 20

/** A loop that is so busy without new calls is measured as often as with them. */
const wakefulFrom = 0.5

/**
 * Nothing is refused for so long after a start: code that has just been loaded is slow at first.
 */
const warmUpMs = 5_000

/** The interval of log lines during overload. Milliseconds. */
const reportMs = 10_000

export class Overload implements Load {
  readonly #deps: OverloadDeps
  readonly #admission = new AdmissionControl()
  readonly #queues = new Map<Listener, { readonly backlog: Backlog; readonly flow: Flow }>()
  #stopRepeating: () => void = () => undefined
  #isRunning = false
  #periodMs = restingPeriodMs
  /** Measurements since the last new call. */
  #quiet = 0
  #lastTurn = 0
  #latenessMs = 0
  #warmUpEndsAt = 0
  #refused = 0
  #refusedBefore = 0
  #beganAt: number | undefined
  #reportedAt = 0

  constructor(deps: OverloadDeps) {
    this.#deps = deps
  }

  start(listeners: readonly Listener[]): void {
    const { now, token } = this.#deps
    for (const listener of listeners) {
      if (listener.protocol !== 'udp') continue
      const { port } = listener
      const flow = { listener, address: ownAddress(listener.address), port, connectionId: 0 }
      this.#queues.set(listener, { backlog: new Backlog(now, token()), flow })
    }
    this.#lastTurn = now()
    this.#warmUpEndsAt = this.#lastTurn + warmUpMs
    this.#isRunning = true
    this.#measureEvery(restingPeriodMs)
  }

  stop(): void {
    this.#isRunning = false
    this.#stopRepeating()
  }

  /** Whether a datagram is a measurement of ours; the caller then drops it. */
  takes(bytes: Buffer, listener: Listener): boolean {
    return this.#queues.get(listener)?.backlog.takes(bytes) === true
  }

  /** The longest delay of a UDP queue, or the lateness of the event loop. */
  get lagMs(): number {
    let lagMs = this.#latenessMs
    for (const { backlog } of this.#queues.values()) lagMs = Math.max(lagMs, backlog.delayMs)
    return Math.max(lagMs, this.#deps.now() - this.#lastTurn - this.#periodMs)
  }

  get share(): number {
    return this.#admission.share
  }

  get refused(): number {
    return this.#refused
  }

  /** Asked for each INVITE that belongs to no transaction. */
  refuses(invite: SipMessage, source: Flow): boolean {
    this.#quiet = 0
    if (this.#periodMs !== periodMs && this.#isRunning) this.#wake()
    if (!this.#admission.isEngaged || invite.toTag !== '') return false
    const isAdmitted = this.#admission.admits(drawOf(invite)) && !this.#deps.isStranger(source)
    if (isAdmitted || this.#deps.isUrgent(invite.uri)) return false
    this.#refused += 1
    return true
  }

  #measure(): void {
    const now = this.#takeTurn()
    const lagMs = now < this.#warmUpEndsAt ? 0 : this.lagMs
    const utilization = this.#deps.utilization()
    this.#admission.adjust(lagMs, utilization)
    this.#report(now)
    this.#measureQueues()
    if (this.#admission.isEngaged || utilization >= wakefulFrom) this.#quiet = 0
    else this.#quiet += 1
    const wantedMs = this.#quiet > restsAfter ? restingPeriodMs : periodMs
    if (wantedMs !== this.#periodMs) this.#measureEvery(wantedMs)
  }

  /** Before the call that ends the rest: what waits behind it is measured from here on. */
  #wake(): void {
    this.#takeTurn()
    // The rest is no part of the time that is judged next.
    this.#deps.utilization()
    this.#measureQueues()
    this.#measureEvery(periodMs)
  }

  #takeTurn(): number {
    const now = this.#deps.now()
    this.#latenessMs = Math.max(0, now - this.#lastTurn - this.#periodMs)
    this.#lastTurn = now
    return now
  }

  #measureQueues(): void {
    for (const { backlog, flow } of this.#queues.values()) this.#deps.send(backlog.next(), flow)
  }

  #measureEvery(everyMs: number): void {
    this.#stopRepeating()
    this.#periodMs = everyMs
    this.#stopRepeating = this.#deps.repeat(() => this.#measure(), everyMs)
  }

  #report(now: number): void {
    const { isEngaged, share } = this.#admission
    if (!isEngaged) {
      if (this.#beganAt === undefined) return
      const refused = this.#refused - this.#refusedBefore
      this.#deps.log('info', 'overload is over', { refused, lastedMs: now - this.#beganAt })
      this.#beganAt = undefined
      return
    }
    if (this.#beganAt === undefined) {
      this.#beganAt = now
      this.#refusedBefore = this.#refused
    } else if (now - this.#reportedAt < reportMs) return
    this.#reportedAt = now
    const refused = this.#refused - this.#refusedBefore
    this.#deps.log('warn', 'overload: new calls are refused', {
      delayMs: Math.round(this.lagMs),
      admitted: Math.round(share * 100) / 100,
      refused,
    })
  }
}

/** The address at which a listener on all addresses reaches itself. */
function ownAddress(address: string): string {
  if (address === '0.0.0.0') return '127.0.0.1'
  return address === '::' ? '::1' : address
}

/**
 * The same number from 0 up to 1 for each copy of an INVITE, another one when the caller tries
 * again with the next CSeq: no caller is let in by repeating, and none is shut out for good.
 * FNV-1a, and the last step of MurmurHash3 so that similar Call-IDs are spread as well.
 */
function drawOf({ callId, cseq }: SipMessage): number {
  let hash = 0x811c9dc5 ^ (cseq?.number ?? 0)
  for (let i = 0; i < callId.length; i++) hash = Math.imul(hash ^ callId.charCodeAt(i), 0x01000193)
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b)
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35)
  return ((hash ^ (hash >>> 16)) >>> 0) / 0x1_0000_0000
}
