/** Of many calls, the part that each node is the first to get: what the algorithms come to. Pure. */
import type { AlgorithmCode } from './index.ts'
import type { Entry } from './order.ts'

/** The parts add up to 1, unless there is no entry. Full nodes are left out before: the others share as if alone. */
export function firstShares<Item>(
  code: AlgorithmCode,
  entries: readonly Entry<Item>[],
): ReadonlyMap<Item, number> {
  const first = Math.min(...entries.map(({ priority }) => priority))
  const takers = code === 8 ? entries.filter(({ priority }) => priority === first) : entries
  const isWeighted = code === 8 || code === 9
  const partOf = ({ weight }: Entry<Item>): number => (isWeighted ? weight : 1)
  const whole = takers.reduce((sum, entry) => sum + partOf(entry), 0)
  return new Map(takers.map((entry) => [entry.item, partOf(entry) / whole]))
}
