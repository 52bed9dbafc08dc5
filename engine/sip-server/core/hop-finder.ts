/**
 * Finds where a request goes: to the connection that its target has registered over, to an address, or to
 * what DNS says of a name (RFC 3263). Targets that failed lately are tried last.
 */
import { isIP } from 'node:net'
import type { Flow, HopQuestion, HopTarget, Listener } from '../flow.ts'
import { byteLength } from '../message/decode.ts'
import type { SipMessage } from '../message/message.ts'
import type { Identifiers } from './identifiers.ts'
import {
  chooseListener,
  flowsTo,
  flowTo,
  hopOf,
  isOwnAddress,
  questionOf,
  type Hop,
} from './next-hop.ts'
import type { Outbox } from './outbox.ts'
import type { RegistrationFlows } from './registration-flows.ts'

/** Where a request goes, before it is written. */
export interface NextHop {
  /** While there is a `question`, only the listener that the request would leave by. */
  readonly flow: Flow
  readonly question: HopQuestion | undefined
  /** The URI or Route that named it; '' where a connection did, and no other flow will do. */
  readonly target: string
}

export interface Problem {
  readonly problem: string
}

/** Called once, with the preferred flow first; without flows the target cannot be reached. */
type Found = (flows: readonly Flow[], now: number) => void

/** RFC 3261 §18.1.1: where the path MTU is not known, larger requests need congestion control. */
const maxDatagramBytes = 1_300

/** A peer without TCP that drops instead of refusing delays a large request by this. */
const connectMs = 1_000

/** How long a target is avoided after it was silent or failed. */
const avoidMs = 30_000

/** Limit for the Retry-After of a 503. */
const maxRetryAfterMs = 300_000

/** How long TCP is avoided to a peer that refused it, when only the size had asked for it. */
const noTcpMs = 600_000

const maxAvoided = 1_000

export class HopFinder {
  readonly listeners: () => readonly Listener[]
  readonly #registrations: RegistrationFlows
  readonly #outbox: Outbox
  readonly #ids: Identifiers
  /** Who waits for the addresses of a host name, by reference. */
  readonly #resolving = new Map<string, (targets: readonly HopTarget[], now: number) => void>()
  /** Until when a target is avoided, the oldest entry first. */
  readonly #avoided = new Map<string, number>()

  constructor(
    listeners: () => readonly Listener[],
    registrations: RegistrationFlows,
    outbox: Outbox,
    ids: Identifiers,
  ) {
    this.listeners = listeners
    this.#registrations = registrations
    this.#outbox = outbox
    this.#ids = ids
  }

  /** By what the URI says alone; of several listeners that serve it, `preferred`. */
  nextHop(target: string, preferred?: Listener): NextHop | Problem {
    const listeners = this.listeners()
    const hop = hopOf(target)
    if (hop === undefined) return { problem: `invalid request-uri: ${target}` }
    if (hop.isRegistered) {
      const flow = this.#registrations.from(hop.protocol, hop.host, hop.port)
      return flow ? byConnection(flow) : { problem: 'the connection of the registration is closed' }
    }
    const listener = listenerFor(listeners, hop, preferred)
    if (listener === undefined) return { problem: 'requested protocol/transport not available' }
    if (isOwnAddress(listeners, hop.host, hop.port, listener.protocol))
      return { problem: 'can not send request to myself' }
    const question = questionOf(hop, listener.protocol, listeners)
    return { flow: flowTo(listener, hop.host, hop.port), question, target }
  }

  /** The connection that `uri` has registered over. */
  registered(uri: string): NextHop | undefined {
    const flow = this.#registrations.find(uri)
    return flow && byConnection(flow)
  }

  /** Every flow to `target`, now or after a look-up. */
  find(target: string, now: number, found: Found): void {
    const hop = this.registered(target) ?? this.nextHop(target)
    if ('problem' in hop) return found([], now)
    if (hop.question === undefined) return found([hop.flow], now)
    this.lookUp(hop.question, found)
  }

