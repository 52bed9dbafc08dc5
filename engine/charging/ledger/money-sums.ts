/** What was moved since the start, by kind and currency: plain numbers that telemetry reads. */
import type { MoneySum } from '../../../schema/contracts/charging.ts'

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
