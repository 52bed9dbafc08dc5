/**
 * Caches verified tokens by their SHA-256. `key-store.ts` evicts an entry before a write returns, so a
 * revocation takes effect from the next request.
 */
import { LRUCache } from 'lru-cache'
import type { Accepted } from '../principal.ts'
import type { AppKey } from './app-key.ts'

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
  readonly #known = new LRUCache<string, KnownToken>({ max: MAX_KNOWN })
  /** Unknown tokens, so that a client with a wrong token costs no database read per request. */
  readonly #unknown = new LRUCache<string, true>({ max: MAX_UNKNOWN })

  /** `hash` in base64. */
  find(hash: string): KnownToken | 'unknown' | undefined {
    return this.#known.get(hash) ?? (this.#unknown.has(hash) ? 'unknown' : undefined)
  }

  remember(hash: string, token: KnownToken): void {
    this.#known.set(hash, token)
  }

  rememberUnknown(hash: string): void {
    this.#unknown.set(hash, true)
  }

  /** Called when a key was changed. */
  forget(keyId: number): void {
    for (const [hash, { key }] of this.#known.entries())
      if (key.id === keyId) this.#known.delete(hash)
  }

  /** Called when tokens were created, or another process wrote to the database. */
  clear(): void {
    this.#known.clear()
    this.#unknown.clear()
  }

  size(): { readonly known: number; readonly unknown: number } {
    return { known: this.#known.size, unknown: this.#unknown.size }
  }
}
