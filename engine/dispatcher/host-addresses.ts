/**
 * The addresses behind host names, refreshed by their TTL, so that a packet's source address can
 * be recognized without a lookup. Sending uses the name itself. A name that stops resolving keeps
 * its last addresses: a broken DNS server must not end recognition.
 */
import { ADDRCONFIG } from 'node:dns'
import { lookup, Resolver } from 'node:dns/promises'
import { isIP } from 'node:net'
import type { Cancel, Schedule } from '../../schema/clock.ts'
import { canonicalAddress } from '../../schema/net/ip-address.ts'

export interface Resolution {
  readonly addresses: readonly string[]
  readonly ttlMs: number
}

/** Resolves a name to its A and AAAA records; rejects or answers no address when it cannot. */
export type ResolveHost = (host: string) => Promise<Resolution>

/** Addresses of host names, and a version that grows when any of them has changed. */
export interface HostDirectory {
  readonly version: number
  addressesOf(host: string): readonly string[]
  /** The name has been unknown to DNS several times in a row. */
  isUnresolvable(host: string): boolean
  /** Replaces the names that `owner` needs; literal addresses are fine and cost nothing. */
  watch(owner: string, hosts: readonly string[]): void
}

const MIN_REFRESH_MS = 5_000
const MAX_REFRESH_MS = 3_600_000
const RETRY_MS = 5_000

/**
 * How long a look-up waits for all its names; a name without an answer by then has no addresses.
 */
const LOOK_UP_MS = 1_000

/**
 * Names that are asked for at once by all look-ups: a set of 100 nodes, and its two URIs. Of more
 * nothing is found.
 */
const MAX_LOOK_UPS = 128

/** Answers without an address in a row after which a name counts as unresolvable. */
const UNRESOLVABLE_AFTER = 3

interface Entry {
  addresses: readonly string[]
  /** Answers in a row that held no address. */
  failures: number
  /** How many owners watch it. */
  owners: number
  cancel: Cancel
}

const none: ReadonlySet<string> = new Set()

export class HostAddresses implements HostDirectory {
  readonly #resolve: ResolveHost
  readonly #schedule: Schedule
  readonly #wanted = new Map<string, ReadonlySet<string>>()
  readonly #entries = new Map<string, Entry>()
  /** Look-ups under way, by the name in small letters. */
  readonly #pending = new Map<string, Promise<readonly string[]>>()
  #version = 0

  constructor(resolve: ResolveHost, schedule: Schedule) {
    this.#resolve = resolve
    this.#schedule = schedule
  }

  get version(): number {
    return this.#version
  }

  addressesOf(host: string): readonly string[] {
    if (isIP(host) !== 0) return [canonicalAddress(host)]
    return this.#entries.get(host.toLowerCase())?.addresses ?? []
  }

  isUnresolvable(host: string): boolean {
    return (this.#entries.get(host.toLowerCase())?.failures ?? 0) >= UNRESOLVABLE_AFTER
  }

  watch(owner: string, hosts: readonly string[]): void {
    const names = hosts.filter((host) => isIP(host) === 0).map((host) => host.toLowerCase())
    const before = this.#wanted.get(owner) ?? none
    const after = new Set(names)
    if (after.size === 0) this.#wanted.delete(owner)
    else this.#wanted.set(owner, after)
    for (const host of after) {
      if (before.has(host)) continue
      const entry = this.#entries.get(host)
      if (entry === undefined) this.#add(host)
      else entry.owners += 1
    }
    for (const host of before) if (!after.has(host)) this.#release(host)
  }

  #release(host: string): void {
    const entry = this.#entries.get(host)
    if (entry === undefined) return
    entry.owners -= 1
    if (entry.owners > 0) return
    entry.cancel()
    this.#entries.delete(host)
  }

  /**
   * The addresses of names that are not watched: DNS is asked once, for a bounded time. Names
   * without an answer get those of `addressesOf`.
   */
  async lookUp(hosts: readonly string[]): Promise<(host: string) => readonly string[]> {
    const names = hosts.filter((host) => isIP(host) === 0).map((host) => host.toLowerCase())
    const found = new Map<string, readonly string[]>()
    const answers = [...new Set(names)].map(async (name) => {
      const addresses = await this.#ask(name)
      if (addresses.length > 0) found.set(name, addresses)
    })
    if (answers.length > 0) await this.#inTime(Promise.all(answers))
    return (host) => found.get(host.toLowerCase()) ?? this.addressesOf(host)
  }

