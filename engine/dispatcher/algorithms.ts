/**
 * The five balancing algorithms of SPECIFICATION.md §2.6. Each is prepared once per snapshot from
 * the active nodes and then orders them for one call: the chosen node first, the rest in the order
 * in which the call moves on. Pure: everything that varies comes in with the `OrderedCall`.
 */
import { hash } from 'node:crypto'

/** 8 failover, 4 round robin, 9 weight, 6 random, 0 Call-ID hash. */
export type AlgorithmCode = 0 | 4 | 6 | 8 | 9

type Algorithm = <Item>(entries: readonly Entry<Item>[]) => Order<Item>

const algorithms: Readonly<Record<AlgorithmCode, Algorithm>> = {
  0: callIdHash,
  4: roundRobin,
  6: random,
  8: failover,
  9: weight,
}

export function prepareOrder<Item>(
  code: AlgorithmCode,
  entries: readonly Entry<Item>[],
): Order<Item> {
  if (entries.length > 1) return algorithms[code](entries)
  const only = entries.map((entry) => entry.item)
  return () => only
}

export function isAlgorithmCode(code: number): code is AlgorithmCode {
  return Object.hasOwn(algorithms, code)
}

/** A node as an algorithm sees it. */
export interface Entry<Item> {
  readonly item: Item
  /** Stays the same while the node is the same: its destination. */
  readonly identity: string
  /** 1 to 100. */
  readonly weight: number
  /** Lower is preferred. */
  readonly priority: number
}

/** The facts of one call that its order depends on. */
export interface OrderedCall {
  /** Calls that the set has ordered before this one. */
  readonly turn: number
  readonly callId: string
  /** Uniform in [0, 1). */
  readonly random: () => number
}

/** Every node exactly once. The array may be shared between calls. */
export type Order<Item> = (call: OrderedCall) => readonly Item[]

/**
 * Algorithm 0: the MD5 of the Call-ID chooses, by rendezvous (highest random weight) hashing. Each
 * node has a score for each Call-ID, and the highest wins. So the same Call-ID always reaches the
 * same node, a dead node's calls spread evenly over the others, and no other calls move.
 */
interface ScoredNode<Item> {
  readonly item: Item
  readonly seed: Digest
}

/** The first half of an MD5, as two 32-bit words. */
interface Digest {
  readonly high: number
  readonly low: number
}

function callIdHash<Item>(entries: readonly Entry<Item>[]): Order<Item> {
  const nodes: readonly ScoredNode<Item>[] = entries.map(({ item, identity }) => {
    return { item, seed: digestOf(identity) }
  })
  return ({ callId }) => {
    const call = digestOf(callId)
    const scores = nodes.map((node) => score(call, node.seed))
    const places = scores.map((_, place) => place)
    places.sort((one, other) => (scores[other] ?? 0) - (scores[one] ?? 0))
    return places.flatMap((place) => nodes[place]?.item ?? [])
  }
}

function digestOf(text: string): Digest {
  const digest = hash('md5', text, 'buffer')
  return { high: digest.readUInt32BE(0), low: digest.readUInt32BE(4) }
}

/**
 * One MD5 per call, not one per node: the node's digest is mixed in. 53 bits, so ties hardly exist.
 */
function score(call: Digest, node: Digest): number {
  const high = mix(call.high ^ mix(node.high ^ call.low))
  const low = mix(call.low ^ mix(node.low ^ high))
  return (high >>> 0) * 2 ** 21 + (low >>> 11)
}

/** The finalizer of MurmurHash3: every input bit reaches every output bit. */
function mix(word: number): number {
  let mixed = word ^ (word >>> 16)
  mixed = Math.imul(mixed, 0x85ebca6b)
  mixed ^= mixed >>> 13
  mixed = Math.imul(mixed, 0xc2b2ae35)
  return mixed ^ (mixed >>> 16)
}

/**
 * Algorithm 8: all calls go to the node with the lowest priority number; on its failure the call
 * moves on to the next. Nodes of equal priority share the load by weight, exactly as algorithm 9.
 */
function failover<Item>(entries: readonly Entry<Item>[]): Order<Item> {
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

/** Fisher-Yates: a dead node's calls go to the others in equal parts. */
function random<Item>(entries: readonly Entry<Item>[]): Order<Item> {
  const items = entries.map((entry) => entry.item)
  return (pick) => {
    const left = items.slice()
    const ordered: Item[] = []
    while (left.length > 0) ordered.push(...left.splice(Math.floor(pick.random() * left.length), 1))
    return ordered
  }
}

/**
 * After n calls every node was first exactly once. The node that follows rotates with each round,
 * so the calls of a node that has died are shared by all the others, not taken by its neighbour.
 */
function roundRobin<Item>(entries: readonly Entry<Item>[]): Order<Item> {
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

/**
 * Algorithm 9: in proportion to the weights. The first node follows a precomputed smooth cycle,
 * so the proportion is exact over each period (100:50 is 2:1 over every three calls) and never
 * comes in bursts. The nodes that follow it are drawn by weight.
 */
function weight<Item>(entries: readonly Entry<Item>[]): Order<Item> {
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

/**
 * Appends the entries in a random order in which each next one is drawn in proportion to its
 * weight.
 */
function drawByWeight<Item>(
  entries: readonly Entry<Item>[],
  { random }: OrderedCall,
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

/**
 * The parts add up to 1, unless there is no entry. Full nodes are left out before: the others share
 * as if alone.
 */
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
