import type { Flow } from '../flow.ts'
import type { SipMessage } from '../message/message.ts'

/**
 * A state machine is a table: state → event → next state and the actions on the way, as in the
 * figures of RFC 3261 §17. An event that a state does not list is ignored there.
 */
interface Step<State extends string, Action extends string> {
  readonly to: State
  readonly do: readonly Action[]
}

export type Table<State extends string, Event extends string, Action extends string> = Readonly<
  Record<State, Readonly<Partial<Record<Event, Step<State, Action>>>>>
>

/**
 * RFC 3261 §17.1.1.1 and Table 4; every other transaction timer is derived from these.
 * Milliseconds.
 */
export interface Timers {
  /** Round-trip estimate: first retransmission; 64·T1 ends a transaction. */
  readonly t1Ms: number
  /** Longest interval between retransmissions of non-INVITE requests and INVITE responses. */
  readonly t2Ms: number
  /** How long a transaction may take. Default: 64·T1. */
  readonly t1x64Ms?: number | undefined
  /** How long a message may live in the network. */
  readonly t4Ms: number
  /**
   * Timer C (§16.6): an INVITE without a final answer is cancelled this long after its last
   * provisional.
   */
  readonly cMs: number
  /** A request that the application has not answered ends with 480 (INVITE) or 500 after this. */
  readonly applicationMs: number
  /**
   * How long the first target of an INVITE may be silent while there is another one; each further
   * one half as long as the one before, so that several silent ones are left within twice this
   * time. Default: as with other requests.
   */
  readonly inviteSilenceMs?: number
}

export const defaultTimers: Timers = {
  t1Ms: 500,
  t2Ms: 4_000,
  t4Ms: 5_000,
  cMs: 185_000,
  applicationMs: 240_000,
}

/**
 * How long a target may be silent while there is another one (RFC 3263 §4.3): four copies by UDP.
 *
 * @param silent how many targets were silent before. An answer takes a round trip: T1 is a cautious
 * estimate of two.
 */
export function silenceMs(
  { t1Ms, inviteSilenceMs }: Timers,
  method: string,
  silent: number,
): number {
  if (method !== 'INVITE' || inviteSilenceMs === undefined) return 8 * t1Ms
  return Math.max(Math.min(inviteSilenceMs, t1Ms / 2), inviteSilenceMs / 2 ** silent)
}

/** Timers B, F, H, J, L, M, and D on unreliable transports: 64·T1. */
export const transactionTimeoutMs = ({ t1Ms, t1x64Ms }: Timers): number => t1x64Ms ?? 64 * t1Ms

/** The services that a transaction uses. Its user (the "TU" of RFC 3261 §17) gets the results. */
export interface TransactionContext {
  readonly timers: Timers
  readonly deadlines: Deadlines
  /** `reference` comes back if the transport fails. */
  send(text: string, flow: Flow, reference: string): void
  /** The same for a copy of what was sent before. */
  repeat(text: string, flow: Flow, reference: string): void
  /** For 64·T1 a copy of the request gets `response` again; '': it is absorbed. `toTag` is ours. */
  keepResponse(key: string, toTag: string, response: string, flow: Flow, now: number): void
  /** For 64·T1 a copy of the failure response to the INVITE with this branch gets its ACK again. */
  keepAck(branch: string, ack: string, flow: Flow, now: number): void
}

/** Walks its table: an event changes the state, and performs the actions of the step. */
export abstract class Transaction<
  State extends string,
  Event extends string,
  Action extends string,
  User extends { onTerminated(now: number): void },
