/** Algorithm 6: a random active node, every order equally likely. */
import type { Entry, Order } from './order.ts'

/** Fisher-Yates: a dead node's calls go to the others in equal parts. */
export function random<Item>(entries: readonly Entry<Item>[]): Order<Item> {
  const items = entries.map((entry) => entry.item)
  return (pick) => {
    const left = items.slice()
    const ordered: Item[] = []
    while (left.length > 0) ordered.push(...left.splice(Math.floor(pick.random() * left.length), 1))
    return ordered
  }
}
