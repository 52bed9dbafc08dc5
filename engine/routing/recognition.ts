/**
 * Recognizes senders by address (SPECIFICATION.md §10.1): a carrier, a node, a proxy of ours, or a
 * trusted network. Sources of the platform come before those of a tenant, because a tenant may
 * write any address.
 */
import { isIP } from 'node:net'
import type { VerifyPolicy } from '../../schema/contracts/field-values.ts'
import { type Network } from '../../schema/net/ip-address.ts'
import {
  gatewayNames,
  gatewayPort,
  type CarrierRecord,
  type GatewayRecord,
} from './routing-records.ts'
import type { Tenancy } from './tenancy.ts'
import { recognizedNetwork, recognizedPort } from '../../schema/rules/gateways.ts'
import { TrustedSources } from './trusted-sources.ts'
import { networkOf, NetworkTable } from './network-table.ts'

export interface RecognitionDeps {
  /** Networks in CIDR notation, checked by `config.ts`. */
  readonly trustedSources: readonly string[]
  readonly edgeProxies: readonly EdgeProxy[]
  /** The node that sends from there, one of the platform before one of a tenant. */
  readonly nodeAt: (
    address: string,
    port: number,
  ) =>
    | {
        readonly nodeId: number
        readonly setId: number
        readonly tenantId: number | null
        readonly isNamed: boolean
      }
    | undefined
  /** Addresses behind host names; see `engine/dispatcher/host-addresses.ts`. */
  readonly hosts: {
    readonly version: number
    addressesOf(host: string): readonly string[]
  }
}

/** Slugs of the tenants whose users the proxies of this network authenticate. */
interface EdgeProxy {
  readonly network: string
  readonly tenants: readonly string[]
}

export class Recognition {
  readonly #deps: RecognitionDeps
  readonly #trusted: TrustedSources
  #carriers: readonly CarrierRecord[] = []
  #proxies = new NetworkTable<readonly number[]>([])
  #builtVersion = -1
  #ofPlatform = new CarrierSources([], () => [])
  #ofTenants = new CarrierSources([], () => [])
  #platformGateways = new GatewayNetworks([], () => [])

  /** @throws {RangeError} when a network is none. */
  constructor(deps: RecognitionDeps) {
    this.#deps = deps
    this.#trusted = new TrustedSources(deps.trustedSources)
  }

  /** The names of the carriers have to be watched by `hosts` already. */
  replace(carriers: readonly CarrierRecord[], tenancy: Pick<Tenancy, 'idsOf'>): void {
    this.#carriers = carriers
    this.#proxies = new NetworkTable(
      this.#deps.edgeProxies.map(
        ({ network, tenants }) => [networkOf(network), tenancy.idsOf(tenants)] as const,
      ),
    )
    this.#build()
  }

  recognize({ address, port }: { readonly address: string; readonly port: number }): Origin {
    if (this.#deps.hosts.version !== this.#builtVersion) this.#build()
    const source = this.#ofPlatform.find(address, port)
    if (source) return carrierOrigin(source)
    const node = this.#deps.nodeAt(address, port)
    if (node?.tenantId === null) return nodeOrigin(node)
    const [tenantIds] = this.#proxies.lookup(address)
    if (tenantIds) return tenantIds.length > 0 ? { kind: 'proxy', tenantIds } : unknown
    const isTrusted = this.#trusted.has(address)
    const own = this.#ofTenants.find(address, port)
    // The owner of a name may point it to any address, also to those of the platform's own
    // programs.
    if (own && !(isTrusted && isNamed(own.gateway))) return carrierOrigin(own)
    if (node && !(isTrusted && node.isNamed)) return nodeOrigin(node)
    return isTrusted ? trusted : unknown
  }

  /** A carrier as if one of its gateways had sent; undefined: none may. */
  carrierOrigin(carrierId: number): Origin | undefined {
    const carrier = this.#carriers.find((each) => each.carrierId === carrierId)
    const [gateway] = carrier === undefined ? [] : gatewaysThatCall(carrier)
    return carrier && gateway && carrierOrigin({ carrier, gateway })
  }

  /** Whether a carrier has a gateway at this address, in use or not, whatever the port. */
  hasGatewayAt(carrierId: number, address: string): boolean {
    const carrier = this.#carriers.find((each) => each.carrierId === carrierId)
    const networks = carrier?.gateways.flatMap((gateway) =>
      this.#addressesOf(gateway).flatMap((each) => recognizedNetwork(gateway, each) ?? []),
    )
    const table = new NetworkTable(networks?.map((network) => [network, true] as const) ?? [])
    return table.lookup(address).length > 0
  }

  /**
   * Whether a tenant's gateway is at an address of the platform's: its calls would go to a carrier
   * that the platform pays, or come back from a node as the platform's own.
   */
  leadsToPlatform(gateway: GatewayRecord): boolean {
    if (this.#deps.hosts.version !== this.#builtVersion) this.#build()
    const port = gatewayPort(gateway)
    return this.#addressesOf(gateway).some(
      (address) =>
        this.#platformGateways.has(address, port) ||
        this.#deps.nodeAt(address, port)?.tenantId === null ||
        (isNamed(gateway) && this.#trusted.has(address)),
    )
  }

  #build(): void {
    this.#builtVersion = this.#deps.hosts.version
    const ofPlatform = this.#carriers.filter(({ tenantId }) => tenantId === null)
    const ofTenants = this.#carriers.filter(({ tenantId }) => tenantId !== null)
    const addressesOf = (gateway: GatewayRecord) => this.#addressesOf(gateway)
    this.#ofPlatform = new CarrierSources(ofPlatform, addressesOf)
    this.#ofTenants = new CarrierSources(ofTenants, addressesOf)
    this.#platformGateways = new GatewayNetworks(ofPlatform, addressesOf)
  }

  #addressesOf(gateway: GatewayRecord): readonly string[] {
    return gatewayNames(gateway).flatMap((name) => this.#deps.hosts.addressesOf(name))
  }
}