> {
  readonly flow: Flow
  protected readonly context: TransactionContext
  protected user: User
  readonly #table: Table<State, Event, Action>
  #state: State

  constructor(
    table: Table<State, Event, Action>,
    initial: State,
    flow: Flow,
    user: User,
    context: TransactionContext,
  ) {
    this.flow = flow
    this.context = context
    this.user = user
    this.#table = table
    this.#state = initial
  }

  get state(): State {
    return this.#state
  }

  /** Without an event: neither actions nor the end are reported. */
  protected enter(state: State): void {
    this.#state = state
  }

  protected accepts(event: Event): boolean {
    return this.#table[this.#state][event] !== undefined
  }

  protected step(event: Event, now: number): void {
    const step = this.#table[this.#state][event]
    if (step === undefined) return
    this.#state = step.to
    for (const action of step.do) this.perform(action, now)
    if (step.to === 'terminated') this.user.onTerminated(now)
  }

  protected abstract perform(action: Action, now: number): void
}

export type ClientFailure = 'timeout' | 'transport'

export interface ClientUser {
  onResponse(response: SipMessage, flow: Flow, now: number): void
  onFailure(failure: ClientFailure, now: number): void
  /** No further call follows. */
  onTerminated(now: number): void
}

export interface ServerUser {
  /** Our tag in the responses; '' while there is none. */
  readonly toTag: string
  /** Timer H: the final response was not acknowledged. */
  onAckTimeout(now: number): void
  /** No further call follows; copies of an answered request may still come. */
  onTerminated(now: number): void
}

/**
 * A request as it went out, with the fields that a transaction needs again: RFC 3261 §17.1.1.3
 * (ACK of a failure) and §9.1 (CANCEL) copy them.
 */
export interface SentRequest {
  readonly method: string
  readonly uri: string
  /** Value of the top (our) Via. */
  readonly via: string
  readonly branch: string
  readonly routes: readonly string[]
  readonly maxForwards: string
  readonly from: string
  readonly to: string
  readonly callId: string
  readonly cseq: number
  /** Authorization and Proxy-Authorization, as whole lines: an ACK repeats them (§22.1). */
  readonly credentials: string
  /** The whole message. */
  readonly text: string
}

/** RFC 3261 §17.1.1.3: same branch, Route and URI as the INVITE; To of the response. */
export const ackOfFailure = (invite: SentRequest, to: string): string =>
  sameHop(invite, 'ACK', to, invite.credentials)

/** RFC 3261 §9.1. `extra` holds whole header lines such as Reason. */
export const cancelOf = (invite: SentRequest, extra: string): string =>
  sameHop(invite, 'CANCEL', invite.to, extra)

function sameHop(invite: SentRequest, method: string, to: string, extra: string): string {
  const routes = invite.routes.map((route) => `Route: ${route}\r\n`).join('')
  return (
    `${method} ${invite.uri} SIP/2.0\r\nVia: ${invite.via}\r\n${routes}` +
    `Max-Forwards: ${invite.maxForwards}\r\nFrom: ${invite.from}\r\nTo: ${to}\r\n` +
    `Call-ID: ${invite.callId}\r\nCSeq: ${invite.cseq} ${method}\r\n${extra}Content-Length: 0\r\n\r\n`
  )
}

/**
 * All deadlines of the stack. Nearly every timer of SIP has one of a dozen fixed delays, and time
 * only moves forward, so one chain per delay is always sorted: starting and cancelling cost a few
 * nanoseconds whatever the number of calls. A cancelled deadline leaves its chain at once: most are
 * cancelled, and some would otherwise stay in memory for minutes.
 */
export interface TimerTarget<Name extends string> {
  onTimer(name: Name, now: number): void
}

/** A collection whose entries end without a deadline each. */
export interface ExpiringEntries {
  /** When the first of them ends. */
  readonly nextExpiry: number | undefined
  expire(now: number): void
}

/** Deadlines of one delay, earliest first. */
interface Chain {
  readonly delayMs: number
  first: Deadline | undefined
  last: Deadline | undefined
  size: number
}

export class Deadline<Name extends string = string> {
  readonly at: number
  readonly name: Name
  /** Absent once it has fired or was cancelled. */
  target: TimerTarget<Name> | undefined
  readonly chain: Chain
  before: Deadline | undefined = undefined
  after: Deadline | undefined = undefined

  constructor(at: number, name: Name, target: TimerTarget<Name>, chain: Chain) {
    this.at = at
    this.name = name
    this.target = target
    this.chain = chain
  }

