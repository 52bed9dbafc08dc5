/**
 * What is already known about tokens, by the SHA-256 of the token. Rows and this cache change
 * together (`key-store.ts` forgets before it answers), so a revocation holds from the next request.
 */
import { LRUCache } from 'lru-cache'
import type { Accepted } from '../principal.ts'
import type { AppKey } from './app-key.ts'

/** A token that belongs to a key, with what every request of it needs. */
export interface KnownToken {
  /** End of a rotated token's grace; null for the key's own token. Milliseconds UTC. */
  readonly tokenExpiresAt: number | null
  readonly key: AppKey
  readonly presented: Accepted
  readonly isAllowedFrom: (address: string) => boolean
}

const MAX_KNOWN = 10_000
const MAX_UNKNOWN = 10_000

export class KeyCache {
  readonly #known = new LRUCache<string, KnownToken>({ max: MAX_KNOWN })
  /** Tokens of no key: a client with a wrong token costs no database read per request. */
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

  /** A key was changed. */
  forget(keyId: number): void {
    for (const [hash, { key }] of this.#known.entries())
      if (key.id === keyId) this.#known.delete(hash)
  }

  /** Tokens came into being, or another process wrote to the database. */
  clear(): void {
    this.#known.clear()
    this.#unknown.clear()
  }

  size(): { readonly known: number; readonly unknown: number } {
    return { known: this.#known.size, unknown: this.#unknown.size }
  }
}
