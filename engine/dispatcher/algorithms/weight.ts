/**
 * Algorithm 9: in proportion to the weights. The first node follows a precomputed smooth cycle,
 * so the proportion is exact over each period (100:50 is 2:1 over every three calls) and never
 * comes in bursts. The nodes that follow it are drawn by weight.
 */
import type { Entry, Order, Pick } from './order.ts'

export function weight<Item>(entries: readonly Entry<Item>[]): Order<Item> {
  const cycle = smoothCycle(entries.map((entry) => entry.weight))
  const others = entries.map((first) => entries.filter((entry) => entry !== first))
  return (pick) => {
    const place = cycle[pick.turn % cycle.length] ?? 0
    const ordered = entries.slice(place, place + 1).map((entry) => entry.item)
    return drawByWeight(others[place] ?? [], pick, ordered)
  }
}

/**
 * Smooth weighted round robin: each turn every entry earns its weight, the richest is chosen and
 * pays the sum. Repeats after sum/gcd turns: at most 100 nodes × weight 100 = 10,000 entries.
 */
export function smoothCycle(weights: readonly number[]): Uint16Array {
  const divisor = weights.reduce(greatestCommonDivisor, 0)
  const earnings = weights.map((each) => each / divisor)
  const sum = earnings.reduce((total, each) => total + each, 0)
  const credits = new Float64Array(earnings.length)
  const cycle = new Uint16Array(sum)
  for (let turn = 0; turn < sum; turn += 1) {
    let richest = 0
    for (let place = 0; place < credits.length; place += 1) {
      credits[place] = (credits[place] ?? 0) + (earnings[place] ?? 0)
      if ((credits[place] ?? 0) > (credits[richest] ?? 0)) richest = place
    }
    credits[richest] = (credits[richest] ?? 0) - sum
    cycle[turn] = richest
  }
  return cycle
}

/** Appends the entries in a random order in which each next one is drawn in proportion to its weight. */
export function drawByWeight<Item>(
  entries: readonly Entry<Item>[],
  { random }: Pick,
  into: Item[],
): Item[] {
  const left = entries.slice()
  let sum = left.reduce((total, entry) => total + entry.weight, 0)
  while (left.length > 0) {
    let point = random() * sum
    let place = 0
    for (let entry = left[0]; entry && place < left.length - 1; entry = left[place]) {
      point -= entry.weight
      if (point < 0) break
      place += 1
    }
    for (const drawn of left.splice(place, 1)) {
      sum -= drawn.weight
      into.push(drawn.item)
    }
  }
  return into
}

function greatestCommonDivisor(one: number, other: number): number {
  return other === 0 ? one : greatestCommonDivisor(other, one % other)
}
