/** DNS records behind a bounded cache, so that a busy name costs one query per time to live. */
import type { SrvRecord } from './srv-order.ts'

/** RFC 3403. */
export interface NaptrRecord {
  readonly order: number
  readonly preference: number
  readonly flags: string
  readonly service: string
  readonly replacement: string
}

/** Records of one name; none: there are none, or no server has answered. */
export interface Found<T> {
  readonly records: readonly T[]
  readonly ttlMs: number
  /** False: no server has answered, so that what was known before may still be true. */
  readonly isAnswer: boolean
}

/** Where records come from. Never rejects; each answer comes within a bounded time. */
export interface Dns {
  naptr(name: string): Promise<Found<NaptrRecord>>
  srv(name: string): Promise<Found<SrvRecord>>
  /** IPv4 and IPv6, in the order of preference. */
  addresses(name: string): Promise<Found<string>>
}

/** Short, so that a name that has just been created is not missing for long. */
const missingMs = 2_000

/** A record without a time to live would be asked for by every call. */
const minTtlMs = 1_000

/** However long a record may be kept, it is looked at again after an hour. */
export const maxTtlMs = 3_600_000

/** Of each kind of record; as many again that do not exist. */
const maxNames = 1_000

/** Queries that may be under way at once; beyond, a name counts as not found. */
const maxPending = 1_000

/** So old may records be that are still used because no DNS server answers (RFC 8767 §4). */
const maxStaleMs = 6 * 3_600_000

const nothing: Found<never> = { records: [], ttlMs: missingMs, isAnswer: false }

interface Cached<T> {
  readonly records: readonly T[]
  readonly until: number
  /** When it was last known to be true. */
  readonly knownAt: number
}

/** The same answers, remembered. */
export class CachedDns {
  readonly #now: () => number
  readonly #naptr: Cache<NaptrRecord>
  readonly #srv: Cache<SrvRecord>
  readonly #addresses: Cache<string>

  constructor(dns: Dns, now: () => number) {
    this.#now = now
    this.#naptr = new Cache((name) => dns.naptr(name))
    this.#srv = new Cache((name) => dns.srv(name))
    this.#addresses = new Cache((name) => dns.addresses(name))
  }

  naptr(name: string): Promise<readonly NaptrRecord[]> {
    return this.#naptr.find(name, this.#now)
  }

  srv(name: string): Promise<readonly SrvRecord[]> {
    return this.#srv.find(name, this.#now)
  }

  addresses(name: string): Promise<readonly string[]> {
    return this.#addresses.find(name, this.#now)
  }

  /** Queries under way. */
  get pending(): number {
    return this.#naptr.pending + this.#srv.pending + this.#addresses.pending
  }
}

class Cache<T> {
  readonly #ask: (name: string) => Promise<Found<T>>
  /** Least recently used first: strangers' names push out those in use last. */
  readonly #known = new Map<string, Cached<T>>()
  /** Until when a name counts as missing. Apart, so that made-up names push out no others. */
  readonly #missing = new Map<string, number>()
  readonly #asked = new Map<string, Promise<readonly T[]>>()

  constructor(ask: (name: string) => Promise<Found<T>>) {
    this.#ask = ask
  }

  get pending(): number {
    return this.#asked.size
  }

  /** One query for all who ask for the same name meanwhile. */
  async find(name: string, now: () => number): Promise<readonly T[]> {
    const key = name.toLowerCase()
    const cached = this.#known.get(key)
    if (cached !== undefined && cached.until > now()) {
      remember(this.#known, key, cached)
      return cached.records
    }
    if ((this.#missing.get(key) ?? 0) > now()) return nothing.records
    const asked = this.#asked.get(key)
    if (asked) return asked
    if (this.#asked.size >= maxPending) return isUsable(cached, now()) ? cached.records : []
    const answer = this.#query(key, now)
    this.#asked.set(key, answer)
    return answer
  }

  async #query(key: string, now: () => number): Promise<readonly T[]> {
    const { records, ttlMs, isAnswer } = await this.#ask(key).catch(() => nothing)
    this.#asked.delete(key)
    const before = this.#known.get(key)
    if (!isAnswer && isUsable(before, now())) {
      remember(this.#known, key, { ...before, until: now() + missingMs })
      return before.records
    }
    if (records.length === 0) {
      this.#known.delete(key)
      remember(this.#missing, key, now() + missingMs)
      return records
    }
    const keptMs = Math.min(Math.max(ttlMs, minTtlMs), maxTtlMs)
    remember(this.#known, key, { records, until: now() + keptMs, knownAt: now() })
    return records
  }
}

/** Where no server answers, what was known before may still be true. */
const isUsable = <T>(cached: Cached<T> | undefined, now: number): cached is Cached<T> =>
  cached !== undefined && now - cached.knownAt < maxStaleMs

/** As the last of the map, which loses its first where it grows too large. */
function remember<Value>(map: Map<string, Value>, key: string, value: Value): void {
  map.delete(key)
  map.set(key, value)
  if (map.size <= maxNames) return
  const [first] = map.keys()
  if (first !== undefined) map.delete(first)
}
