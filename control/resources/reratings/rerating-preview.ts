/** Says what a re-rating would change, without changing it. */
import { setImmediate as nextTurn } from 'node:timers/promises'
import { type Tables, readApart } from '../../../schema/sql/query.ts'
import {
  changedCalls,
  nextCalls,
  type PricedCall,
  type Prices,
  type ReratedCalls,
} from './rerated-calls.ts'

export interface Difference {
  readonly customerId: number
  calls: number
  before: bigint
  after: bigint
}

export interface ExampleCall extends PricedCall {
  readonly newMicros: number
  readonly newPrefix: string
}

export interface ReratingPreview {
  readonly counts: PreviewCounts
  readonly sums: { readonly before: bigint; readonly after: bigint }
  readonly isComplete: boolean
  /** Changed calls by customer, the largest difference first. */
  readonly customers: readonly Difference[]
  /** Those that change most. */
  readonly examples: readonly ExampleCall[]
}

export interface PreviewCounts {
  looked: number
  calls: number
  changed: number
  without_rate: number
  unknown_number: number
  other_currency: number
}

/** Records that a preview looks at. */
const MAX_LOOKED = 200_000
const CALLS = 1_000
const MAX_EXAMPLES = 10
export const MAX_DIFFERENCES = 100

export async function previewRerating(
  store: Tables,
  meant: ReratedCalls,
  prices: Prices,
): Promise<ReratingPreview> {
  const counts: PreviewCounts = {
    looked: 0,
    calls: 0,
    changed: 0,
    without_rate: 0,
    unknown_number: 0,
    other_currency: 0,
  }
  const sums = { before: 0n, after: 0n }
  const customers = new Map<number, Difference>()
  let examples: readonly ExampleCall[] = []
  let after = { at: meant.from_at, id: 0 }
  let isLast = false
  while (!isLast && counts.looked < MAX_LOOKED) {
    const from = after
    const page = await readApart(store, meant.tenant_id, () => nextCalls(store, meant, from, CALLS))
    const changed: ExampleCall[] = []
    for (const { call, price, micros } of changedCalls(page.calls, meant, prices, { counts, sums }))
      changed.push({ ...call, newMicros: micros, newPrefix: price.prefix })
    counts.changed += changed.length
    counts.looked += page.looked
    for (const call of changed) addTo(customers, call)
    examples = [...examples, ...changed].toSorted(mostFirst).slice(0, MAX_EXAMPLES)
    after = page.upTo
    isLast = page.isLast
    await nextTurn()
  }
  return {
    counts,
    sums,
    isComplete: isLast,
    customers: [...customers.values()].toSorted(largestFirst).slice(0, MAX_DIFFERENCES),
    examples,
  }
}

function addTo(customers: Map<number, Difference>, call: ExampleCall): void {
  const customerId = call.customer_id ?? 0
  const known = customers.get(customerId) ?? { customerId, calls: 0, before: 0n, after: 0n }
  customers.set(customerId, known)
  known.calls += 1
  known.before += BigInt(call.micros ?? 0)
  known.after += BigInt(call.newMicros)
}

const distance = ({ micros, newMicros }: ExampleCall): number => Math.abs(newMicros - (micros ?? 0))
const mostFirst = (one: ExampleCall, other: ExampleCall): number => distance(other) - distance(one)

const size = ({ before, after }: Difference): bigint =>
  after > before ? after - before : before - after
const largestFirst = (one: Difference, other: Difference): number =>
  size(one) === size(other) ? one.customerId - other.customerId : size(one) > size(other) ? -1 : 1
