/**
 * Verifies a token (SPECIFICATION.md §5.4): 12-character prefix, SHA-256 compared with the stored hashes,
 * expiry and active flag. `rate-limit.ts` checks the quota afterwards.
 */
import { timingSafeEqual } from 'node:crypto'
import { networkCheck } from '../../schema/net/ip-address.ts'
import type { KeyPrincipal, Presented } from './principal.ts'
import { expandScopes } from './scopes.ts'
import { hashToken, keyPrefixOf, keyStateAt, type AppKey } from './app-key.ts'
import type { KeyCache, KnownToken } from './key-cache.ts'
import type { KeyStore } from './key-store.ts'

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
