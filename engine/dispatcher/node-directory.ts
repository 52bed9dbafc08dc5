/**
 * Which node sends from an address: its internal or external port must be the source port. Nodes
 * on TCP or TLS connect from any port, so there the address alone is enough, except on loopback,
 * where every program of the machine has the same address.
 */
import { namesBehind, sipTarget } from '../../schema/rules/sip-target.ts'
import type { SetRecord } from './destination-set.ts'
import { canonicalAddress } from './host-addresses.ts'
import type { HostDirectory } from './host-addresses.ts'

export interface NodeReference {
  readonly nodeId: number
  readonly setId: number
}

export class NodeDirectory {
  readonly #hosts: HostDirectory
  #sets: readonly SetRecord[] = []
  #builtVersion = -1
  #byAddressAndPort: ReadonlyMap<string, NodeReference> = new Map()
  #byAddress: ReadonlyMap<string, NodeReference> = new Map()

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

  /** A node in several sets is that of the lowest set id. */
  nodeAt(address: string, port: number): NodeReference | undefined {
    if (this.#hosts.version !== this.#builtVersion) this.#build()
    const canonical = canonicalAddress(address)
    return this.#byAddressAndPort.get(`${canonical} ${port}`) ?? this.#byAddress.get(canonical)
  }

  #build(): void {
    const byAddressAndPort = new Map<string, NodeReference>()
    const byAddress = new Map<string, NodeReference>()
    for (const { setId, nodes } of this.#sets)
      for (const node of nodes) {
        const reference = { nodeId: node.nodeId, setId }
        for (const address of this.#hosts.addressesOf(node.host)) {
          for (const port of [node.port, node.externalPort])
            addFirst(byAddressAndPort, `${address} ${port}`, reference)
          if (node.transport !== 'udp' && !isLoopback(address))
            addFirst(byAddress, address, reference)
        }
      }
    this.#byAddressAndPort = byAddressAndPort
    this.#byAddress = byAddress
    this.#builtVersion = this.#hosts.version
  }
}

/** Where voicemail and supervisors go: no node, but looked at before a call goes there. */
const namesOfUris = ({ voicemailUri, spyUri }: SetRecord): readonly string[] =>
  [voicemailUri, spyUri].flatMap((uri) => {
    const target = uri === null ? undefined : sipTarget(uri)
    return target === undefined ? [] : namesBehind(target)
  })

function addFirst(map: Map<string, NodeReference>, key: string, reference: NodeReference): void {
  if (!map.has(key)) map.set(key, reference)
}

const isLoopback = (address: string) => address === '::1' || address.startsWith('127.')
