/**
 * Who sends, by address (SPECIFICATION.md §10.1): a carrier, a node, a proxy of ours, or a trusted network. What
 * the platform owns comes before what a tenant owns, because a tenant may write any address.
 */
import { isIP } from 'node:net'
import { parseNetwork } from '../../../schema/net/ip-address.ts'
import { recognizedNetwork } from '../../../schema/rules/gateways.ts'
import { gatewayNames, gatewayPort } from '../gateway-uri.ts'
import { NetworkTable } from '../network-table.ts'
import type { NodeOrigin, Origin } from '../origin.ts'
import type { CarrierRecord, GatewayRecord } from '../routing-records.ts'
import {
  CarrierSources,
  gatewaysThatCall,
  GatewayNetworks,
  TrustedSources,
  type CarrierSource,
} from './sources.ts'
import type { Tenancy } from '../tenancy.ts'

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
export interface EdgeProxy {
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
      this.#deps.edgeProxies.map(({ network: text, tenants }) => {
        const network = parseNetwork(text)
        if (!network) throw new RangeError(`not a network: ${text}`)
        return [network, tenancy.idsOf(tenants)] as const
      }),
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
    if (tenantIds) return tenantIds.length > 0 ? { kind: 'proxy', tenantIds } : { kind: 'unknown' }
    const isTrusted = this.#trusted.has(address)
    const own = this.#ofTenants.find(address, port)
    // Its owner may point a name anywhere, also to where the platform's own programs are.
    if (own && !(isTrusted && isNamed(own.gateway))) return carrierOrigin(own)
    if (node && !(isTrusted && node.isNamed)) return nodeOrigin(node)
    return isTrusted ? { kind: 'trusted' } : { kind: 'unknown' }
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
    return table.lookup(address).next().value === true
  }

  /**
   * Whether a tenant's gateway is at a place of the platform's: its calls would go to a carrier that
   * the platform pays, or come back from a node as the platform's own.
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
  const { carrierId, name, customerId, payer, tenantId, inboundSetId } = carrier
  const { gatewayId } = gateway
  return { kind: 'carrier', carrierId, gatewayId, name, customerId, payer, tenantId, inboundSetId }
}
