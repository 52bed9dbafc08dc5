/**
 * Caches verified tokens by their SHA-256. `key-store.ts` clears it before a write resolves, so a
 * revocation takes effect from the next request.
 */
import type { Accepted } from './principal.ts'
import type { AppKey } from './app-key.ts'
import { recentlyUsed } from '../http/recently-used.ts'
import { LookUps } from './look-ups.ts'

/** A valid token, with what every request of it needs. */
export interface KnownToken {
  /** End of the grace period of a rotated token; null for the key's own token. Milliseconds UTC. */
  readonly tokenExpiresAt: number | null
  readonly key: AppKey
  readonly presented: Accepted
  readonly isAllowedFrom: (address: string) => boolean
}

const MAX_KNOWN = 10_000
const MAX_UNKNOWN = 10_000

export class KeyCache {
  readonly #known = recentlyUsed<string, KnownToken>(MAX_KNOWN)
  /** Unknown tokens, so that a client with a wrong token costs no database read per request. */
  readonly #unknown = recentlyUsed<string, true>(MAX_UNKNOWN)
  readonly #lookUps = new LookUps<string, KnownToken | undefined>()

  /** `hash` in base64. */
  find(hash: string): KnownToken | 'unknown' | undefined {
    return this.#known.get(hash) ?? (this.#unknown.has(hash) ? 'unknown' : undefined)
  }

  /** Remembers what `read` finds, unless the cache was cleared meanwhile. */
  lookUp(
    hash: string,
    read: () => Promise<KnownToken | undefined>,
  ): Promise<KnownToken | undefined> {
    return this.#lookUps.run(hash, read, (found) => this.#remember(hash, found))
  }

  /** Called when keys were changed, also by another process. */
  clear(): void {
    this.#known.clear()
    this.#unknown.clear()
    this.#lookUps.clear()
  }

  #remember(hash: string, found: KnownToken | undefined): void {
    if (found === undefined) this.#unknown.set(hash, true)
    else this.#known.set(hash, found)
  }

  size(): { readonly known: number; readonly unknown: number } {
    return { known: this.#known.size, unknown: this.#unknown.size }
  }
}
