/** Where each node of an installation takes SIP requests of the others, and by which addresses its own come. */
import { sipTarget } from '../../../schema/net/sip-target.ts'
import { canonicalAddress } from '../../../schema/net/source-address.ts'
import type { PeerNode } from './phone-hop.ts'

/** A node as the registry of the installation tells of it. */
export interface KnownNode {
  /** `NODE_NAME` */
  readonly name: string
  /** A SIP URI without a user, by which other nodes reach it; null: by none. */
  readonly sipUri: string | null
  /** Its heartbeat is recent. */
  readonly isAlive: boolean
}

export interface PeerNodesDeps {
  /** All nodes, this one too. From memory. */
  readonly nodes: () => readonly KnownNode[]
  /** Milliseconds by the steady clock. */
  readonly now: () => number
  readonly hosts: {
    /** Grows when the addresses of a name have changed. */
    readonly version: number
    addressesOf(host: string): readonly string[]
    watch(owner: string, hosts: readonly string[]): void
  }
}

/** Every packet of a stranger asks whether it comes from a node. */
const REFRESH_MS = 500
const DEFAULT_PORTS = { udp: 5_060, tcp: 5_060, tls: 5_061 } as const

export class PeerNodes {
  readonly #deps: PeerNodesDeps
  #readAt = -Infinity
  #version = -1
  #watched = ''
  #byName: ReadonlyMap<string, PeerNode> = new Map<string, PeerNode>()
  #addresses: ReadonlySet<string> = new Set<string>()

  constructor(deps: PeerNodesDeps) {
    this.#deps = deps
  }

  /** Undefined: there is no such node, or it tells no usable SIP URI. */
  find(name: string): PeerNode | undefined {
    this.#follow()
    return this.#byName.get(name)
  }

  /** Whether requests of a node come from there. */
  has(address: string): boolean {
    this.#follow()
    return this.#addresses.has(canonicalAddress(address))
  }

  #follow(): void {
    const { nodes, hosts, now } = this.#deps
    if (now() - this.#readAt < REFRESH_MS && hosts.version === this.#version) return
    const places = nodes().flatMap(({ name, isAlive, sipUri }) => {
      const sip = placeOf(sipUri)
      return sip === undefined ? [] : [{ name, isAlive, sip }]
    })
    const names = places.map(({ sip }) => sip.host)
    if (names.join() !== this.#watched) hosts.watch('nodes', names)
    this.#watched = names.join()
    this.#readAt = now()
    this.#version = hosts.version
    this.#byName = new Map(
      places.map(({ name, isAlive, sip }) => [
        name,
        { sip, isAlive, addresses: hosts.addressesOf(sip.host).map(canonicalAddress) },
      ]),
    )
    this.#addresses = new Set([...this.#byName.values()].flatMap(({ addresses }) => addresses))
  }
}

function placeOf(sipUri: string | null): PeerNode['sip'] | undefined {
  const target = sipUri === null ? undefined : sipTarget(sipUri)
  if (target === undefined) return undefined
  const { host, port, transport = target.isSecure ? 'tls' : 'udp' } = target
  // WebSockets are opened by pages alone (RFC 7118 §4).
  if (transport !== 'udp' && transport !== 'tcp' && transport !== 'tls') return undefined
  const protocol = target.isSecure ? 'tls' : transport
  return { host, protocol, port: port === 0 ? DEFAULT_PORTS[protocol] : port }
}
