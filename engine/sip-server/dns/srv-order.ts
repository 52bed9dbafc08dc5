/** The order in which SRV records are tried: RFC 2782, "Priority" and "Weight". */

export interface SrvRecord {
  readonly name: string
  readonly port: number
  readonly priority: number
  readonly weight: number
}

/** By priority; within one by chance, in proportion to the weights. `random` gives 0 ≤ x < 1. */
export function srvOrder(records: readonly SrvRecord[], random: () => number): SrvRecord[] {
  const priorities = [...new Set(records.map(({ priority }) => priority))].toSorted((a, b) => a - b)
  return priorities.flatMap((priority) =>
    byWeight(
      records.filter((record) => record.priority === priority),
      random,
    ),
  )
}

function byWeight(records: readonly SrvRecord[], random: () => number): SrvRecord[] {
  // Those of weight 0 come first, so that they have a very small chance beside others.
  const left = records.toSorted((a, b) => a.weight - b.weight)
  const ordered: SrvRecord[] = []
  while (left.length > 0) {
    const total = left.reduce((sum, { weight }) => sum + weight, 0)
    const [chosen] = left.splice(indexAt(left, random() * total), 1)
    if (chosen) ordered.push(chosen)
  }
  return ordered
}

function indexAt(records: readonly SrvRecord[], point: number): number {
  let sum = 0
  const index = records.findIndex(({ weight }) => {
    sum += weight
    return sum >= point
  })
  return Math.max(0, index)
}
