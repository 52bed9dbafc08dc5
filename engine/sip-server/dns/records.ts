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

/** Records of one name; none: there are none, or nobody has answered. */
export interface Found<T> {
  readonly records: readonly T[]
  readonly ttlMs: number
  /** False: nobody has answered, so that what was known before may still be true. */
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
  /** Oldest first. */
  readonly #known = new Map<string, Cached<T>>()
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
    if (cached !== undefined && cached.until > now()) return cached.records
    const asked = this.#asked.get(key)
    if (asked) return asked
    if (this.#asked.size >= maxPending) return nothing.records
    const answer = this.#query(key, now)
    this.#asked.set(key, answer)
    return answer
  }

  async #query(key: string, now: () => number): Promise<readonly T[]> {
    const { records, ttlMs, isAnswer } = await this.#ask(key).catch(() => nothing)
    this.#asked.delete(key)
    const before = this.#known.get(key)
    this.#known.delete(key)
    if (!isAnswer && before && now() - before.knownAt < maxStaleMs) {
      this.#known.set(key, { ...before, until: now() + missingMs })
      return before.records
    }
    const keptMs = records.length === 0 ? missingMs : Math.min(Math.max(ttlMs, minTtlMs), maxTtlMs)
    if (this.#known.size >= maxNames) {
      const [oldest] = this.#known.keys()
      if (oldest !== undefined) this.#known.delete(oldest)
    }
    this.#known.set(key, { records, until: now() + keptMs, knownAt: now() })
    return records
  }
}