  stop(): void {
    for (const entry of this.#entries.values()) entry.cancel()
    this.#entries.clear()
    this.#wanted.clear()
  }

  /** One query for all who ask for the same name meanwhile. */
  #ask(name: string): Promise<readonly string[]> {
    const pending = this.#pending.get(name)
    if (pending) return pending
    if (this.#pending.size >= MAX_LOOK_UPS) return Promise.resolve([])
    const answer = this.#resolve(name)
      .then(({ addresses }) => addresses.map(canonicalAddress))
      .catch(() => [])
      .finally(() => this.#pending.delete(name))
    this.#pending.set(name, answer)
    return answer
  }

  async #inTime(work: Promise<unknown>): Promise<void> {
    let cancel: Cancel = () => undefined
    const tooLate = new Promise<void>((resolve) => {
      cancel = this.#schedule(resolve, LOOK_UP_MS)
    })
    await Promise.race([work, tooLate])
    cancel()
  }

  #add(host: string): void {
    const entry: Entry = { addresses: [], failures: 0, owners: 1, cancel: () => undefined }
    this.#entries.set(host, entry)
    this.#refresh(host, entry)
  }

  #refresh(host: string, entry: Entry): void {
    this.#resolve(host).then(
      (resolution) => this.#onResolved(host, entry, resolution),
      () => this.#onResolved(host, entry, { addresses: [], ttlMs: RETRY_MS }),
    )
  }

  #onResolved(host: string, entry: Entry, { addresses, ttlMs }: Resolution): void {
    if (this.#entries.get(host) !== entry) return
    const fresh = addresses.map(canonicalAddress).toSorted()
    entry.failures = fresh.length > 0 ? 0 : entry.failures + 1
    if (fresh.length > 0 && fresh.join() !== entry.addresses.join()) {
      entry.addresses = fresh
      this.#version += 1
    }
    const delayMs = Math.min(Math.max(ttlMs, MIN_REFRESH_MS), MAX_REFRESH_MS)
    entry.cancel = this.#schedule(() => this.#refresh(host, entry), delayMs)
  }
}

/** As many as the SIP server looks at. */
const MAX_SRV_RECORDS = 16

/** Names known only to the hosts file have no TTL, and Node does not give that of SRV records. */
const UNKNOWN_TTL_MS = 60_000

/**
 * DNS first, for the TTL; then the system's resolver, for the hosts file. A name that begins with
 * an underscore is one of SRV records (RFC 2782): the addresses of their targets count. Most
 * domains have none, which is no failure.
 * @param servers those that the SIP server asks, too; none: the system's
 */
export function hostResolver(servers: readonly string[] = []): ResolveHost {
  const dns = new Resolver()
  if (servers.length > 0) dns.setServers([...servers])
  const addressesOf = async (host: string): Promise<Resolution> => {
    const [v4, v6] = await Promise.allSettled([
      dns.resolve4(host, { ttl: true }),
      dns.resolve6(host, { ttl: true }),
    ])
    const records = [v4, v6].flatMap((each) => (each.status === 'fulfilled' ? each.value : []))
    if (records.length > 0)
      return {
        addresses: records.map((record) => record.address),
        ttlMs: Math.min(...records.map((record) => record.ttl)) * 1_000,
      }
    const found = await lookup(host, { all: true, hints: ADDRCONFIG })
    return { addresses: found.map((each) => each.address), ttlMs: UNKNOWN_TTL_MS }
  }
  const ofService = async (name: string): Promise<Resolution> => {
    const records = await dns.resolveSrv(name).catch(() => [])
    const found = await Promise.allSettled(
      records.slice(0, MAX_SRV_RECORDS).map((record) => addressesOf(record.name)),
    )
    const targets = found.flatMap((each) => (each.status === 'fulfilled' ? [each.value] : []))
    return {
      addresses: targets.flatMap(({ addresses }) => addresses),
      ttlMs: Math.min(UNKNOWN_TTL_MS, ...targets.map(({ ttlMs }) => ttlMs)),
    }
  }
  return (name) => (name.startsWith('_') ? ofService(name) : addressesOf(name))
}
