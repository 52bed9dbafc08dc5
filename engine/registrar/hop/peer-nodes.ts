/** Where each node of an installation takes SIP requests of the others, and by which addresses its own come. */
import type { Log } from '../../../schema/contracts/log.ts'
import { sipTarget } from '../../../schema/net/sip-target.ts'
import { canonicalAddress } from '../../../schema/net/source-address.ts'
import type { PeerNode } from './phone-hop.ts'

/** A node as the registry of the installation tells of it. */
export interface KnownNode {
  /** `NODE_NAME` */
  readonly name: string
  /** A SIP URI without a user, by which other nodes reach it; null: by none. */
  readonly sipUri: string | null
  /** By which its requests come, besides that of its SIP URI. */
  readonly addresses: readonly string[]
  /** Its heartbeat is recent. */
  readonly isAlive: boolean
  /** Milliseconds UTC, by one clock for all nodes. */
  readonly heartbeatAt: number
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
  readonly log: Log
}

/** What is known of a node when it did not answer. */
interface Suspicion {
  readonly heartbeatAt: number
  readonly until: number
}

/** Every packet of a stranger asks whether it comes from a node. */
const REFRESH_MS = 500
/** A node may have died after a heartbeat that is read here later: one of so much later proves that it lives. */
const PROOF_MS = 2_500
/** While the database server is away there are no heartbeats: then it is tried again. As long as a heartbeat counts. */
const SUSPECT_MS = 10_000
const DEFAULT_PORTS = { udp: 5_060, tcp: 5_060, tls: 5_061 } as const

export class PeerNodes {
  readonly #deps: PeerNodesDeps
  #readAt = -Infinity
  #version = -1
  #watched = ''
  #byName: ReadonlyMap<string, PeerNode> = new Map<string, PeerNode>()
  #addresses: ReadonlySet<string> = new Set<string>()
  readonly #suspects = new Map<string, Suspicion>()

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

  /** Names of those that are there, this one too. */
  get alive(): readonly string[] {
    this.#follow()
    return [...this.#byName].flatMap(([name, { isAlive }]) => (isAlive ? [name] : []))
  }

  /** A request to it was not answered: it counts as gone until a heartbeat proves that it lives. */
  suspect(name: string): void {
    const { nodes, now, log } = this.#deps
    const known = nodes().find((node) => node.name === name)
    if (known === undefined) return
    if (!this.#suspects.has(name))
      log('warn', 'a node does not answer: its phones are not called until it is heard again', {
        node: name,
      })
    const { heartbeatAt } = known
    this.#suspects.set(name, { heartbeatAt, until: now() + SUSPECT_MS })
    this.#readAt = -Infinity
  }

  #isSuspect({ name, heartbeatAt }: KnownNode): boolean {
    const suspicion = this.#suspects.get(name)
    if (suspicion === undefined) return false
    const isProven = heartbeatAt - suspicion.heartbeatAt >= PROOF_MS
    if (!isProven && this.#deps.now() < suspicion.until) return true
    this.#suspects.delete(name)
    return false
  }

  #follow(): void {
    const { nodes, hosts, now } = this.#deps
    if (now() - this.#readAt < REFRESH_MS && hosts.version === this.#version) return
    const places = nodes().flatMap((node) => {
      const sip = placeOf(node.sipUri)
      const isAlive = node.isAlive && !this.#isSuspect(node)
      return sip === undefined ? [] : [{ ...node, isAlive, sip }]
    })
    const names = places.map(({ sip }) => sip.host)
    if (names.join() !== this.#watched) hosts.watch('nodes', names)
    this.#watched = names.join()
    this.#readAt = now()
    this.#version = hosts.version
    this.#byName = new Map(
      places.map(({ name, isAlive, sip, addresses: told }) => {
        const addresses = [...hosts.addressesOf(sip.host), ...told].map(canonicalAddress)
        return [name, { sip, isAlive, addresses }]
      }),
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
