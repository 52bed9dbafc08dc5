/**
 * Finds the carrier's gateway that a URI leads to, by name too: from tables in memory, without a
 * look-up.
 */
import type { CarrierGateway, Sender } from '../../schema/contracts/gateways.ts'
import {
  isGatewayAddress,
  isNamed,
  recognizedNetwork,
  wantedPort,
} from '../../schema/rules/gateways.ts'
import { namesBehind, sipTarget } from '../../schema/net/sip-target.ts'
import { isIP } from 'node:net'
import { plainHost } from '../../schema/sip/index.ts'
import { gatewayNames } from './routing-records.ts'
import { NetworkTable } from './network-table.ts'

interface Entry {
  readonly gateway: CarrierGateway
  readonly address: string
}

const MAX_KNOWN = 10_000
const MAX_QUESTION = 300

/** Addresses that are known behind a name, or the address itself. */
export type AddressesOf = (host: string) => readonly string[]

export class GatewayGuard {
  readonly #addressesOf: AddressesOf
  readonly #byName = new Map<string, CarrierGateway[]>()
  readonly #byAddress: NetworkTable<Entry>
  /** Answers of this table: each attempt of each call asks, mostly about the same URIs. */
  readonly #known = new Map<string, CarrierGateway | undefined>()

  constructor(gateways: readonly CarrierGateway[], addressesOf: AddressesOf) {
    this.#addressesOf = addressesOf
    for (const gateway of gateways) {
      const name = plainHost(gateway.host)
      if (isIP(name) === 0) this.#byName.set(name, [...(this.#byName.get(name) ?? []), gateway])
    }
    this.#byAddress = new NetworkTable(
      gateways.flatMap((gateway) =>
        gatewayNames(gateway)
          .flatMap((name) => addressesOf(name))
          .flatMap((address) => {
            const network = recognizedNetwork(gateway, address)
            return network ? [[network, { gateway, address }] as const] : []
          }),
      ),
    )
  }

  /**
   * The gateway to which a request with this next hop would go; undefined: to none. By the
   * addresses of names when this table was made: a change of addresses needs a new table.
   */
  behind(uri: string, sender: Sender): CarrierGateway | undefined {
    const question = `${sender} ${uri}`
    const known = this.#known.get(question)
    if (known !== undefined || this.#known.has(question)) return known
    const gateway = this.#find(uri, sender)
    if (this.#known.size >= MAX_KNOWN) this.#known.clear()
    if (question.length <= MAX_QUESTION) this.#known.set(question, gateway)
    return gateway
  }

  /**
   * The same by addresses that were looked up for it, and undefined for a URI that cannot be read.
   */
  ledTo(uri: string, sender: Sender, addressesOf: AddressesOf): CarrierGateway | undefined {
    return sipTarget(uri) === undefined ? undefined : this.#find(uri, sender, addressesOf)
  }

  #find(uri: string, sender: Sender, addressesOf = this.#addressesOf): CarrierGateway | undefined {
    const target = sipTarget(uri)
    // A URI that cannot be read here may be read elsewhere.
    if (target === undefined) return unreadable
    const named = this.#byName.get(target.host)?.find((each) => isNamed(each, target, sender))
    if (named) return named
    const names = isIP(target.host) === 0 ? namesBehind(target) : [target.host]
    const port = wantedPort(target)
    for (const name of names)
      for (const address of addressesOf(name)) {
        const gateway = this.at({ address, port }, sender)
        if (gateway) return gateway
      }
    return undefined
  }

  /** The gateway at an address; port 0: any. */
  at(
    target: { readonly address: string; readonly port: number },
    sender: Sender,
  ): CarrierGateway | undefined {
    for (const { gateway, address } of this.#byAddress.lookup(target.address))
      if (isGatewayAddress(gateway, address, target, sender)) return gateway
    return undefined
  }

  /** The tenants whose carriers have a gateway of this name; null: the platform. */
  ownersOf(host: string): readonly (number | null)[] {
    return this.#byName.get(plainHost(host))?.map(({ tenantId }) => tenantId) ?? []
  }

  /** Whether a gateway of the platform is at an address. */
  isOfPlatform(target: { readonly address: string; readonly port: number }): boolean {
    for (const { gateway, address } of this.#byAddress.lookup(target.address))
      if (gateway.tenantId === null && isGatewayAddress(gateway, address, target, 'unknown'))
        return true
    return false
  }
}

const unreadable: CarrierGateway = {
  carrier: 'unreadable URI',
  tenantId: null,
  host: '',
  port: 0,
  transport: 'udp',
  netmask: 32,
}
