/**
 * Verifies a token (SPECIFICATION.md §5.4): 12-character prefix, SHA-256 compared with the stored hashes,
 * expiry and active flag. `rate-limit.ts` checks the quota afterwards.
 */
import { timingSafeEqual } from 'node:crypto'
import { networkCheck } from '../../schema/net/ip-address.ts'
import { type AppKey, hashToken, keyPrefixOf, keyStateAt } from './app-key.ts'
import type { KeyStore } from './key-store.ts'
import type { Accepted, KeyPrincipal, Presented } from './principal.ts'
import { expandScopes } from './scopes.ts'
import { recentlyUsed } from '../http/recently-used.ts'

const rejected: Presented = { kind: 'rejected' }

/**
 * How long tokens are accepted from memory while the database server does not answer this node: a key that was revoked
 * on another node meanwhile is good here until then. Milliseconds.
 */
export const LONGEST_UNCONFIRMED_MS = 600_000

export class KeyVerifier {
  readonly #keys: KeyStore
  readonly #cache: KeyCache
  readonly #unconfirmedMs: () => number

  /** @param unconfirmedMs how long ago changes of other nodes were heard of; 0 where there are none. */
  constructor(keys: KeyStore, cache: KeyCache, unconfirmedMs: () => number = () => 0) {
    this.#keys = keys
    this.#cache = cache
    this.#unconfirmedMs = unconfirmedMs
  }

  /**
   * `token` has the form of a token. Expiry is checked at `now` on every request, cached or not. A cached token
   * is verified at once, unless it may have been revoked long ago: then the database is asked.
   */
  verify(token: string, address: string, now: number): Presented | Promise<Presented> {
    const hash = hashToken(token)
    const isCurrent = this.#unconfirmedMs() < LONGEST_UNCONFIRMED_MS
    const cached = isCurrent ? this.#cache.find(hash) : undefined
    if (cached === undefined) return this.#lookUp(token, hash, address, now)
    return cached === 'unknown' ? rejected : judge(cached, address, now)
  }

  async #lookUp(token: string, hash: string, address: string, now: number): Promise<Presented> {
    const found = await this.#cache.lookUp(hash, () =>
      this.#read(token, Buffer.from(hash, 'base64')),
    )
    return found === undefined ? rejected : judge(found, address, now)
  }

  /** Compares all candidates: stopping at the first match would reveal its position by timing. */
  async #read(token: string, hash: Buffer): Promise<KnownToken | undefined> {
    let match: { keyId: number; tokenExpiresAt: number | null } | undefined
    for (const candidate of await this.#keys.candidates(keyPrefixOf(token)))
      if (timingSafeEqual(candidate.key_hash, hash))
        match = { keyId: candidate.key_id, tokenExpiresAt: candidate.token_expires_at }
    const key = match && (await this.#keys.byId(match.keyId))
    if (match === undefined || key === undefined) return undefined
    return {
      key,
      tokenExpiresAt: match.tokenExpiresAt,
      presented: { kind: 'accepted', principal: principalOfKey(key) },
      isAllowedFrom: networkCheck(key.allowedIps),
    }
  }
}

function judge(known: KnownToken, address: string, now: number): Presented {
  if (!isValidAt(known, now)) return rejected
  if (known.isAllowedFrom(address)) return known.presented
  return { kind: 'wrong-address', principal: known.presented.principal }
}

function isValidAt({ key, tokenExpiresAt }: KnownToken, now: number): boolean {
  if (tokenExpiresAt !== null && tokenExpiresAt <= now) return false
  return keyStateAt(key, now) === 'active'
}

function principalOfKey(key: AppKey): KeyPrincipal {
  return {
    kind: 'key',
    actor: `key:${key.uuid}`,
    keyId: key.id,
    uuid: key.uuid,
    ownerUsername: key.ownerUsername,
    name: key.name,
    keyPrefix: key.keyPrefix,
    limits: key,
    scopeLabels: key.scopeLabels,
    scopes: expandScopes(key.scopeLabels),
    tenantId: key.tenantId,
    tenantSlug: key.tenantSlug,
    domain: key.domain,
  }
}

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

/**
 * Caches verified tokens by their SHA-256. `key-store.ts` clears it before a write resolves, so a
 * revocation takes effect from the next request.
 */
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

/** Look-ups of what every request needs: those that need the same at the same time share one. */

export class LookUps<K, V> {
  /** No more than the server has requests. */
  readonly #underWay = new Map<K, Promise<V>>()

  /**
   * Remembers what `read` finds. What was read before `clear` may be outdated: it is not remembered, and later requests
   * do not wait for it.
   */
  async run(key: K, read: () => Promise<V>, remember: (found: V) => void): Promise<V> {
    const underWay = this.#underWay.get(key)
    if (underWay !== undefined) return underWay
    const lookUp = read()
    const isCurrent = (): boolean => this.#underWay.get(key) === lookUp
    this.#underWay.set(key, lookUp)
    try {
      const found = await lookUp
      if (isCurrent()) remember(found)
      return found
    } finally {
      if (isCurrent()) this.#underWay.delete(key)
    }
  }

  clear(): void {
    this.#underWay.clear()
  }
}
