/**
 * Verifies a token (SPECIFICATION.md §5.4): 12-character prefix, SHA-256 compared with the stored
 * hashes, expiry and active flag. `rate-limit.ts` checks the quota afterwards.
 */
import { timingSafeEqual } from 'node:crypto'
import { networkCheck } from '../../schema/net/ip-address.ts'
import { type AppKey, hashToken, keyPrefixOf, keyStateAt } from './app-key.ts'
import type { KeyStore } from './key-store.ts'
import type { Accepted, KeyPrincipal, Presented } from './principal.ts'
import { expandScopes } from './scopes.ts'
import { recentlyUsed } from '../../schema/recently-used.ts'
import { RememberedRows } from '../http/remembered-rows.ts'

const rejected: Presented = { kind: 'rejected' }

/**
 * How long tokens are accepted from memory while the database server does not answer this instance:
 * a key that was revoked on another instance meanwhile is good here until then. Milliseconds.
 */
export const LONGEST_UNCONFIRMED_MS = 600_000

const MAX_KNOWN = 10_000
const MAX_UNKNOWN = 10_000

/** A valid token, with what every request of it needs. */
interface KnownToken {
  /** End of the grace period of a rotated token; null for the key's own token. Milliseconds UTC. */
  readonly tokenExpiresAt: number | null
  readonly key: AppKey
  readonly presented: Accepted
  readonly isAllowedFrom: (address: string) => boolean
}

export class KeyVerifier {
  readonly #keys: Pick<KeyStore, 'byId' | 'candidates'>
  readonly #isCurrent: () => boolean
  /** The keys are found by the SHA-256 of the token. */
  readonly #known: RememberedRows<string, KnownToken>
  /** Unknown tokens, so that a client with a wrong token costs no database read per request. */
  readonly #unknown = recentlyUsed<string, true>(MAX_UNKNOWN)

  /**
   * @param unconfirmedMs the age of the last news of changes on other instances; 0 where there are
   * none.
   */
  constructor(keys: Pick<KeyStore, 'byId' | 'candidates'>, unconfirmedMs: () => number = () => 0) {
    this.#keys = keys
    this.#isCurrent = () => unconfirmedMs() < LONGEST_UNCONFIRMED_MS
    this.#known = new RememberedRows(MAX_KNOWN, this.#isCurrent)
  }

  /**
   * `token` has the form of a token. Expiry is checked at `now` on every request, cached or not. A
   * cached token is verified at once, unless it may have been revoked long ago: then the database
   * is asked.
   */
  verify(token: string, address: string, now: number): Presented | Promise<Presented> {
    const hash = hashToken(token)
    const known = this.#known.get(hash)
    if (known !== undefined) return judge(known, address, now)
    if (this.#isCurrent() && this.#unknown.has(hash)) return rejected
    return this.#lookUp(token, hash, address, now)
  }

  /**
   * Called before a write of a key resolves, so that a revocation takes effect from the next
   * request.
   */
  clear(): void {
    this.#known.clear()
    this.#unknown.clear()
  }

  get cached(): { readonly known: number; readonly unknown: number } {
    return { known: this.#known.size, unknown: this.#unknown.size }
  }

  async #lookUp(token: string, hash: string, address: string, now: number): Promise<Presented> {
    const read = () => this.#read(token, Buffer.from(hash, 'base64'))
    const found = await this.#known.lookUp(hash, read, () => this.#unknown.set(hash, true))
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
  const { key, tokenExpiresAt, presented } = known
  const isOver = tokenExpiresAt !== null && tokenExpiresAt <= now
  if (isOver || keyStateAt(key, now) !== 'active') return rejected
  if (known.isAllowedFrom(address)) return presented
  return { kind: 'wrong-address', principal: presented.principal }
}

const principalOfKey = (key: AppKey): KeyPrincipal => ({
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
})
