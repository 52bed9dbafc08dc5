/**
 * The five balancing algorithms of SPECIFICATION.md §2.6. Each is prepared once per snapshot from the
 * active nodes and then orders them for one call: the chosen node first, the rest in the order in
 * which the call moves on. Pure: everything that varies comes in with the `Pick`.
 */
import { callIdHash } from './call-id-hash.ts'
import { failover } from './failover.ts'
import type { Entry, Order } from './order.ts'
import { random } from './random.ts'
import { roundRobin } from './round-robin.ts'
import { weight } from './weight.ts'

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
