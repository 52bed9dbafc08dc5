import { createCipheriv, createDecipheriv, createHmac, hkdfSync } from 'node:crypto'

/** The column and row of a value: it can be decrypted only there. */
export interface SecretLocation {
  readonly table: string
  readonly column: string
  /** The row's primary key. */
  readonly row: number | string
}

/** Names the format, so that later formats can coexist. */
const prefix = 'enc1:'

const NONCE_BYTES = 12
const TAG_BYTES = 16

/**
 * Encrypts the few texts that must be readable again and so cannot be hashed: AES-256-GCM (NIST SP
 * 800-38D), each value bound to its column and row, so that values cannot be swapped.
 */
export class SecretBox {
  readonly #master: Buffer
  readonly #key: Buffer
  readonly #nonceKey: Buffer

  /** @param key 32 random bytes. */
  constructor(key: Buffer) {
    this.#master = key
    this.#key = derived(key, 'tollgate secret box, encryption')
    this.#nonceKey = derived(key, 'tollgate secret box, nonces')
  }

  /** Returns 32 bytes for one purpose, from which the key cannot be derived. */
  keyFor(purpose: string): Buffer {
    return derived(this.#master, `tollgate key, ${purpose}`)
  }

  /** Returns `enc1:` and base64 of nonce, tag and ciphertext. */
  seal(place: SecretLocation, text: string): string {
    const where = nameOf(place)
    const nonce = this.#nonceFor(where, text)
    const cipher = createCipheriv('aes-256-gcm', this.#key, nonce).setAAD(where)
    const ciphertext = Buffer.concat([cipher.update(text, 'utf8'), cipher.final()])
    return prefix + Buffer.concat([nonce, cipher.getAuthTag(), ciphertext]).toString('base64')
  }

  /** Undefined when it was encrypted with another key or for another row, or is damaged. */
  open(place: SecretLocation, sealed: string): string | undefined {
    const bytes = Buffer.from(sealed.slice(prefix.length), 'base64')
    if (!isSealed(sealed) || bytes.length < NONCE_BYTES + TAG_BYTES) return undefined
    const nonce = bytes.subarray(0, NONCE_BYTES)
    const decipher = createDecipheriv('aes-256-gcm', this.#key, nonce).setAAD(nameOf(place))
    decipher.setAuthTag(bytes.subarray(NONCE_BYTES, NONCE_BYTES + TAG_BYTES))
    try {
      const rest = bytes.subarray(NONCE_BYTES + TAG_BYTES)
      return Buffer.concat([decipher.update(rest), decipher.final()]).toString('utf8')
    } catch {
      return undefined
    }
  }

  /**
   * A nonce must never be used for two different texts. As a keyed hash of the text and its place
   * it cannot be (RFC 8452 does the same), even with a bad source of randomness.
   */
  #nonceFor(where: Buffer, text: string): Buffer {
    const hash = createHmac('sha256', this.#nonceKey).update(where).update('\0').update(text)
    return hash.digest().subarray(0, NONCE_BYTES)
  }
}

export const isSealed = (stored: string): boolean => stored.startsWith(prefix)

/** The first characters of every encrypted value. */
export const sealedPrefix = prefix

/** An encrypted value as a GLOB pattern of SQLite. */
export const sealedGlob = `${prefix}*`

const nameOf = ({ table, column, row }: SecretLocation): Buffer =>
  Buffer.from(JSON.stringify([table, column, row]))

const derived = (key: Buffer, purpose: string): Buffer =>
  Buffer.from(hkdfSync('sha256', key, '', purpose, 32))
