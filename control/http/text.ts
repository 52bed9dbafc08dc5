/** Amounts and counts in sentences. */
import { moneyToDecimal } from '../../schema/columns.ts'

export const moneyText = (micros: number, currency: string | null): string =>
  `${moneyToDecimal(Math.round(micros / 10_000) * 10_000)} ${currency ?? ''}`.trim()

export const plural = (count: number, noun: string): string =>
  `${count} ${noun}${count === 1 ? '' : 's'}`
