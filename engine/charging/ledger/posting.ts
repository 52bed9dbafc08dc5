/** Outcomes of one ledger entry. */
import type { MoneySum } from '../../../schema/contracts/charging.ts'
export type Posting =
  | {
      readonly kind: 'posted'
      readonly balanceMicros: bigint
      /** Grows with each entry of a wallet: the greatest has the newest balance. */
      readonly entryId: number
    }
  | DuplicatePosting
  | { readonly kind: 'unknown_wallet' }

/** An entry of this kind and reference exists: its numbers, not those of the request. */
export interface DuplicatePosting {
  readonly kind: 'duplicate'
  readonly walletId: number
  readonly amountMicros: number
  readonly balanceMicros: bigint
}

/** Money moved since the start, by kind and currency: plain numbers that telemetry reads. */
export class MoneySums {
  readonly #sums = new Map<string, { -readonly [field in keyof MoneySum]: MoneySum[field] }>()

  /** Counts an entry that is durable. `amountMicros`: signed, as in the ledger. */
  add(
    { kind, amountMicros }: { readonly kind: MoneySum['kind']; readonly amountMicros: number },
    wallet: { readonly currency: string | null } | undefined,
  ): void {
    const currency = wallet?.currency ?? ''
    const key = `${kind} ${currency}`
    const sum = this.#sums.get(key) ?? { kind, currency, count: 0, amountMicros: 0n }
    sum.count += 1
    sum.amountMicros += BigInt(Math.abs(amountMicros))
    this.#sums.set(key, sum)
  }

  list(): readonly MoneySum[] {
    return [...this.#sums.values()]
  }
}
