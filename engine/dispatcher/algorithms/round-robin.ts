/** Algorithm 4: sequentially and evenly over the active nodes. */
import type { Entry, Order } from './order.ts'

/**
 * After n calls every node was first exactly once. The node that follows rotates with each round,
 * so the calls of a node that has died are shared by all the others, not taken by its neighbour.
 */
export function roundRobin<Item>(entries: readonly Entry<Item>[]): Order<Item> {
  const items = entries.map((entry) => entry.item)
  const others = items.map((first) => items.filter((item) => item !== first))
  return ({ turn }) => {
    const place = turn % items.length
    const round = Math.floor(turn / items.length)
    const rest = others[place] ?? []
    const ordered = items.slice(place, place + 1)
    for (let step = 0; step < rest.length; step += 1) {
      const next = rest[(round + step) % rest.length]
      if (next !== undefined) ordered.push(next)
    }
    return ordered
  }
}