  cancel(): void {
    if (this.target === undefined) return
    this.target = undefined
    const { before, after, chain } = this
    chain.size -= 1
    if (before) before.after = after
    else chain.first = after
    if (after) after.before = before
    else chain.last = before
    // Links of a dead entry would keep its neighbours in memory.
    this.before = undefined
    this.after = undefined
  }
}

/** Beyond so many chains the empty ones are deleted: unusual delays must not fill the memory. */
const MAX_CHAINS = 32

export class Deadlines {
  #chains: Chain[] = []
  readonly #watched: ExpiringEntries[] = []

  /** Calls `expiring.expire` from now on, until the process ends. */
  watch(expiring: ExpiringEntries): void {
    this.#watched.push(expiring)
  }

  /** Calls `target.onTimer(name, …)` once, `delayMs` after `now`. */
  start<Name extends string>(
    target: TimerTarget<Name>,
    name: Name,
    delayMs: number,
    now: number,
  ): Deadline<Name> {
    const chain = this.#chainOf(delayMs)
    const deadline = new Deadline(now + delayMs, name, target, chain)
    // `name` of a chained entry always goes back to the target that came with it.
    const entry = deadline as unknown as Deadline
    const { last } = chain
    entry.before = last
    if (last) last.after = entry
    else chain.first = entry
    chain.last = entry
    chain.size += 1
    return deadline
  }

  next(): number | undefined {
    let next = this.#earliest()?.at
    for (const { nextExpiry } of this.#watched)
      if (nextExpiry !== undefined && (next === undefined || nextExpiry < next)) next = nextExpiry
    return next
  }

  /** Fires everything that is due, earliest first; timers started meanwhile fire too if due. */
  expire(now: number): void {
    for (let due = this.#earliest(); due && due.at <= now; due = this.#earliest()) {
      const { target, name } = due
      due.cancel()
      target?.onTimer(name, now)
    }
    for (const expiring of this.#watched) expiring.expire(now)
  }

  /** Deadlines that are waiting. */
  get size(): number {
    let waiting = 0
    for (const { size } of this.#chains) waiting += size
    return waiting
  }

  #earliest(): Deadline | undefined {
    let best: Deadline | undefined
    for (const { first } of this.#chains)
      if (first && (best === undefined || first.at < best.at)) best = first
    return best
  }

  #chainOf(delayMs: number): Chain {
    for (const chain of this.#chains) if (chain.delayMs === delayMs) return chain
    if (this.#chains.length >= MAX_CHAINS)
      this.#chains = this.#chains.filter(({ first }) => first !== undefined)
    const chain: Chain = { delayMs, first: undefined, last: undefined, size: 0 }
    this.#chains.push(chain)
    return chain
  }
}

/** The most that a long deadline may come too early. */
const QUANTUM_MS = 250

export class LongDeadline implements TimerTarget<'step'> {
  readonly #deadlines: Deadlines
  readonly #onDue: (now: number) => void
  #at = 0
  #step: Deadline<'step'> | undefined

  constructor(deadlines: Deadlines, onDue: (now: number) => void) {
    this.#deadlines = deadlines
    this.#onDue = onDue
  }

  /** Replaces the time that was set before. */
  set(at: number, now: number): void {
    this.cancel()
    this.#at = at
    this.#advance(now)
  }

  cancel(): void {
    this.#step?.cancel()
    this.#step = undefined
  }

  onTimer(_timer: 'step', now: number): void {
    this.#step = undefined
    if (this.#at - now < QUANTUM_MS) return this.#onDue(now)
    this.#advance(now)
  }

  /** The longest step that does not go too far: 250 ms, 1 s, 4 s, 16 s … */
  #advance(now: number): void {
    const leftMs = this.#at - now
    let stepMs = QUANTUM_MS
    while (stepMs * 4 <= leftMs) stepMs *= 4
    const delayMs = leftMs < QUANTUM_MS ? 0 : stepMs
    this.#step = this.#deadlines.start(this, 'step', delayMs, now)
  }
}
