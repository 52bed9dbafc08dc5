/** Keeps the answers of DNS for as long as they are valid, and old ones while no server answers. */
import { type NaptrRecord, type DnsAnswer, type Dns, type SrvRecord, maxTtlMs } from './dns.ts'

/** Short, so that a name that has just been created is not missing for long. */
const missingMs = 2_000

/** A record without a time to live would be asked for by every call. */
const minTtlMs = 1_000

/** Names that are kept for each kind of record; as many again that do not exist. */
const maxNames = 1_000

/** Queries that may be under way at once; beyond, a name counts as missing. */
const maxPending = 1_000

/** The age up to which records are used while no DNS server answers (RFC 8767 §4). */
const maxStaleMs = 6 * 3_600_000

const nothing: DnsAnswer<never> = { records: [], ttlMs: missingMs, isAnswer: false }

interface CachedRecords<T> {
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
  readonly #ask: (name: string) => Promise<DnsAnswer<T>>
  /** Least recently used first: strangers' names push out those in use last. */
  readonly #known = new Map<string, CachedRecords<T>>()
  /** Until when a name counts as missing. Apart, so that made-up names push out no others. */
  readonly #missing = new Map<string, number>()
  readonly #queries = new Map<string, Promise<readonly T[]>>()

  constructor(ask: (name: string) => Promise<DnsAnswer<T>>) {
    this.#ask = ask
  }

  get pending(): number {
    return this.#queries.size
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
    const asked = this.#queries.get(key)
    if (asked) return asked
    if (this.#queries.size >= maxPending) return isUsable(cached, now()) ? cached.records : []
    const answer = this.#query(key, now)
    this.#queries.set(key, answer)
    return answer
  }

  async #query(key: string, now: () => number): Promise<readonly T[]> {
    const { records, ttlMs, isAnswer } = await this.#ask(key).catch(() => nothing)
    this.#queries.delete(key)
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
    const lifetimeMs = Math.min(Math.max(ttlMs, minTtlMs), maxTtlMs)
    remember(this.#known, key, { records, until: now() + lifetimeMs, knownAt: now() })
    return records
  }
}

/** While no server answers, former records may still be true. */
const isUsable = <T>(
  cached: CachedRecords<T> | undefined,
  now: number,
): cached is CachedRecords<T> => cached !== undefined && now - cached.knownAt < maxStaleMs

/** Adds an entry as the last of the map, which loses its first when it grows too large. */
function remember<Value>(map: Map<string, Value>, key: string, value: Value): void {
  map.delete(key)
  map.set(key, value)
  if (map.size <= maxNames) return
  const [first] = map.keys()
  if (first !== undefined) map.delete(first)
}
