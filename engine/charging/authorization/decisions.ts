/**
 * Decides calls in memory. Where other processes spend from the same wallet, a call may wait a
 * moment for more of it.
 */
import type { AuthorizationRequest } from '../../../schema/contracts/charging.ts'
import { type Hold, noHold } from '../../../schema/contracts/limits.ts'
import type { HeldSlots } from '../customers/customer-limits.ts'
import type { Caps } from '../spending-caps/caps.ts'
import {
  authorize,
  type Authorization,
  type Books,
  type CapsBy,
  type DecidedBy,
  extend,
  type ExtensionDecision,
  type FundsSource,
  refusedBy,
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
  /** False: others may spend what this process holds of wallets. */
  readonly canHold: () => boolean
  readonly caps: Pick<Caps, 'obtain'>
  /** Refuses or allows a call when it is not known whether its payer has money. */
  readonly failMode: 'closed' | 'open'
  /** Called for each decision on a new call; not for one that is asked again. */
  readonly onNew: (request: AuthorizationRequest, authorization: Authorization) => void
}

export class Decisions {
  readonly #deps: DecisionsDeps
  readonly #verdicts = new Map<string, number>()

  constructor(deps: DecisionsDeps) {
    this.#deps = deps
  }

  /** Decisions by `granted`, denial code, or the reason why a call could not be decided. */
  counts(): Readonly<Record<string, number>> {
    return Object.fromEntries(this.#verdicts)
  }

  /** Decides at once, unless the database is asked for money, or other instances for room. */
  authorize(request: AuthorizationRequest): Authorization | Promise<Authorization> {
    const isRepeated = this.#isKnown(request)
    const decision = this.#decide(request, 'ask', 'ask')
    if (decision.kind === 'short') return this.#authorizeLater(request, decision)
    return this.#decided(request, decision, isRepeated)
  }

  async #authorizeLater(request: AuthorizationRequest, short: Short): Promise<Authorization> {
    const [held, money, caps] = await Promise.all([
      short.payer.limits.obtain(short.isCounted),
      this.#obtainUnlessQuiet(short),
      this.#take(short),
    ])
    try {
      let isRepeated = this.#isKnown(request)
      let decision = this.#decide(request, onceMore(money), onceMore(caps), held)
      // Other calls have reserved meanwhile what was there for it.
      if (decision.kind === 'short') {
        const [more, capped] = await Promise.all([
          this.#obtainUnlessQuiet(decision),
          this.#take(decision),
        ])
        isRepeated = this.#isKnown(request)
        const last = [lastOf(more, money), lastOf(capped, caps)] as const
        decision = this.#decide(request, ...last, { ...held, isCounted: true })
      }
      const final = decision.kind === 'short' ? refusedBy('lease_contended') : decision
      return this.#decided(request, final, isRepeated)
    } finally {
      held.calls.end()
      held.starts.end()
    }
  }

