/**
 * Algorithm 0: the MD5 of the Call-ID chooses, by rendezvous (highest random weight) hashing. Each
 * node has a score for each Call-ID, and the highest wins. So the same Call-ID always reaches the
 * same node, a dead node's calls spread evenly over the others, and no other calls move.
 */
import { hash } from 'node:crypto'
import type { Entry, Order } from './order.ts'

interface Scored<Item> {
  readonly item: Item
  readonly seed: Digest
}

/** The first half of an MD5, as two 32-bit words. */
interface Digest {
  readonly high: number
  readonly low: number
}

export function callIdHash<Item>(entries: readonly Entry<Item>[]): Order<Item> {
  const nodes: readonly Scored<Item>[] = entries.map(({ item, identity }) => {
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

/** One MD5 per call, not one per node: the node's digest is mixed in. 53 bits, so ties hardly exist. */
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
