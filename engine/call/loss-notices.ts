/**
 * Calls that a carrier has answered at a loss, although loss protection warns of it: one notice a
 * day for a customer, a price and a carrier (D403).
 */
import { DAY_MS } from '../../schema/clock.ts'
import { moneyToDecimal, timeToText } from '../../schema/columns.ts'
import type { OutgoingEvent } from '../../schema/contracts/engine.ts'
import type { LossTrouble } from '../../schema/contracts/losses.ts'
import type { Log } from '../../schema/contracts/log.ts'
import type { GatewayCandidate } from '../routing/routing.ts'

interface LossNoticesDeps {
  /** Milliseconds UTC. */
  readonly now: () => number
  readonly log: Log
  /** Takes webhook events; absent: there are none. */
  readonly announce: ((event: OutgoingEvent) => void) | undefined
}

/** More of them are not remembered: the oldest is forgotten. */
const MAX_TROUBLES = 1_000

/** The call that was answered. */
interface LossyCall {
  readonly callUuid: string
  readonly calledNumber: string
  readonly customerId: number | null
}

export class LossNotices {
  readonly #deps: LossNoticesDeps
  readonly #troubles = new Map<string, LossTrouble>()

  constructor(deps: LossNoticesDeps) {
    this.#deps = deps
  }

  /** A gateway has answered; without a warning about it nothing happens. */
  readonly answered = (call: LossyCall, { profit, ...gateway }: GatewayCandidate): void => {
    if (profit?.verdict !== 'warned' || profit.judgedBy === null || call.customerId === null) return
    const { carrierId, carrierName: carrier } = gateway
    const { salePrefix, marginMicros, saleCurrency } = profit
    if (marginMicros === null || salePrefix === null || saleCurrency === null) return
    const { tenantId } = profit.judgedBy
    const { customerId } = call
    const now = this.#deps.now()
    const key = `${tenantId} ${customerId} ${carrierId} ${salePrefix}`
    const known = this.#troubles.get(key)
    const isToday = known !== undefined && dayOf(known.toldAt) === dayOf(now)
    const { seconds, costMicros, saleMicros } = profit
    const figures = { seconds, costMicros: costMicros ?? 0, saleMicros: saleMicros ?? 0 }
    // The newest one stands last: the first is forgotten first.
    this.#troubles.delete(key)
    this.#troubles.set(key, {
      tenantId,
      customerId,
      carrier,
      prefix: salePrefix,
      currency: saleCurrency,
      ...figures,
      marginMicros,
      calls: (known?.calls ?? 0) + 1,
      firstAt: known?.firstAt ?? now,
      lastAt: now,
      lastCallUuid: call.callUuid,
      toldAt: isToday ? known.toldAt : now,
    })
    const [oldest] = this.#troubles.size > MAX_TROUBLES ? this.#troubles.keys() : []
    if (oldest !== undefined) this.#troubles.delete(oldest)
    if (!isToday) this.#tell(call, key)
  }

  /** Losses that were warned of since the start, the latest last. */
  troubles(): readonly LossTrouble[] {
    return [...this.#troubles.values()]
  }

  #tell({ callUuid, calledNumber }: LossyCall, key: string): void {
    const trouble = this.#troubles.get(key)
    if (trouble === undefined) return
    const { tenantId, customerId, carrier, prefix, currency, seconds } = trouble
    const data = {
      call_uuid: callUuid,
      customer_id: customerId,
      carrier,
      destination_number: calledNumber,
      rate_prefix: prefix,
      expected_seconds: seconds,
      expected_price_exact: moneyToDecimal(trouble.saleMicros),
      expected_cost_exact: moneyToDecimal(trouble.costMicros),
      expected_margin_exact: moneyToDecimal(trouble.marginMicros),
      currency,
      at: timeToText(trouble.lastAt),
    }
    this.#deps.announce?.({ type: 'call.below_margin', tenantId, data })
    this.#deps.log('warn', 'a carrier has answered a call that leaves less than min_margin', data)
  }
}

const dayOf = (at: number): number => Math.floor(at / DAY_MS)
