/** Whether a wallet needs money: it is below its threshold, or its next call would be refused. */
import { type RawBuilder, sql } from 'kysely'

export interface WalletFigures {
  readonly balanceMicros: bigint
  readonly thresholdMicros: number
  readonly creditMicros: number
  /** Held for live calls. */
  readonly reservedMicros: bigint
  /** What the customer's last call needed, where it was refused for want of money; 0: it was not. */
  readonly refusedMicros: number
}

export function isBalanceLow(wallet: WalletFigures): boolean {
  const { balanceMicros, thresholdMicros, creditMicros, reservedMicros, refusedMicros } = wallet
  if (balanceMicros < thresholdMicros) return true
  const availableMicros = balanceMicros + BigInt(creditMicros) - reservedMicros
  return availableMicros <= 0n || availableMicros < refusedMicros
}

/** `refusedMicros` of a row of `customer`: the last call is one step in the index. */
export const refusedMicros = sql<number | null>`(
  SELECT CASE WHEN denial_code = 'insufficient_funds' THEN required_micros END FROM cdr
  WHERE cdr.customer_id = customer.id ORDER BY start_stamp DESC LIMIT 1)`

/** The same of rows of `customer` and `wallet`, without what is held for live calls. */
export const hasLowBalance: RawBuilder<boolean> = sql<boolean>`(
  wallet.balance_micros < customer.low_balance_micros
  OR wallet.balance_micros + customer.credit_limit_micros <= 0
  OR wallet.balance_micros + customer.credit_limit_micros < coalesce(${refusedMicros}, 0))`
