/** Sums of the matching calls. */
import { moneyToDecimal } from '../../../schema/columns.ts'
import type { BlockColumn, BlockHead, BlockNumbers } from './record-block.ts'
import type { SeenPrices } from './seen-prices.ts'

type Amounts = Readonly<Record<string, string>>

/** Amounts are exact decimals by currency. */
export interface FilterTotals {
  readonly calls: number
  readonly answered: number
  readonly billsec: number
  readonly asr_percent: number | null
  readonly acd_seconds: number | null
  readonly cost: Amounts
  readonly carrier_cost: Amounts
  readonly margin: Amounts
}

export const totalColumns: readonly BlockColumn[] = [
  'disposition',
  'billsec',
  'cost_micros',
  'currency',
  'customer_id',
  'carrier_cost_micros',
  'carrier_currency',
  'carrier_tenant_id',
]

export class RecordTotals {
  #calls = 0
  #answered = 0
  #billsec = 0
  readonly #cost = new Map<string, bigint>()
  readonly #carrierCost = new Map<string, bigint>()
  readonly #margin = new Map<string, bigint>()

  /** Adds the rows of the block that `numbers` and `prices` show. */
  add(head: BlockHead, rows: Int32Array, numbers: BlockNumbers, prices: SeenPrices): void {
    this.#calls += rows.length
    const answered = (head.words['disposition'] ?? []).indexOf('ANSWERED')
    const [dispositions, seconds] = [numbers.of('disposition'), numbers.of('billsec')]
    for (const row of rows) {
      if (dispositions[row] === answered) this.#answered += 1
      this.#billsec += seconds[row] ?? 0
    }
    const { currency = [], carrier_currency: boughtIn = [] } = head.words
    addAmounts(this.#cost, currency, rows, numbers.of('currency'), prices.of('cost'))
    if (boughtIn.length === 0) return
    const bought = [numbers.of('carrier_currency'), prices.of('carrier_cost')] as const
    addAmounts(this.#carrierCost, boughtIn, rows, ...bought)
    addAmounts(this.#margin, currency, rows, numbers.of('currency'), prices.of('margin'))
  }

  get totals(): FilterTotals {
    return totalsOf({
      calls: this.#calls,
      answered: this.#answered,
      billsec: this.#billsec,
      cost: decimals(this.#cost),
      carrier_cost: decimals(this.#carrierCost),
      margin: decimals(this.#margin),
    })
  }
}

type Counted = Omit<FilterTotals, 'asr_percent' | 'acd_seconds'>

export const totalsOf = ({ calls, answered, billsec, ...amounts }: Counted): FilterTotals => ({
  calls,
  answered,
  billsec,
  asr_percent: calls === 0 ? null : Math.round((answered / calls) * 1_000) / 10,
  acd_seconds: answered === 0 ? null : Math.round(billsec / answered),
  cost: amounts.cost,
  carrier_cost: amounts.carrier_cost,
  margin: amounts.margin,
})

/** Micro-units of some thousand calls are exact in a double; single ones are at most 9e15. */
const EXACT = 2 ** 53

function addAmounts(
  sums: Map<string, bigint>,
  words: readonly string[],
  rows: Int32Array,
  currencies: Float64Array,
  amounts: Float64Array,
): void {
  const parts = new Float64Array(words.length)
  const has = new Uint8Array(words.length)
  const move = (code: number) => {
    const word = words[code] ?? ''
    sums.set(word, (sums.get(word) ?? 0n) + BigInt(parts[code] ?? 0))
    parts[code] = 0
  }
  for (const row of rows) {
    const [code, amount] = [currencies[row] ?? NaN, amounts[row] ?? NaN]
    if (Number.isNaN(code) || Number.isNaN(amount)) continue
    has[code] = 1
    const sum = (parts[code] ?? 0) + amount
    if (Math.abs(sum) <= EXACT) parts[code] = sum
    else {
      move(code)
      parts[code] = amount
    }
  }
  for (let code = 0; code < words.length; code += 1) if (has[code] === 1) move(code)
}

const decimals = (sums: ReadonlyMap<string, bigint>): Amounts =>
  Object.fromEntries(
    [...sums]
      .toSorted(([one], [other]) => (one < other ? -1 : 1))
      .map(([currency, micros]) => [currency, moneyToDecimal(micros)]),
  )
