/**
 * Who sends: the source address of an INVITE → carrier, or a trusted network (SPECIFICATION.md §10.1). The
 * smallest network around the address wins, and in it a gateway with that very port.
 */
import { recognizedNetwork, recognizedPort } from '../../../schema/rules/gateways.ts'
import { type Network, parseNetwork } from '../../../schema/net/ip-address.ts'
import { gatewayPort } from '../gateway-uri.ts'
import { NetworkTable } from '../network-table.ts'
import type { CarrierRecord, GatewayRecord } from '../routing-records.ts'

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
  for (const carrier of carriers)
    for (const gateway of gatewaysThatCall(carrier))
      for (const address of addressesOf(gateway)) {
        const network = recognizedNetwork(gateway, address)
        if (network)
          yield [network, { carrier, gateway, prefixLength: network.prefixLength }] as const
      }
}

/** Those whose calls are taken. */
export const gatewaysThatCall = ({
  isActive,
  direction,
  gateways,
}: CarrierRecord): readonly GatewayRecord[] =>
  isActive && direction !== 'out' ? gateways.filter(({ isInbound }) => isInbound) : []

/** Where gateways are called and may call from, whether or not they are in use. */
export class GatewayNetworks {
  readonly #table: NetworkTable<GatewayRecord>

  constructor(carriers: readonly CarrierRecord[], addressesOf: AddressesOf) {
    const gateways = carriers.flatMap((carrier) => carrier.gateways)
    this.#table = new NetworkTable(
      gateways.flatMap((gateway) =>
        addressesOf(gateway).flatMap((address) => {
          const network = recognizedNetwork(gateway, address)
          return network ? [[network, gateway] as const] : []
        }),
      ),
    )
  }

  /** On loopback every program has the same address: there the port has to be the gateway's too. */
  has(address: string, port: number): boolean {
    for (const gateway of this.#table.lookup(address))
      if (!isLoopback(address) || gatewayPort(gateway) === port) return true
    return false
  }
}

const isLoopback = (address: string) => address === '::1' || address.startsWith('127.')

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
