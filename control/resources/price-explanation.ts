/** Explains a price, part by part. */
import { moneyToDecimal, moneyToNumber, timeToText } from '../../schema/columns.ts'
import type { Quote } from '../../schema/contracts/charging.ts'

/** The rate in force, and the parts of the price of `seconds`. A blocked prefix has no price. */
export function explanation({ rate, costMicros, parts }: Quote, seconds: number) {
  const { tariff, isBlocked, effectiveFrom, effectiveTo } = rate
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
    charged_seconds: parts.reduce((sum, part) => sum + part.seconds, 0),
    parts: parts.map(({ part, seconds: charged, amountMicros }) => ({
      part,
      seconds: charged,
      amount_exact: moneyToDecimal(amountMicros),
    })),
    decimals: tariff.decimals,
    cost: isBlocked ? null : moneyToNumber(costMicros),
    cost_exact: isBlocked ? null : moneyToDecimal(costMicros),
  }
}

export type PriceView = ReturnType<typeof explanation>
