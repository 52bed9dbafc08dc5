/**
 * Who sends: the source address of an INVITE → carrier, or a trusted network (decisions §2). The
 * smallest network around the address wins, and in it a gateway with that very port.
 */
import { recognizedNetwork, recognizedPort } from '../../schema/rules/gateway-source.ts'
import type { Network } from '../../schema/rules/ip-address.ts'
import { parseNetwork } from '../../schema/rules/ip-address.ts'
import { NetworkTable } from './network-table.ts'
import type { CarrierRecord, GatewayRecord } from './routing-records.ts'

export interface CarrierSource {
  readonly carrier: CarrierRecord
  readonly gateway: GatewayRecord
}

/** From where its requests may come. */
export type AddressesOf = (gateway: GatewayRecord) => readonly string[]

interface Entry extends CarrierSource {
  readonly prefixLength: number
}

export class CarrierSources {
  readonly #table: NetworkTable<Entry>

  constructor(carriers: readonly CarrierRecord[], addressesOf: AddressesOf) {
    this.#table = new NetworkTable(entriesOf(carriers, addressesOf))
  }

  find(address: string, port: number): CarrierSource | undefined {
    let anyPort: Entry | undefined
    for (const entry of this.#table.lookup(address)) {
      if (anyPort && entry.prefixLength < anyPort.prefixLength) return anyPort
      const wanted = recognizedPort(entry.gateway)
      if (wanted === port) return entry
      if (wanted === 0) anyPort ??= entry
    }
    return anyPort
  }
}

function* entriesOf(
  carriers: readonly CarrierRecord[],
  addressesOf: AddressesOf,
): Generator<readonly [Network, Entry]> {
  for (const carrier of carriers) {
    if (!carrier.isActive || carrier.direction === 'out') continue
    for (const gateway of carrier.gateways.filter((each) => each.isInbound))
      for (const address of addressesOf(gateway)) {
        const network = recognizedNetwork(gateway, address)
        if (network)
          yield [network, { carrier, gateway, prefixLength: network.prefixLength }] as const
      }
  }
}

export class TrustedSources {
  readonly #table: NetworkTable<true>

  /** @throws {RangeError} for a text that is no network; `config.ts` has checked them before. */
  constructor(networks: readonly string[]) {
    this.#table = new NetworkTable(
      networks.map((text) => {
        const network = parseNetwork(text)
        if (!network) throw new RangeError(`not a network: ${text}`)
        return [network, true] as const
      }),
    )
  }

  has(address: string): boolean {
    return this.#table.lookup(address).next().value === true
  }
}