  #isKnown({ callUuid }: AuthorizationRequest): boolean {
    return this.#deps.books().reservations.find(callUuid) !== undefined
  }

  /** A call does not wait where others have waited in vain a moment ago. */
  #obtainUnlessQuiet(short: Omit<Short, 'isCounted'>): Promise<Obtained<FundsSource>> {
    const isInVain = short.amountMicros > 0 && short.payer.money?.isQuiet === true
    return isInVain ? Promise.resolve(nothingMore) : this.#obtain(short)
  }

  async #obtain({ payer, amountMicros }: Omit<Short, 'isCounted'>): Promise<Obtained<FundsSource>> {
    if (amountMicros === 0) return notAsked
    const hold = (await payer.money?.obtainAmount(amountMicros)) ?? noHold
    if (hold.isGiven || hold.isKnown) return { by: 'held', hold }
    return { by: this.#deps.failMode === 'open' ? 'trusted' : 'unreachable', hold }
  }

  async #take({ capped }: Pick<Short, 'capped'>): Promise<Obtained<CapsBy>> {
    if (capped === undefined) return notAsked
    const hold = await this.#deps.caps.obtain(capped.meters, capped.amountMicros)
    return { by: hold.isGiven || hold.isKnown ? 'held' : 'unreachable', hold }
  }

  #decide(
    request: AuthorizationRequest,
    funds: FundsSource,
    caps: CapsBy,
    held?: HeldSlots,
  ): Authorization | Short {
    const { isOverloaded, canHold, books, unknownCaller, now, failMode } = this.#deps
    if (isOverloaded()) return refusedBy('records_waiting')
    const isCutOff = !canHold()
    if (isCutOff && failMode === 'closed') return refusedBy('database_away')
    const by: DecidedBy = isCutOff
      ? { funds: 'trusted', counting: 'alone', caps }
      : { funds, counting: failMode === 'open' ? 'answered' : 'all', caps }
    return authorize(request, books(), unknownCaller, now(), held ? { ...by, held } : by)
  }

  #decided(
    request: AuthorizationRequest,
    authorization: Authorization,
    isRepeated: boolean,
  ): Authorization {
    const verdict = verdictOf(authorization)
    if (!isRepeated) this.#deps.onNew(request, authorization)
    this.#verdicts.set(verdict, (this.#verdicts.get(verdict) ?? 0) + 1)
    if (authorization.kind === 'granted' && !isRepeated)
      this.#reserved(authorization.reservation, 0)
    return authorization
  }

  async extend(callUuid: string, usedSeconds: number): Promise<ExtensionDecision> {
    const { canHold, books, now, failMode } = this.#deps
    const isCutOff = !canHold()
    if (isCutOff && failMode === 'closed') return unreachable
    const before = books().reservations.find(callUuid)?.amountMicros ?? 0
    let answer = extend(callUuid, usedSeconds, books(), now(), isCutOff ? 'trusted' : 'ask')
    if (answer.kind === 'short') {
      const [money, caps] = await Promise.all([this.#obtain(answer), this.#take(answer)])
      const fundsOf = (by: FundsSource): FundsSource => (isCutOff ? 'trusted' : by)
      const first = [fundsOf(onceMore(money)), onceMore(caps)] as const
      answer = extend(callUuid, usedSeconds, books(), now(), ...first)
      // The price of the call was within its caps, and is not any more, or the other way round.
      if (answer.kind === 'short') {
        const [more, capped] = await Promise.all([
          this.#obtainUnlessQuiet(answer),
          this.#take(answer),
        ])
        const last = [fundsOf(lastOf(more, money)), lastOf(capped, caps)] as const
        answer = extend(callUuid, usedSeconds, books(), now(), ...last)
      }
    }
    if (answer.kind === 'short') return unreachable
    if (answer.kind === 'granted') this.#reserved(answer.reservation, before)
    return answer
  }

  #reserved({ payer, amountMicros }: Reservation, before: number): void {
    if (payer !== undefined && amountMicros > before) payer.money?.begun(amountMicros - before)
  }
}

function verdictOf(authorization: Authorization): string {
  if (authorization.kind === 'overloaded') return authorization.by
  return authorization.kind === 'denied' ? authorization.code : authorization.kind
}

/**
 * Ends the hold for a call, which keeps others from its money until this turn of the event loop, in
 * which it is decided.
 */
function onceMore<By>({ by, hold }: Obtained<By>): By | 'ask' {
  hold.end()
  return hold.isGiven ? 'ask' : by
}

/** The second time: what was not asked for then is decided as the first answer says. */
function lastOf<By>(second: Obtained<By>, first: Obtained<By>): By {
  second.hold.end()
  return second === notAsked ? first.by : second.by
}

/** The outcome of asking for money or for a part of caps: the call is decided on `by`. */
interface Obtained<By> {
  readonly by: By
  readonly hold: Hold
}

const notAsked = { by: 'ask', hold: noHold } as const
const nothingMore = { by: 'held', hold: noHold } as const
