/** Decides calls in memory. Where other processes spend from the same wallet, a call may wait a moment for a lease. */
import type { AuthorizationRequest } from '../../../schema/contracts/charging.ts'
import type { Leases } from '../leases/leases.ts'
import {
  authorize,
  type Authorization,
  type Books,
  extend,
  type Extension,
  type Short,
  unreachable,
} from './authorize.ts'
import type { Reservation } from './reservations.ts'

interface DecisionsDeps {
  readonly books: () => Books
  /** Records cannot be stored: no call starts. */
  readonly isOverloaded: () => boolean
  readonly unknownCaller: 'deny' | 'allow'
  /** Milliseconds by the steady clock. */
  readonly now: () => number
  readonly leases: Leases | undefined
  /** Called for each decision on a new call; not for one that is asked again. */
  readonly onNew: (request: AuthorizationRequest, authorization: Authorization) => void
}

export class Decisions {
  readonly #deps: DecisionsDeps
  readonly #verdicts = new Map<string, number>()

  constructor(deps: DecisionsDeps) {
    this.#deps = deps
  }

  /** By `granted`, `overloaded` or denial code. */
  counts(): Readonly<Record<string, number>> {
    return Object.fromEntries(this.#verdicts)
  }

  /** At once, unless money has to be leased for it. */
  authorize(request: AuthorizationRequest): Authorization | Promise<Authorization> {
    const isRepeated = this.#isKnown(request)
    const decision = this.#decide(request, false)
    if (decision.kind === 'short') return this.#authorizeLater(request, decision)
    return this.#decided(request, decision, isRepeated)
  }

  async #authorizeLater(request: AuthorizationRequest, short: Short): Promise<Authorization> {
    await this.#deps.leases?.obtain(short.payer, BigInt(short.amountMicros))
    const isRepeated = this.#isKnown(request)
    const decision = this.#decide(request, true)
    const final = decision.kind === 'short' ? ({ kind: 'overloaded' } as const) : decision
    return this.#decided(request, final, isRepeated)
  }

  #isKnown({ callUuid }: AuthorizationRequest): boolean {
    return this.#deps.books().reservations.find(callUuid) !== undefined
  }

  #decide(request: AuthorizationRequest, isFinal: boolean): Authorization | Short {
    const { isOverloaded, leases, books, unknownCaller, now } = this.#deps
    if (isOverloaded() || leases?.isValid === false) return { kind: 'overloaded' }
    return authorize(request, books(), unknownCaller, now(), isFinal)
  }

  #decided(
    request: AuthorizationRequest,
    authorization: Authorization,
    isRepeated: boolean,
  ): Authorization {
    const verdict = authorization.kind === 'denied' ? authorization.code : authorization.kind
    if (!isRepeated) this.#deps.onNew(request, authorization)
    this.#verdicts.set(verdict, (this.#verdicts.get(verdict) ?? 0) + 1)
    if (authorization.kind === 'granted' && !isRepeated)
      this.#reserved(authorization.reservation, 0)
    return authorization
  }

  async extend(callUuid: string, usedSeconds: number): Promise<Extension> {
    const { leases, books, now } = this.#deps
    if (leases?.isValid === false) return unreachable
    const before = books().reservations.find(callUuid)?.amountMicros ?? 0
    let answer = extend(callUuid, usedSeconds, books(), now())
    if (answer.kind === 'short') {
      await leases?.obtain(answer.payer, BigInt(answer.amountMicros))
      answer = extend(callUuid, usedSeconds, books(), now(), true)
    }
    if (answer.kind === 'short') return unreachable
    if (answer.kind === 'granted') this.#reserved(answer.reservation, before)
    return answer
  }

  #reserved({ payer, amountMicros }: Reservation, before: number): void {
    if (payer !== undefined && amountMicros > before)
      this.#deps.leases?.reserved(payer, amountMicros - before)
  }
}
