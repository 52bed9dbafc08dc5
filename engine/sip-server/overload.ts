/**
 * Refuses new calls while what arrives waits too long: measures ten times a second, and says of
 * each new call whether there is room for it. Requests inside dialogs are never asked about.
 */
import type { Flow, Listener } from './flow.ts'
import type { SipMessage } from './message/message.ts'
import type { Log } from './options.ts'

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
  readonly log: Log
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

/**
 * Nothing is refused for so long after a start: code that has just been loaded is slow at first.
 */
const warmUpMs = 5_000

/** The interval of log lines during overload. Milliseconds. */
const reportMs = 10_000

export class Overload implements Load {
  readonly #deps: OverloadDeps
  readonly #admission = new Admission()
  readonly #queues = new Map<Listener, { readonly backlog: Backlog; readonly flow: Flow }>()
  #stopRepeating: () => void = () => undefined
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
    this.#stopRepeating = this.#deps.repeat(() => this.#measure(), periodMs)
  }

  stop(): void {
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
    return Math.max(lagMs, this.#deps.now() - this.#lastTurn - periodMs)
  }

  get share(): number {
    return this.#admission.share
  }

  get refused(): number {
    return this.#refused
  }

  /** Asked for each INVITE that belongs to no transaction. */
  refuses(invite: SipMessage, source: Flow): boolean {
    if (!this.#admission.isEngaged || invite.toTag !== '') return false
    const isAdmitted = this.#admission.admits(drawOf(invite)) && !this.#deps.isStranger(source)
    if (isAdmitted || this.#deps.isUrgent(invite.uri)) return false
    this.#refused += 1
    return true
  }

  #measure(): void {
    const now = this.#deps.now()
    this.#latenessMs = Math.max(0, now - this.#lastTurn - periodMs)
    this.#lastTurn = now
    const lagMs = now < this.#warmUpEndsAt ? 0 : this.lagMs
    this.#admission.adjust(lagMs, this.#deps.utilization())
    this.#report(now)
    for (const { backlog, flow } of this.#queues.values()) this.#deps.send(backlog.next(), flow)
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

/**
 * The share of new calls that is let in: a control loop that holds the delay of waiting datagrams
 * near a target, instead of letting a queue grow in which every call grows too old (RFC 7339 §5 in
 * its loss-based form, but decided here and not by the sender). Pure: delays go in, a share comes
 * out.
 */

/**
 * A delay that stays beyond this is overload. After T1, 500 ms, every sender repeats its unanswered
 * requests, and repetitions make the server collapse; up to then a queue is only a burst.
 * Milliseconds.
 */
const engageMs = 400

/**
 * The delay that the control loop aims at while calls are refused. It leaves OPTIONS of ours, which
 * wait like all others, in time. Milliseconds.
 */
const targetMs = 200

/** Change of the share for one second above the target, and for one second that was added. */
const proportional = 0.5
const derivative = 2

/** Limits of one step. Alike: else a delay that merely jumps about would wear the share down. */
const fastestFall = 0.85
const fastestRise = 1.15

/**
 * The least of so many delays counts: a queue that stands is found in all of them. A pause (for the
 * collector, or because other processes want the machine) is not, and is not mended by refusing.
 */
const samples = 3

/** A loop that has time to spare is not the reason for a delay: refusing would not help. */
const busyFrom = 0.9

/** A few calls are always let in: otherwise nothing would show that the overload is over. */
const smallestShare = 0.01

class Admission {
  readonly #delays: number[] = []
  readonly #utilizations: number[] = []
  #share = 1
  #isEngaged = false
  #queueMs = 0

  /** Whether anything is refused at present. */
  get isEngaged(): boolean {
    return this.#isEngaged
  }

  /** The part of new calls that is let in: 1 is all of them. */
  get share(): number {
    return this.#share
  }

  /**
   * Takes the delay as it is now; to be called ten times a second.
   * @param utilization the part of the time since the last call in which the loop had work to do
   */
  adjust(delayMs: number, utilization: number): void {
    keep(this.#delays, delayMs)
    keep(this.#utilizations, utilization)
    const before = this.#queueMs
    this.#queueMs = this.#delays.length < samples ? 0 : Math.min(...this.#delays)
    const isBusy = sum(this.#utilizations) >= busyFrom * samples
    if (!this.#isEngaged && (this.#queueMs < engageMs || !isBusy)) return
    this.#isEngaged = true
    const grownMs = this.#queueMs - before
    const excess = (proportional * (this.#queueMs - targetMs) + derivative * grownMs) / 1_000
    const factor = isBusy ? Math.min(Math.max(1 - excess, fastestFall), fastestRise) : fastestRise
    this.#share = Math.min(Math.max(this.#share * factor, smallestShare), 1)
    // The way back in is the whole way back up, so that a load at the edge does not flap.
    if (this.#share === 1 && (this.#queueMs < targetMs || !isBusy)) this.#isEngaged = false
  }

  /** @param draw from 0 up to 1; the same for every copy of one request */
  admits(draw: number): boolean {
    return !this.#isEngaged || draw < this.#share
  }
}

/** The latest `samples` values. */
function keep(values: number[], value: number): void {
  values.push(value)
  if (values.length > samples) values.shift()
}

const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0)

/**
 * How long a datagram waits until it is read. Under overload the event loop itself turns quickly: a
 * turn reads a few datagrams, and thousands wait in the kernel's buffer, where the process cannot
 * see them. So a datagram of our own is sent through the same queue ten times a second, and its age
 * is the delay.
 */

/**
 * No SIP message begins so; neither does a keep-alive of a NAT binding that holds only such bytes.
 */
const mark = 0x01

/**
 * The kernel has dropped a datagram that was not read by then: its buffer is full. Milliseconds.
 */
const lostAfterMs = 2_000

/** One queue: a socket of ours. */
export class Backlog {
  /** Milliseconds of a clock that does not jump. */
  readonly #now: () => number
  readonly #prefix: string
  /** Datagrams that were sent and not read yet, oldest first: text and time. */
  readonly #underway = new Map<string, number>()
  #sent = 0
  #measuredMs: number | undefined
  #isLosing = false

  /** @param token unguessable letters and digits */
  constructor(now: () => number, token: string) {
    this.#now = now
    this.#prefix = `${String.fromCharCode(mark)}${token}-`
  }

  /** The next datagram to send to this queue. */
  next(): string {
    const now = this.#now()
    for (const [text, sentAt] of this.#underway)
      if (now - sentAt >= lostAfterMs) {
        this.#underway.delete(text)
        this.#isLosing = true
      }
    const text = `${this.#prefix}${++this.#sent}`
    this.#underway.set(text, now)
    return text
  }

  /** Whether the datagram is one of ours; notes its age. */
  takes(bytes: Buffer): boolean {
    if (bytes[0] !== mark) return false
    const text = bytes.toString('latin1')
    if (!text.startsWith(this.#prefix)) return false
    const sentAt = this.#underway.get(text)
    if (sentAt === undefined) return true
    this.#underway.delete(text)
    this.#measuredMs = this.#now() - sentAt
    this.#isLosing = false
    return true
  }

  /** Milliseconds; 0 as long as nothing has ever come back: a queue that cannot be measured. */
  get delayMs(): number {
    if (this.#measuredMs === undefined) return 0
    if (this.#isLosing) return lostAfterMs
    const [oldest] = this.#underway.values()
    const age = oldest === undefined ? 0 : this.#now() - oldest
    return Math.max(this.#measuredMs, age)
  }
}
