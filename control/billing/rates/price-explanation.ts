/** Why a call costs what it costs, part by part. */
import { moneyToDecimal, moneyToNumber, timeToText } from '../../../schema/columns.ts'
import type { Quote } from '../ocs.ts'
import { multiplyDivide } from '../pricing/price.ts'

/** The rate that holds, and how it makes the price of `seconds`. A blocked prefix has no price. */
export function explanation({ rate, costMicros }: Quote, seconds: number) {
  const { tariff, isBlocked, effectiveFrom, effectiveTo } = rate
  const further = Math.max(
    0,
    Math.ceil((seconds - tariff.firstIncrementSeconds) / tariff.incrementSeconds),
  )
  const isTalk = seconds > 0
  return {
    prefix: tariff.prefix,
    currency: tariff.currency,
    blocked: isBlocked,
    rate_per_minute: moneyToNumber(tariff.ratePerMinuteMicros),
    rate_per_minute_exact: moneyToDecimal(tariff.ratePerMinuteMicros),
    first_rate_per_minute: moneyToNumber(tariff.firstRatePerMinuteMicros),
    first_increment: tariff.firstIncrementSeconds,
    increment: tariff.incrementSeconds,
    effective_from: effectiveFrom === null ? null : timeToText(effectiveFrom),
    effective_to: effectiveTo === null ? null : timeToText(effectiveTo),
    duration: seconds,
    charged_seconds: isTalk ? tariff.firstIncrementSeconds + further * tariff.incrementSeconds : 0,
    parts: isTalk ? parts(rate.tariff, further) : [],
    decimals: tariff.decimals,
    cost: isBlocked ? null : moneyToNumber(costMicros),
    cost_exact: isBlocked ? null : moneyToDecimal(costMicros),
  }
}

/** Their sum, rounded up to the plan's decimals, is the cost. */
function parts(tariff: Quote['rate']['tariff'], further: number) {
  const first = multiplyDivide(
    tariff.firstIncrementSeconds,
    tariff.firstRatePerMinuteMicros,
    60,
    'up',
  )
  const seconds = further * tariff.incrementSeconds
  const rest = multiplyDivide(seconds, tariff.ratePerMinuteMicros, 60, 'up')
  return [
    { part: 'connect_fee', seconds: 0, amount_exact: moneyToDecimal(tariff.connectFeeMicros) },
    {
      part: 'first_increment',
      seconds: tariff.firstIncrementSeconds,
      amount_exact: moneyToDecimal(first),
    },
    { part: 'further_increments', seconds, amount_exact: moneyToDecimal(rest) },
  ]
}