const trusted: Origin = { kind: 'trusted' }
const unknown: Origin = { kind: 'unknown' }

const isNamed = ({ host }: Pick<GatewayRecord, 'host'>): boolean => isIP(host) === 0

const nodeOrigin = ({
  nodeId,
  setId,
  tenantId,
}: NonNullable<ReturnType<RecognitionDeps['nodeAt']>>): NodeOrigin => ({
  kind: 'node',
  nodeId,
  setId,
  ...(tenantId !== null && { tenantId }),
})

function carrierOrigin({ carrier, gateway }: CarrierSource): Origin {
  const { carrierId, name, customerId, payer, tenantId, inboundSetId, stir } = carrier
  const { gatewayId } = gateway
  const ids = { carrierId, gatewayId, tenantId, inboundSetId }
  const origin = { kind: 'carrier', ...ids, name, customerId, payer } as const
  return stir === undefined || stir.verify === 'off' ? origin : { ...origin, verify: stir.verify }
}

/**
 * The source address of an INVITE → carrier, or a trusted network (SPECIFICATION.md §10.1). The
 * smallest network around the address wins, and in it a gateway with that very port.
 */
interface CarrierSource {
  readonly carrier: CarrierRecord
  readonly gateway: GatewayRecord
}

/** The addresses that requests of a gateway may come from. */
type AddressesOf = (gateway: GatewayRecord) => readonly string[]

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

/** The gateways whose calls are accepted. */
const gatewaysThatCall = ({
  isActive,
  direction,
  gateways,
}: CarrierRecord): readonly GatewayRecord[] =>
  isActive && direction !== 'out' ? gateways.filter(({ isInbound }) => isInbound) : []

/**
 * The addresses of gateways, for calls in both directions, whether or not the gateways are in use.
 */
class GatewayNetworks {
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

/** The sender of a request, for call control. */
export type Origin =
  | { readonly kind: 'trusted' }
  | CarrierOrigin
  | NodeOrigin
  | ProxyOrigin
  /**
   * A phone that has authenticated; never the answer of `recognize`, which knows addresses alone.
   */
  | ExtensionOrigin
  | ApplicationOrigin
  | { readonly kind: 'unknown' }

interface NodeOrigin {
  readonly kind: 'node'
  readonly nodeId: number
  readonly setId: number
  /** The tenant of the node; absent: it is the platform's, or the tenant has no effect any more. */
  readonly tenantId?: number
}

interface CarrierOrigin {
  readonly kind: 'carrier'
  readonly carrierId: number
  readonly gatewayId: number
  readonly name: string
  readonly customerId: number | null
  /** `from_number`: the number in From may name the customer who pays. */
  readonly payer: CarrierRecord['payer']
  readonly tenantId: number | null
  readonly inboundSetId: number | null
  /** Policy for calls whose caller is not proved; absent: nobody looks at signatures. */
  readonly verify?: Exclude<VerifyPolicy, 'off'>
}

/**
 * A proxy that authenticates the users of some tenants (`EDGE_PROXIES`): a trunk of these tenants.
 */
interface ProxyOrigin {
  readonly kind: 'proxy'
  /** The tenants that it serves; never empty. */
  readonly tenantIds: readonly number[]
}

/**
 * The operator's drachtio-srf application, for a call that has not come from a phone or a node;
 * never the answer of `recognize`.
 */
interface ApplicationOrigin {
  readonly kind: 'application'
  readonly tenantId: number | null
  /** The payer of the call in which the application calls. */
  readonly customerId: number | null
  /** The number in From may name the customer who pays. */
  readonly mayNamePayer: boolean
}

export interface ExtensionOrigin {
  readonly kind: 'extension'
  readonly extensionId: number
  readonly tenantId: number
  readonly customerId: number | null
  readonly domain: string
  readonly extension: string
  readonly displayName: string
}
