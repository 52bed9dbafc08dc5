import {
  type Network,
  parseNetwork,
  type IpAddress,
  firstBits,
  networkKey,
  parseAddress,
} from '../../schema/net/ip-address.ts'

/** @throws {RangeError} */
export function networkOf(text: string): Network {
  const network = parseNetwork(text)
  if (!network) throw new RangeError(`not a network: ${text}`)
  return network
}

interface Level<Value> {
  readonly family: 4 | 6
  readonly prefixLength: number
  readonly values: Map<number | string, Value[]>
}

/** Finds the longest matching network for an address: one map per prefix length, longest first. */
export class NetworkTable<Value> {
  readonly #levels: Level<Value>[] = []

  constructor(entries: Iterable<readonly [Network, Value]>) {
    for (const [network, value] of entries) this.#add(network, value)
    this.#levels.sort((one, other) => other.prefixLength - one.prefixLength)
  }

  /** The values of every network around an address, the smallest network first. */
  lookup(address: string): readonly Value[] {
    const found: Value[] = []
    const parsed = this.#levels.length === 0 ? undefined : parseAddress(address)
    if (!parsed) return found
    for (const { family, prefixLength, values } of this.#levels)
      if (family === parsed.family) found.push(...(values.get(keyOf(parsed, prefixLength)) ?? []))
    return found
  }

  #add({ address, prefixLength }: Network, value: Value): void {
    const { family } = address
    let level = this.#levels.find(
      (each) => each.family === family && each.prefixLength === prefixLength,
    )
    if (!level) this.#levels.push((level = { family, prefixLength, values: new Map() }))
    const key = keyOf(address, prefixLength)
    level.values.set(key, [...(level.values.get(key) ?? []), value])
  }
}

/** Within one level. An IPv4 network is a number: each call looks some up. */
const keyOf = (address: IpAddress, prefixLength: number): number | string =>
  address.family === 4
    ? firstBits(address.words[0] ?? 0, prefixLength)
    : networkKey(address, prefixLength)
