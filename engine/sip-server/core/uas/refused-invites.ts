/**
 * INVITEs that were refused without a transaction, for 64·T1. A copy that comes when there is room
 * again must not ring for a caller that has its 503 by then, or has given up. A flood is refused by
 * this, so it keeps hashes alone, in a table of fixed size: 0.2 µs for each INVITE, and no object.
 * One INVITE in some hundred millions is refused because its hash is that of another one.
 */

/** A power of two. */
const GROUPS = 65_536
/**
 * Places where a hash may be: 524,288 INVITEs in all, in 4 MB. Beyond, the oldest of a group gives
 * way.
 */
const PLACES = 8

export class RefusedInvites {
  readonly #lifetimeSeconds: number
  readonly #seeds: readonly [number, number]
  readonly #hashes = new Uint32Array(GROUPS * PLACES)
  /** When they end, in seconds; 0: free. */
  readonly #ends = new Uint32Array(GROUPS * PLACES)
  #lastEnd = 0
  /** Hash of the key that was looked for last. */
  #hash = 0
  #group = 0

  /** `seeds` are random: strangers choose the keys, and must not choose whose places they take. */
  constructor(lifetimeMs: number, seeds: readonly [number, number]) {
    this.#lifetimeSeconds = Math.ceil(lifetimeMs / 1_000) + 1
    this.#seeds = seeds
  }

  /** All entries have expired. */
  isEmpty(now: number): boolean {
    return this.#lastEnd <= secondsOf(now)
  }

  /** Whether the INVITE of this transaction has been refused. */
  has(key: string, now: number): boolean {
    this.#find(key)
    const second = secondsOf(now)
    for (let at = this.#group; at < this.#group + PLACES; at++)
      if (this.#hashes[at] === this.#hash && (this.#ends[at] ?? 0) > second) return true
    return false
  }

  add(key: string, now: number): void {
    this.#find(key)
    let place = this.#group
    for (let at = place + 1; at < this.#group + PLACES; at++)
      if ((this.#ends[at] ?? 0) < (this.#ends[place] ?? 0)) place = at
    this.#lastEnd = secondsOf(now) + this.#lifetimeSeconds
    this.#hashes[place] = this.#hash
    this.#ends[place] = this.#lastEnd
  }

  /** FNV-1a twice, from secret starts; the last steps spread it over all bits. */
  #find(key: string): void {
    let [one, other] = this.#seeds
    for (let i = 0; i < key.length; i++) {
      const code = key.charCodeAt(i)
      one = Math.imul(one ^ code, 0x01000193)
      other = Math.imul(other ^ code, 0x85ebca6b)
    }
    one = Math.imul(one ^ (one >>> 15), 0x2c1b3c6d)
    other = Math.imul(other ^ (other >>> 13), 0xc2b2ae35)
    this.#hash = (one ^ (one >>> 13)) >>> 0
    this.#group = ((other ^ (other >>> 16)) & (GROUPS - 1)) * PLACES
  }
}

/** A second is as exact as it has to be: the lifetime is rounded up. */
const secondsOf = (now: number): number => Math.floor(now / 1_000)
