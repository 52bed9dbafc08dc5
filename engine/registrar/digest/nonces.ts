import type { ExtensionDirectory } from '../extension-directory.ts'
import { hash, timingSafeEqual } from 'node:crypto'
import { detachString } from '../../../schema/sip/index.ts'

export interface DigestDeps {
  readonly directory: Pick<ExtensionDirectory, 'find'>
  /**
   * At least 32 random bytes of this process, hexadecimal: after a restart every nonce is stale.
   */
  readonly secret: string
  readonly nonceLifetimeMs: number
  /** Milliseconds UTC. */
  readonly now: () => number
}

/** Nonces in use that are remembered; with more, older ones become stale before their time. */
const MAX_NONCES = 50_000
const NONCE_BYTES = 24

/** The realm and address that a nonce is issued to. */
interface NonceOwner {
  readonly realm: string
  /** A nonce is bound to it, so that another address can neither use it nor use it up. */
  readonly address: string
}

interface Genuine extends NonceOwner {
  readonly issuedAt: number
}

interface InUse extends Genuine {
  /** The highest `nc` so far. */
  count: number
}

/**
 * Nonces that need no memory to be issued: time, serial number and a keyed hash (RFC 7616 §3.3).
 * Memory is spent only on those that were answered rightly, to refuse a repeated `nc` (§5.12).
 */
export class Nonces {
  readonly #deps: Omit<DigestDeps, 'directory'>
  readonly #maxInUse: number
  /** Nonces in the order of their first use. */
  readonly #inUse = new Map<string, InUse>()
  #serial = 0
  /** The last nonce with a checked seal: `use` follows `isGenuine`. */
  #checked: (Genuine & { readonly nonce: string }) | undefined
  /** Nothing issued until then is good any more unless it is remembered. Milliseconds UTC. */
  #forgottenUntil = -Infinity

  constructor(deps: Omit<DigestDeps, 'directory'>, maxInUse = MAX_NONCES) {
    this.#deps = deps
    this.#maxInUse = maxInUse
  }

  issue(owner: NonceOwner): string {
    this.#serial = (this.#serial + 1) % 0x1_0000_0000
    const head = Buffer.allocUnsafe(10)
    head.writeUIntBE(this.#deps.now(), 0, 6)
    head.writeUInt32BE(this.#serial, 6)
    return Buffer.concat([head, this.#seal(head, owner)]).toString('base64url')
  }

  /** Whether this process gave it to this owner, however long ago. */
  isGenuine(nonce: string, owner: NonceOwner): boolean {
    return this.#issuedAt(nonce, owner) !== undefined
  }

  /**
   * To be asked only for an answer that was right: takes `count` (1 and up) as used. False: too
   * old, or counted before. Counts must grow; a request that was overtaken costs a round trip.
   */
  use(nonce: string, owner: NonceOwner, count: number): boolean {
    const issuedAt = this.#issuedAt(nonce, owner)
    const now = this.#deps.now()
    if (issuedAt === undefined || issuedAt > now) return false
    if (now - issuedAt >= this.#deps.nonceLifetimeMs) return false
    const known = this.#inUse.get(nonce)
    if (known) {
      if (count <= known.count) return false
      known.count = count
      return true
    }
    if (issuedAt <= this.#forgottenUntil) return false
    const { realm, address } = owner
    this.#inUse.set(detachString(nonce), { issuedAt, count, realm: detachString(realm), address })
    this.#forget(now)
    return true
  }

  get size(): number {
    return this.#inUse.size
  }

  /** Undefined: not one of ours. */
  #issuedAt(nonce: string, owner: NonceOwner): number | undefined {
    const known = this.#inUse.get(nonce) ?? (this.#checked?.nonce === nonce && this.#checked)
    if (known && known.address === owner.address && known.realm === owner.realm)
      return known.issuedAt
    const bytes = Buffer.from(nonce, 'base64url')
    if (bytes.length !== NONCE_BYTES) return undefined
    const head = bytes.subarray(0, 10)
    if (!timingSafeEqual(bytes.subarray(10), this.#seal(head, owner))) return undefined
    const issuedAt = head.readUIntBE(0, 6)
    this.#checked = { nonce, issuedAt, ...owner }
    return issuedAt
  }

  #seal(head: Buffer, { realm, address }: NonceOwner): Buffer {
    const text = `${head.toString('hex')} ${realm} ${address}`
    return Buffer.from(keyedHash(this.#deps.secret, text), 'hex').subarray(0, 14)
  }

  /** Expired ones, and the oldest when there are too many: their counts are not known any more. */
  #forget(now: number): void {
    const expiredAt = now - this.#deps.nonceLifetimeMs
    for (const [nonce, { issuedAt }] of this.#inUse) {
      if (issuedAt > expiredAt && this.#inUse.size <= this.#maxInUse) return
      this.#inUse.delete(nonce)
      if (issuedAt > expiredAt) this.#forgottenUntil = Math.max(this.#forgottenUntil, issuedAt)
    }
  }
}

/**
 * A SHA-256 that only the holder of `secret` (hexadecimal) can compute, in hexadecimal. Nested like
 * HMAC (RFC 2104), so that nothing can be appended to `text`; a tenth of the time of `createHmac`.
 */
export const keyedHash = (secret: string, text: string): string =>
  hash('sha256', secret + hash('sha256', secret + text, 'hex'), 'hex')
