/** The other instances of the installation: their addresses, and which of them answer. */
import type { Log } from '../../../schema/contracts/log.ts'
import { sipTarget } from '../../../schema/net/sip-target.ts'
import type { PeerInstance } from './phone-hop.ts'
import { canonicalAddress } from '../../../schema/net/ip-address.ts'

/** The installation that a process is an instance of. */
export interface Installation {
  /** The name of this instance. */
  readonly self: string
  /** 32 bytes that all instances have, and nothing else. */
  readonly key: Buffer
  readonly instances: () => readonly KnownInstance[]
}

/** An instance in the registry of the installation. */
export interface KnownInstance {
  /** `NODE_NAME` */
  readonly name: string
  /** A SIP URI without a user, by which other instances reach it; null: by none. */
  readonly sipUri: string | null
  /**
   * Addresses that its requests may come from, besides that of its SIP URI; some may be unreachable
   * for other instances.
   */
  readonly addresses: readonly string[]
  /** Its heartbeat is recent. */
  readonly isAlive: boolean
  /** Milliseconds UTC, by one clock for all instances. */
  readonly heartbeatAt: number
  /** Grows with each start. Absent: it is not known. */
  readonly epoch?: number
}

export interface PeerInstancesDeps {
  /** The name of this instance. */
  readonly self: string
  /** All instances, this one too. From memory. */
  readonly instances: () => readonly KnownInstance[]
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

/** An instance that did not answer, and its heartbeat at that time. */
interface Suspicion {
  readonly heartbeatAt: number
  readonly until: number
}

/** Every packet of a stranger asks whether it comes from an instance. */
const REFRESH_MS = 500
/**
 * An instance may have died after a heartbeat that is read here later: one of so much later proves
 * that it lives.
 */
const PROOF_MS = 2_500
/**
 * After so long a suspected instance is tried again: without the database server there are no
 * heartbeats.
 */
const SUSPECT_MS = 10_000
/** A token proves for so long that its source is an instance. */
const PROVEN_MS = 600_000
const DEFAULT_PORTS = { udp: 5_060, tcp: 5_060, tls: 5_061 } as const

export class PeerInstances {
  readonly #deps: PeerInstancesDeps
  #readAt = -Infinity
  #version = -1
  #watched = ''
  #byName: ReadonlyMap<string, PeerInstance> = new Map<string, PeerInstance>()
  /** Addresses of the SIP URIs of other instances. */
  #addresses: ReadonlySet<string> = new Set<string>()
  /** Addresses of the SIP URI of this instance that no other instance announces. */
  #own: ReadonlySet<string> = new Set<string>()
  /** Number of instances that announce an address, besides those of SIP URIs. */
  #announced: ReadonlyMap<string, number> = new Map<string, number>()
  /** Announced addresses that have sent a token, and until when that proves an instance. */
  readonly #provenUntil = new Map<string, number>()
  readonly #suspects = new Map<string, Suspicion>()

  constructor(deps: PeerInstancesDeps) {
    this.#deps = deps
  }

  /** Undefined: there is no such instance, or it has no usable SIP URI. */
  find(name: string): PeerInstance | undefined {
    this.#follow()
    return this.#byName.get(name)
  }

