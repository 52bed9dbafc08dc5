/**
 * Algorithm 8: all calls go to the node with the lowest priority number; on its failure the call
 * moves on to the next. Nodes of equal priority share the load by weight, exactly as algorithm 9.
 */
import type { Entry, Order } from './order.ts'
import { drawByWeight, weight } from './weight.ts'

export function failover<Item>(entries: readonly Entry<Item>[]): Order<Item> {
  const tiers = tiersByPriority(entries)
  if (tiers.length === entries.length) {
    const fixed = tiers.flatMap((tier) => tier.map((entry) => entry.item))
    return () => fixed
  }
  const [top = [], ...standby] = tiers
  const orderTop = weight(top)
  return (pick) => {
    const ordered = orderTop(pick).slice()
    for (const tier of standby) drawByWeight(tier, pick, ordered)
    return ordered
  }
}

/** Groups of equal priority, preferred first; inside a group the order stays. */
function tiersByPriority<Item>(entries: readonly Entry<Item>[]): Entry<Item>[][] {
  const tiers = new Map<number, Entry<Item>[]>()
  for (const entry of entries) {
    const tier = tiers.get(entry.priority)
    if (tier) tier.push(entry)
    else tiers.set(entry.priority, [entry])
  }
  return [...tiers].toSorted(([one], [other]) => one - other).map(([, tier]) => tier)
}
