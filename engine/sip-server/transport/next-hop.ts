/** Addresses of host names, behind a small cache (RFC 3263 §4.2: A and AAAA). */
import { lookup } from 'node:dns'
import { isIP } from 'node:net'

/** Finds all addresses of a host in the order of preference; `[]` when there are none. */
export type FindAddresses = (host: string, found: (addresses: readonly string[]) => void) => void

/** The system's resolver, `/etc/hosts` included. */
export const systemLookup: FindAddresses = (host, found) => {
  lookup(host, { all: true }, (error, addresses) => {
    found(error === null ? addresses.map(({ address }) => address) : [])
  })
}

interface CachedHost {
  readonly addresses: readonly string[]
  readonly expiresAt: number
}

/** `dns.lookup` does not tell a record's own time to live. Milliseconds. */
const foundTtlMs = 30_000

/** Short, so that a name that has just been created is not missing for long. */
const missingTtlMs = 2_000

const maxCachedHosts = 1_000

/** Lookups that may be under way at once; a host beyond it counts as not found. */
const maxPending = 1_000

export class NextHopResolver {
  readonly #find: FindAddresses
  readonly #now: () => number
  readonly #resolved: (host: string, addresses: readonly string[]) => void
  /** Oldest first. */
  readonly #cache = new Map<string, CachedHost>()
  readonly #pending = new Set<string>()

  /** @param resolved called from the event loop, once for each host that was being looked up */
  constructor(
    find: FindAddresses,
    now: () => number,
    resolved: (host: string, addresses: readonly string[]) => void,
  ) {
    this.#find = find
    this.#now = now
    this.#resolved = resolved
  }

  get pending(): number {
    return this.#pending.size
  }

  /** Answers later, through `resolved`, once for all who ask for the same host in between. */
  resolve(host: string): void {
    if (this.#pending.has(host)) return
    const known = this.#known(host)
    if (known !== undefined) {
      setImmediate(this.#resolved, host, known)
      return
    }
    this.#pending.add(host)
    this.#find(host, (addresses) => {
      this.#pending.delete(host)
      this.#remember(host, addresses)
      this.#resolved(host, addresses)
    })
  }

  #known(host: string): readonly string[] | undefined {
    const literal = host.startsWith('[') ? host.slice(1, -1) : host
    if (isIP(literal) !== 0) return [literal]
    const cached = this.#cache.get(host)
    if (cached !== undefined && cached.expiresAt > this.#now()) return cached.addresses
    return this.#pending.size >= maxPending ? [] : undefined
  }

  #remember(host: string, addresses: readonly string[]): void {
    this.#cache.delete(host)
    if (this.#cache.size >= maxCachedHosts) {
      const [oldest] = this.#cache.keys()
      if (oldest !== undefined) this.#cache.delete(oldest)
    }
    const ttlMs = addresses.length > 0 ? foundTtlMs : missingTtlMs
    this.#cache.set(host, { addresses, expiresAt: this.#now() + ttlMs })
  }
}
