/** Decides calls in memory. Where other processes spend from the same wallet, a call may wait a moment for a lease. */
import type { AuthorizationRequest } from '../../../schema/contracts/charging.ts'
import type { HeldRoom } from '../customers/customer.ts'
import type { Caps } from '../guards/caps.ts'
import type { Leases } from '../leases/leases.ts'
import {
  authorize,
  type Authorization,
  type Books,
  type CapsBy,
  type DecidedBy,
  extend,
  type Extension,
  type Funds,
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
  readonly leases: Leases | undefined
  readonly caps: Pick<Caps, 'obtain'>
  /** What becomes of a call when it is not known whether its payer has money. */
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

  /** By `granted`, denial code, or what has refused a call that could not be decided. */
  counts(): Readonly<Record<string, number>> {
    return Object.fromEntries(this.#verdicts)
  }

  /** At once, unless money has to be leased for it, or other nodes asked for room. */
  authorize(request: AuthorizationRequest): Authorization | Promise<Authorization> {
    const isRepeated = this.#isKnown(request)
    const decision = this.#decide(request, 'ask', 'ask')
    if (decision.kind === 'short') return this.#authorizeLater(request, decision)
    return this.#decided(request, decision, isRepeated)
  }

  async #authorizeLater(request: AuthorizationRequest, short: Short): Promise<Authorization> {
    const [held, funds, caps] = await Promise.all([
      short.payer.obtainRoom(short.isCounted),
      this.#obtainUnlessQuiet(short),
      this.#take(short),
    ])
    try {
      let isRepeated = this.#isKnown(request)
      let decision = this.#decide(request, onceMore(funds), once(caps), held)
      // Other calls have reserved meanwhile what was there for it.
      if (decision.kind === 'short') {
        const [more, capped] = await Promise.all([
          this.#obtainUnlessQuiet(decision),
          this.#take(decision),
        ])
        isRepeated = this.#isKnown(request)
        const last = capped === 'ask' ? lastOf(caps) : capped
        const most = more === 'ask' ? funds : more
        decision = this.#decide(request, most, last, { ...held, isCounted: true })
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

  /** Where calls have waited in vain a moment ago, this one does not wait. */
  #obtainUnlessQuiet(short: Omit<Short, 'isCounted'>): Promise<Funds> {
    const isInVain = short.amountMicros > 0 && this.#deps.leases?.isQuiet(short.payer) === true
    return isInVain ? Promise.resolve('leased') : this.#obtain(short)
  }

  /** Returns on what the call is decided then. */
  async #obtain({ payer, amountMicros }: Omit<Short, 'isCounted'>): Promise<Funds> {
    if (amountMicros === 0) return 'ask'
    const isAnswered = await this.#deps.leases?.obtain(payer, BigInt(amountMicros))
    if (isAnswered !== false) return 'leased'
    return this.#deps.failMode === 'open' ? 'trusted' : 'unheard'
  }

  /** Returns on what of its caps the call is decided then. */
  async #take({ capped }: Pick<Short, 'capped'>): Promise<CapsBy> {
    if (capped === undefined) return 'ask'
    const isHeard = await this.#deps.caps.obtain(capped.meters, capped.amountMicros)
    return isHeard ? 'taken' : 'unheard'
  }

  #decide(
    request: AuthorizationRequest,
    funds: Funds,
    caps: CapsBy,
    held?: HeldRoom,
  ): Authorization | Short {
    const { isOverloaded, leases, books, unknownCaller, now, failMode } = this.#deps
    if (isOverloaded()) return refusedBy('records_waiting')
    const isCutOff = leases?.isValid === false
    if (isCutOff && failMode === 'closed') return refusedBy('database_away')
    const by: DecidedBy = isCutOff
      ? { funds: 'trusted', counting: 'alone', caps }
      : { funds, counting: failMode === 'open' ? 'heard' : 'all', caps }
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

  async extend(callUuid: string, usedSeconds: number): Promise<Extension> {
    const { leases, books, now, failMode } = this.#deps
    const isCutOff = leases?.isValid === false
    if (isCutOff && failMode === 'closed') return unreachable
    const before = books().reservations.find(callUuid)?.amountMicros ?? 0
    let answer = extend(callUuid, usedSeconds, books(), now(), isCutOff ? 'trusted' : 'ask')
    if (answer.kind === 'short') {
      const [funds, caps] = await Promise.all([this.#obtain(answer), this.#take(answer)])
      const first = isCutOff ? 'trusted' : onceMore(funds)
      answer = extend(callUuid, usedSeconds, books(), now(), first, once(caps))
      // The price of the call was within its caps, and is not any more, or the other way round.
      if (answer.kind === 'short') {
        const last = await this.#last(answer, isCutOff ? 'trusted' : funds, caps)
        answer = extend(callUuid, usedSeconds, books(), now(), ...last)
      }
    }
    if (answer.kind === 'short') return unreachable
    if (answer.kind === 'granted') this.#reserved(answer.reservation, before)
    return answer
  }

  /** On what is decided that was asked for twice. */
  async #last(short: Short, before: Funds, capsBefore: CapsBy): Promise<[Funds, CapsBy]> {
    const [funds, caps] = await Promise.all([this.#obtainUnlessQuiet(short), this.#take(short)])
    return [funds === 'ask' ? before : funds, caps === 'ask' ? lastOf(capsBefore) : caps]
  }

  #reserved({ payer, amountMicros }: Reservation, before: number): void {
    if (payer !== undefined && amountMicros > before)
      this.#deps.leases?.reserved(payer, amountMicros - before)
  }
}

function verdictOf(authorization: Authorization): string {
  if (authorization.kind === 'overloaded') return authorization.by
  return authorization.kind === 'denied' ? authorization.code : authorization.kind
}

/** While a call waits, another one may use what was taken for it: it asks once more. A used-up cap answers at once. */
const once = (caps: CapsBy): CapsBy => (caps === 'taken' ? 'ask' : caps)

/** The same of what was leased for it. A wallet of which nothing was left is quiet, and answers at once. */
const onceMore = (funds: Funds): Funds => (funds === 'leased' ? 'ask' : funds)

const lastOf = (caps: CapsBy): CapsBy => (caps === 'ask' ? 'taken' : caps)
