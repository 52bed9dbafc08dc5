/** What a live call costs so far, as the server would charge it: exact, in integer millionths. */
import type { CallPrice } from '../api/views.ts'

/** Connect fee, first increment, each further increment begun; rounded up to the decimals of the plan. */
export function costMicros(price: CallPrice, seconds: number): bigint {
  if (seconds <= 0) return 0n
  const [first, step] = [BigInt(price.first_increment), BigInt(price.increment)]
  const beyond = BigInt(seconds) - first
  const further = beyond > 0n ? ((beyond + step - 1n) / step) * step : 0n
  const cost =
    micros(price.connect_fee) +
    perMinute(first, price.first_rate_per_minute) +
    perMinute(further, price.rate_per_minute)
  const quantum = 10n ** BigInt(6 - price.decimals)
  return ((cost + quantum - 1n) / quantum) * quantum
}

/** Rounded up to a millionth. */
const perMinute = (seconds: bigint, rate: string): bigint => (seconds * micros(rate) + 59n) / 60n

/** `0.6` → 600000n */
function micros(decimal: string): bigint {
  const [units = '0', fraction = ''] = decimal.split('.')
  return BigInt(units) * 1_000_000n + BigInt(fraction.padEnd(6, '0').slice(0, 6))
}

/** As the API writes it: with two to six decimals. */
export function decimalText(amount: bigint): string {
  const digits = amount.toString().padStart(7, '0')
  const fraction = digits.slice(-6)
  const shown = fraction.slice(0, 2) + fraction.slice(2).replace(/0+$/, '')
  return `${digits.slice(0, -6)}.${shown}`
}