  /**
   * Whether only requests of an instance come from this address: that of another instance's SIP
   * URI, or one that an instance announces and from where it has shown a token lately. A machine
   * announces addresses of containers and tunnels, too, by which strangers may come here; and an
   * address that several instances announce identifies none. This instance sends itself nothing: a
   * request from its own address was sent, or passed on, by another program of the machine.
   */
  has(address: string): boolean {
    this.#follow()
    const source = canonicalAddress(address)
    if (this.#addresses.has(source)) return true
    return (
      this.#announced.get(source) === 1 && (this.#provenUntil.get(source) ?? 0) > this.#deps.now()
    )
  }

  /**
   * Whether an instance announces this address; that of our own SIP URI counts only if another
   * instance announces it, too.
   */
  isAnnounced(address: string): boolean {
    this.#follow()
    const source = canonicalAddress(address)
    return this.#addresses.has(source) || (this.#announced.has(source) && !this.#own.has(source))
  }

  /** A token that only an instance can have made has come from this address. */
  noteToken(address: string): void {
    this.#follow()
    const source = canonicalAddress(address)
    if (this.#announced.has(source)) this.#provenUntil.set(source, this.#deps.now() + PROVEN_MS)
  }

  /** Names of those that are there, this one too. */
  get alive(): readonly string[] {
    this.#follow()
    return [...this.#byName].flatMap(([name, { isAlive }]) => (isAlive ? [name] : []))
  }

  /**
   * Whether this run of an instance is over, or silent for so long that it may be dead. That it did
   * not answer one request does not count: what it has passed on may go on.
   */
  isLost(name: string, run: number | undefined): boolean {
    const known = this.#deps.instances().find((instance) => instance.name === name)
    if (known?.isAlive !== true) return true
    return run !== undefined && known.epoch !== undefined && known.epoch !== run
  }

  /** A request to it was not answered: it counts as gone until a heartbeat proves that it lives. */
  suspect(name: string): void {
    const { instances, now, log } = this.#deps
    const known = instances().find((instance) => instance.name === name)
    if (known === undefined) return
    if (!this.#suspects.has(name))
      log('warn', 'an instance does not answer: its phones are not called until it answers again', {
        node: name,
      })
    const { heartbeatAt } = known
    this.#suspects.set(name, { heartbeatAt, until: now() + SUSPECT_MS })
    this.#readAt = -Infinity
  }

  #isSuspect({ name, heartbeatAt }: KnownInstance): boolean {
    const suspicion = this.#suspects.get(name)
    if (suspicion === undefined) return false
    const isProven = heartbeatAt - suspicion.heartbeatAt >= PROOF_MS
    if (!isProven && this.#deps.now() < suspicion.until) return true
    this.#suspects.delete(name)
    return false
  }

  #follow(): void {
    const { self, instances, hosts, now } = this.#deps
    if (now() - this.#readAt < REFRESH_MS && hosts.version === this.#version) return
    const places = instances().flatMap((instance) => {
      const sip = placeOf(instance.sipUri)
      const isAlive = instance.isAlive && !this.#isSuspect(instance)
      return sip === undefined ? [] : [{ ...instance, isAlive, sip }]
    })
    const names = places.map(({ sip }) => sip.host)
    if (names.join() !== this.#watched) hosts.watch('nodes', names)
    this.#watched = names.join()
    this.#readAt = now()
    this.#version = hosts.version
    const announced = new Map<string, number>()
    const announcedByOthers = new Set<string>()
    const [ofSelf, ofUris] = [new Set<string>(), new Set<string>()]
    const byName = new Map<string, PeerInstance>()
    for (const { name, isAlive, sip, addresses, epoch } of places) {
      const own = hosts.addressesOf(sip.host).map(canonicalAddress)
      const others = new Set(addresses.map(canonicalAddress))
      for (const address of own) (name === self ? ofSelf : ofUris).add(address)
      for (const address of others) {
        announced.set(address, (announced.get(address) ?? 0) + 1)
        if (name !== self) announcedByOthers.add(address)
      }
      byName.set(name, { sip, isAlive, epoch, addresses: [...new Set([...own, ...others])] })
    }
    this.#byName = byName
    this.#addresses = ofUris
    this.#own = new Set([...ofSelf].filter((address) => !announcedByOthers.has(address)))
    this.#announced = announced
    for (const address of this.#provenUntil.keys())
      if (!announced.has(address)) this.#provenUntil.delete(address)
  }
}

function placeOf(sipUri: string | null): PeerInstance['sip'] | undefined {
  const target = sipUri === null ? undefined : sipTarget(sipUri)
  if (target === undefined) return undefined
  const { host, port, transport = target.isSecure ? 'tls' : 'udp' } = target
  // WebSockets are opened by pages alone (RFC 7118 §4).
  if (transport !== 'udp' && transport !== 'tcp' && transport !== 'tls') return undefined
  const protocol = target.isSecure ? 'tls' : transport
  return { host, protocol, port: port === 0 ? DEFAULT_PORTS[protocol] : port }
}
