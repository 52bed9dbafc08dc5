/** Amounts as Stripe writes them, in the smallest unit of their currency. */

/** UGX and ISK have no decimals either, but Stripe writes them with two. */
const withoutDecimals: ReadonlySet<string> = new Set([
  'BIF',
  'CLP',
  'DJF',
  'GNF',
  'JPY',
  'KMF',
  'KRW',
  'MGA',
  'PYG',
  'RWF',
  'VND',
  'VUV',
  'XAF',
  'XOF',
  'XPF',
])

const withThreeDecimals: ReadonlySet<string> = new Set(['BHD', 'JOD', 'KWD', 'OMR', 'TND'])

/** @param currency ISO 4217 in capitals. */
export function minorUnitsToMicros(amount: number, currency: string): number {
  if (withoutDecimals.has(currency)) return amount * 1_000_000
  return amount * (withThreeDecimals.has(currency) ? 1_000 : 10_000)
}