  /** Looks a host name up; `found` is called later. */
  lookUp(question: HopQuestion, found: Found): void {
    const reference = this.#ids.next()
    this.#resolving.set(reference, (targets, now) => {
      const flows = flowsTo(this.listeners(), question.host, targets)
      found(this.#avoidedLast(flows, now), now)
    })
    this.#outbox.push({ kind: 'resolve', question, reference })
  }

  resolved(reference: string, targets: readonly HopTarget[], now: number): void {
    const found = this.#resolving.get(reference)
    this.#resolving.delete(reference)
    found?.(targets, now)
  }

  get resolving(): number {
    return this.#resolving.size
  }

  /** §18.1.1: a large request tries TCP before UDP, unless the transport was asked for or TCP failed lately. */
  tcpFirst(target: string, text: string, flows: readonly Flow[], now: number): readonly Flow[] {
    if (target === '' || !isLarge(text) || hopOf(target)?.isExplicit === true) return flows
    return flows.flatMap((flow) => [...this.#byTcp(flow, now), flow])
  }

  #byTcp({ listener, address, port }: Flow, now: number): readonly Flow[] {
    if (listener.protocol !== 'udp') return []
    const tcp = chooseListener(this.listeners(), 'tcp', address)
    if (tcp === undefined) return []
    const flow = { ...flowTo(tcp, address, port), connectMs }
    return this.#isAvoided(flow, now) ? [] : [flow]
  }

  /** The target behind `flow` was silent or failed, or has refused with 503 (RFC 3261 §21.5.4). */
  failed(flow: Flow, refusal: SipMessage | undefined, now: number): void {
    const key = keyOf(flow)
    this.#avoided.delete(key)
    const [oldest] = this.#avoided.keys()
    if (this.#avoided.size >= maxAvoided && oldest !== undefined) this.#avoided.delete(oldest)
    this.#avoided.set(key, avoidUntil(flow, refusal, now))
  }

  #isAvoided(flow: Flow, now: number): boolean {
    if (this.#avoided.size === 0) return false
    const key = keyOf(flow)
    const until = this.#avoided.get(key)
    if (until === undefined) return false
    if (until > now) return true
    this.#avoided.delete(key)
    return false
  }

  #avoidedLast(flows: readonly Flow[], now: number): readonly Flow[] {
    if (this.#avoided.size === 0 || flows.length < 2) return flows
    const isAvoided = (flow: Flow): boolean => this.#isAvoided(flow, now)
    return [...flows.filter((flow) => !isAvoided(flow)), ...flows.filter(isAvoided)]
  }
}

export const byConnection = (flow: Flow): NextHop => ({ flow, question: undefined, target: '' })

/** The flows that lead elsewhere: a target that has said no would say it by another transport, too. */
export const elsewhere = (flows: readonly Flow[], { address, port }: Flow): readonly Flow[] =>
  flows.filter((other) => other.address !== address || other.port !== port)

function avoidUntil(flow: Flow, refusal: SipMessage | undefined, now: number): number {
  if (refusal === undefined) return now + (flow.connectMs === undefined ? avoidMs : noTcpMs)
  const seconds = Number.parseInt(refusal.get('Retry-After') ?? '0', 10)
  return now + Math.min(maxRetryAfterMs, (Number.isNaN(seconds) ? 0 : seconds) * 1_000)
}

/** Without `transport=` any listener is better than none (wire/README.md §5.1). */
function listenerFor(
  listeners: readonly Listener[],
  hop: Hop,
  preferred: Listener | undefined,
): Listener | undefined {
  const fits =
    preferred?.protocol === hop.protocol && isIP(preferred.address) === (isIP(hop.host) || 4)
  if (fits) return preferred
  const chosen = chooseListener(listeners, hop.protocol, hop.host)
  if (chosen !== undefined || hop.isExplicit) return chosen
  return listeners[0]
}

const isLarge = (text: string): boolean =>
  // Three bytes are the most that a UTF-16 unit takes.
  text.length * 3 > maxDatagramBytes && byteLength(text) > maxDatagramBytes

const keyOf = ({ listener, address, port }: Flow): string =>
  `${listener.protocol} ${address} ${port}`
