import type { Flow } from '../flow.ts'
import type { SipMessage } from '../../../schema/sip/message.ts'
import type { Deadlines } from './deadlines.ts'

/**
 * A state machine is a table: state → event → next state and the actions on the way, as in the
 * figures of RFC 3261 §17. An event that a state does not list is ignored there.
 */
interface Step<State extends string, Action extends string> {
  readonly to: State
  readonly do: readonly Action[]
}

export type TransactionTable<
  State extends string,
  Event extends string,
  Action extends string,
> = Readonly<Record<State, Readonly<Partial<Record<Event, Step<State, Action>>>>>>

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
  readonly #table: TransactionTable<State, Event, Action>
  #state: State

  constructor(
    table: TransactionTable<State, Event, Action>,
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

  /** Enters a state without an event: neither actions nor the end are reported. */
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
    `Call-ID: ${invite.callId}\r\nCSeq: ${invite.cseq} ` +
    `${method}\r\n${extra}Content-Length: 0\r\n\r\n`
  )
}
