/**
 * Which node sends from an address: its internal or external port must be the source port. Nodes
 * on TCP or TLS connect from any port, so there the address alone is enough, except on loopback,
 * where every program of the machine has the same address. A node of the platform is recognized
 * before one of a tenant: a tenant may write any address.
 */
import { isIP } from 'node:net'
import { namesBehind, sipTarget } from '../../schema/net/sip-target.ts'
import { canonicalAddress } from '../../schema/net/ip-address.ts'
import type { SetRecord } from './destination-set.ts'
import type { HostDirectory } from './host-addresses.ts'

export interface NodeReference {
  readonly nodeId: number
  readonly setId: number
  /** Null: the platform's. */
  readonly tenantId: number | null
  /** Given as a host name, which its owner may point to any address. */
  readonly isNamed: boolean
}

interface Addresses {
  readonly byAddressAndPort: Map<string, NodeReference>
  readonly byAddress: Map<string, NodeReference>
}

const noAddresses = (): Addresses => ({ byAddressAndPort: new Map(), byAddress: new Map() })

export class NodeDirectory {
  readonly #hosts: HostDirectory
  #sets: readonly SetRecord[] = []
  #builtVersion = -1
  #ofPlatform = noAddresses()
  #ofTenants = noAddresses()

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

  #build(): void {
    const [ofPlatform, ofTenants] = [noAddresses(), noAddresses()]
    for (const { setId, tenantId, nodes } of this.#sets)
      for (const node of nodes) {
        const reference = { nodeId: node.nodeId, setId, tenantId, isNamed: isIP(node.host) === 0 }
        const { byAddressAndPort, byAddress } = tenantId === null ? ofPlatform : ofTenants
        for (const address of this.#hosts.addressesOf(node.host)) {
          for (const port of [node.port, node.externalPort])
            addFirst(byAddressAndPort, `${address} ${port}`, reference)
          if (node.transport !== 'udp' && !isLoopback(address))
            addFirst(byAddress, address, reference)
        }
      }
    this.#ofPlatform = ofPlatform
    this.#ofTenants = ofTenants
    this.#builtVersion = this.#hosts.version
  }
}

/** Where voicemail and supervisors go: no node, but looked at before a call goes there. */
const namesOfUris = ({ voicemailUri, spyUri }: SetRecord): readonly string[] =>
  [voicemailUri, spyUri].flatMap((uri) => {
    const target = uri === null ? undefined : sipTarget(uri)
    return target === undefined ? [] : namesBehind(target)
  })

const nodeIn = ({ byAddressAndPort, byAddress }: Addresses, address: string, port: number) =>
  byAddressAndPort.get(`${address} ${port}`) ?? byAddress.get(address)

function addFirst(map: Map<string, NodeReference>, key: string, reference: NodeReference): void {
  const first = map.get(key)
  // A tenant chooses its set ids, but not when it came.
  const isOlder =
    first !== undefined && first.tenantId !== reference.tenantId && reference.nodeId < first.nodeId
  if (first === undefined || isOlder) map.set(key, reference)
}

const isLoopback = (address: string) => address === '::1' || address.startsWith('127.')
