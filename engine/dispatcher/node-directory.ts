import type { NodeRecord, SetRecord } from './destination-set.ts'
import type { HostDirectory } from './host-addresses.ts'
import { isIP } from 'node:net'
import { namesBehind, type SipTarget, sipTarget } from '../../schema/net/sip-target.ts'
import { canonicalAddress } from '../../schema/net/ip-address.ts'
import { plainHost } from '../../schema/sip/index.ts'

export interface NodeReference {
  readonly nodeId: number
  readonly setId: number
  /** Null: the platform's. */
  readonly tenantId: number | null
  /** Given as a host name, which its owner may point to any address. */
  readonly isNamed: boolean
}

/** Nodes by address, then by port. */
type Addresses = Map<string, Map<number, NodeReference>>

/** No source has this port. */
const ANY_PORT = 0

/** Ports of URIs that name none (RFC 3261 §19.1.2). */
const SIP_PORT = 5_060
const SIPS_PORT = 5_061

/**
 * Finds the node that sends from an address: its internal or external port must be the source port.
 * Nodes on TCP or TLS connect from any port, so there the address alone is enough, except on
 * loopback, where every program of the machine has the same address. A node of the platform is
 * recognized before one of a tenant: a tenant may write any address.
 */
export class NodeDirectory {
  readonly #hosts: HostDirectory
  #sets: readonly SetRecord[] = []
  #builtVersion = -1
  #ofPlatform: Addresses = new Map()
  #ofTenants: Addresses = new Map()

  constructor(hosts: HostDirectory) {
    this.#hosts = hosts
  }

  replace(sets: readonly SetRecord[]): void {
    this.#sets = sets.toSorted((one, other) => one.setId - other.setId)
    this.#hosts.watch(
      'dispatcher',
      sets.flatMap((set) => [...set.nodes.map((node) => node.host), ...namesOfUris(set)]),
    )
    this.#build()
  }

  /** A node in several sets is that of the lowest set id; of several tenants, the older one. */
  nodeAt(address: string, port: number): NodeReference | undefined {
    if (this.#hosts.version !== this.#builtVersion) this.#build()
    const canonical = canonicalAddress(address)
    return nodeIn(this.#ofPlatform, canonical, port) ?? nodeIn(this.#ofTenants, canonical, port)
  }

  /**
   * The node that a program calls by this host and port: by its name or any of its addresses, the
   * platform's first, then those of `tenantId`. Null: of any tenant.
   */
  nodeCalled(
    { host, port, transport, isSecure }: SipTarget,
    tenantId: number | null,
  ): NodeReference | undefined {
    const wanted = {
      host: plainHost(host),
      address: isIP(host) === 0 ? '' : canonicalAddress(host),
    }
    const by = transport ?? (isSecure ? 'tls' : undefined)
    const wantedPort = port || (by === 'tls' ? SIPS_PORT : SIP_PORT)
    const isMeant = (node: NodeRecord): boolean =>
      (node.port === wantedPort || node.externalPort === wantedPort) &&
      (by === undefined || node.transport === by) &&
      (plainHost(node.host) === wanted.host ||
        (wanted.address !== '' && this.#hosts.addressesOf(node.host).includes(wanted.address)))
    const found = this.#sets.flatMap((set) =>
      set.tenantId === null || tenantId === null || set.tenantId === tenantId
        ? set.nodes.filter(isMeant).map((node) => referenceTo(node, set))
        : [],
    )
    return found.find((each) => each.tenantId === null) ?? found.at(0)
  }

  #build(): void {
    const [ofPlatform, ofTenants]: [Addresses, Addresses] = [new Map(), new Map()]
    for (const set of this.#sets)
      for (const node of set.nodes) {
        const reference = referenceTo(node, set)
        const addresses = set.tenantId === null ? ofPlatform : ofTenants
        for (const address of this.#hosts.addressesOf(node.host)) {
          const byPort = addresses.get(address) ?? new Map<number, NodeReference>()
          addresses.set(address, byPort)
          addFirst(byPort, node.port, reference)
          addFirst(byPort, node.externalPort, reference)
          if (node.transport !== 'udp' && !isLoopback(address))
            addFirst(byPort, ANY_PORT, reference)
        }
      }
    this.#ofPlatform = ofPlatform
    this.#ofTenants = ofTenants
    this.#builtVersion = this.#hosts.version
  }
}

const referenceTo = (
  { nodeId, host }: NodeRecord,
  { setId, tenantId }: SetRecord,
): NodeReference => ({ nodeId, setId, tenantId, isNamed: isIP(host) === 0 })

/** Hosts of voicemail and supervisors: no nodes, but resolved as those are. */
const namesOfUris = ({ voicemailUri, spyUri }: SetRecord): readonly string[] =>
  [voicemailUri, spyUri].flatMap((uri) => {
    const target = uri === null ? undefined : sipTarget(uri)
    return target === undefined ? [] : namesBehind(target)
  })

function nodeIn(addresses: Addresses, address: string, port: number): NodeReference | undefined {
  const byPort = addresses.get(address)
  return byPort?.get(port) ?? byPort?.get(ANY_PORT)
}

function addFirst(
  byPort: Map<number, NodeReference>,
  port: number,
  reference: NodeReference,
): void {
  const first = byPort.get(port)
  // A tenant chooses its set ids, but not its node ids.
  const isOlder =
    first !== undefined && first.tenantId !== reference.tenantId && reference.nodeId < first.nodeId
  if (first === undefined || isOlder) byPort.set(port, reference)
}

const isLoopback = (address: string) => address === '::1' || address.startsWith('127.')
