/**
 * Texts by their keys, each for the same time, outside the garbage-collected heap. The rest of a
 * transaction has to be found for 64·T1. As objects these rests were two thirds of the heap at 700
 * calls/s, which V8 copied twice and marked (`npm run bench -- memory`). The bytes lie in blocks in
 * the order of their age, so that a block is given back when its last text has expired; a hash
 * table with open addresses leads to them.
 */
import type { Deadlines, ExpiringEntries } from './deadlines.ts'

/** A longer text gets a block of its own. */
const BLOCK_BYTES = 262_144
/** Texts for which there is room at first. A power of two. */
const FEWEST = 64

interface Block {
  readonly bytes: Buffer
  used: number
}

/** The numbers of an entry, one after the other. */
const HASH = 0
const BLOCK = 1
const START = 2
const KEY_BYTES = 3
const TEXT_BYTES = 4
/** 0: gone before its time; 1: a byte for each character; 2: two bytes. */
const WIDTH = 5
const NUMBERS = 6

export class RetransmitCache implements ExpiringEntries {
  readonly #lifetimeMs: number
  readonly #seed: number
  /** Oldest first; `#firstBlock` is the number of the first. */
  #blocks: Block[] = []
  #firstBlock = 0
  #spare: Block | undefined
  /** Entries by their number modulo `#capacity`. */
  #capacity = FEWEST
  #entries = new Uint32Array(FEWEST * NUMBERS)
  #expiries = new Float64Array(FEWEST)
  /** Numbers of the oldest entry and of the next. */
  #oldest = 0
  #next = 0
  /**
   * Place of an entry plus one, found from its hash on; 0: free. Half of them at least are free.
   */
  #slots = new Uint32Array(FEWEST * 2)
  #size = 0

  /**
   * `seed` is random: the keys come from strangers, who must not choose what meets in one place.
   */
  constructor(deadlines: Deadlines, lifetimeMs: number, seed: number) {
    this.#lifetimeMs = lifetimeMs
    this.#seed = seed
    deadlines.watch(this)
  }

  get size(): number {
    return this.#size
  }

  get nextExpiry(): number | undefined {
    return this.#oldest === this.#next
      ? undefined
      : this.#expiries[this.#oldest & (this.#capacity - 1)]
  }

  /**
   * Replaces a former text of the key. `message` ends the text: as a part of a sum it would be
   * copied first.
   */
  add(key: string, text: string, now: number, message = ''): void {
    const hash = this.#hashOf(key)
    const former = this.#slotOf(key, hash)
    if (former !== undefined) this.#forget(former)
    if (this.#next - this.#oldest === this.#capacity) this.#resize(this.#capacity * 2)
    const place = this.#next++ & (this.#capacity - 1)
    const width = wide.test(key) || wide.test(text) || wide.test(message) ? 2 : 1
    const encoding = width === 1 ? 'latin1' : 'utf16le'
    const block = this.#blockFor((key.length + text.length + message.length) * width)
    const at = place * NUMBERS
    const entries = this.#entries
    entries[at + HASH] = hash
    entries[at + BLOCK] = this.#firstBlock + this.#blocks.length - 1
    entries[at + START] = block.used
    entries[at + KEY_BYTES] = block.bytes.write(key, block.used, encoding)
    block.used += key.length * width
    entries[at + TEXT_BYTES] = (text.length + message.length) * width
    block.used += block.bytes.write(text, block.used, encoding)
    block.used += block.bytes.write(message, block.used, encoding)
    entries[at + WIDTH] = width
    this.#expiries[place] = now + this.#lifetimeMs
    this.#size += 1
    this.#takeSlot(place)
  }

  find(key: string): string | undefined {
    if (this.#size === 0) return undefined
    const slot = this.#slotOf(key, this.#hashOf(key))
    if (slot === undefined) return undefined
    const at = this.#placeAt(slot) * NUMBERS
    const start = this.#number(at + START) + this.#number(at + KEY_BYTES)
    return this.#read(at, start, this.#number(at + TEXT_BYTES))
  }

  /** Keys and texts that were added at `since` or later, oldest first. */
  *addedSince(since: number): Iterable<readonly [key: string, text: string]> {
    for (let number = this.#oldest; number < this.#next; number++) {
      const place = number & (this.#capacity - 1)
      const at = place * NUMBERS
      const isGone = this.#number(at + WIDTH) === 0
      if (isGone || (this.#expiries[place] ?? 0) - this.#lifetimeMs < since) continue
      const start = this.#number(at + START)
      const keyBytes = this.#number(at + KEY_BYTES)
      const key = this.#read(at, start, keyBytes)
      yield [key, this.#read(at, start + keyBytes, this.#number(at + TEXT_BYTES))]
    }
  }

  expire(now: number): void {
    const mask = this.#capacity - 1
    while (this.#oldest < this.#next) {
      const place = this.#oldest & mask
      if ((this.#expiries[place] ?? 0) > now) break
      const at = place * NUMBERS
      if (this.#number(at + WIDTH) !== 0) this.#forget(this.#slotOfPlace(place))
      this.#oldest += 1
    }
    if (this.#oldest < this.#next) this.#releaseBlocks()
    else if (this.#next > 0) this.#empty()
  }

  #number(index: number): number {
    return this.#entries[index] ?? 0
  }

  #placeAt(slot: number): number {
    return (this.#slots[slot] ?? 0) - 1
  }

  #read(at: number, start: number, bytes: number): string {
    const block = this.#blocks[this.#number(at + BLOCK) - this.#firstBlock]
    const encoding = this.#number(at + WIDTH) === 1 ? 'latin1' : 'utf16le'
    return block?.bytes.toString(encoding, start, start + bytes) ?? ''
  }

  #slotOf(key: string, hash: number): number | undefined {
    const mask = this.#slots.length - 1
    for (let slot = hash & mask; this.#slots[slot] !== 0; slot = (slot + 1) & mask) {
      const at = this.#placeAt(slot) * NUMBERS
      if (this.#number(at + HASH) !== hash) continue
      if (this.#read(at, this.#number(at + START), this.#number(at + KEY_BYTES)) === key)
        return slot
    }
    return undefined
  }

  #slotOfPlace(place: number): number {
    const mask = this.#slots.length - 1
    let slot = this.#number(place * NUMBERS + HASH) & mask
    while (this.#slots[slot] !== place + 1) slot = (slot + 1) & mask
    return slot
  }

  #takeSlot(place: number): void {
    const mask = this.#slots.length - 1
    let slot = this.#number(place * NUMBERS + HASH) & mask
    while (this.#slots[slot] !== 0) slot = (slot + 1) & mask
    this.#slots[slot] = place + 1
  }

  /** Later entries of the same run move up, so that a search may end at the first free slot. */
  #forget(slot: number): void {
    this.#entries[this.#placeAt(slot) * NUMBERS + WIDTH] = 0
    this.#size -= 1
    const slots = this.#slots
    const mask = slots.length - 1
    let free = slot
    for (let next = (slot + 1) & mask; slots[next] !== 0; next = (next + 1) & mask) {
      const wanted = this.#number(this.#placeAt(next) * NUMBERS + HASH) & mask
      if (((next - wanted) & mask) < ((next - free) & mask)) continue
      slots[free] = slots[next] ?? 0
      free = next
    }
    slots[free] = 0
  }

  #blockFor(bytes: number): Block {
    const last = this.#blocks.at(-1)
    if (last !== undefined && last.used + bytes <= last.bytes.length) return last
    const isUsual = bytes <= BLOCK_BYTES
    const block = (isUsual ? this.#spare : undefined) ?? {
      bytes: Buffer.allocUnsafeSlow(Math.max(BLOCK_BYTES, bytes)),
      used: 0,
    }
    if (block === this.#spare) this.#spare = undefined
    this.#blocks.push(block)
    return block
  }

  /** Releases the blocks before that of the oldest text. */
  #releaseBlocks(): void {
    const needed = this.#number((this.#oldest & (this.#capacity - 1)) * NUMBERS + BLOCK)
    for (; this.#firstBlock < needed; this.#firstBlock++) {
      const block = this.#blocks.shift()
      if (block?.bytes.length !== BLOCK_BYTES) continue
      block.used = 0
      this.#spare = block
    }
  }

  /** The cache is empty: releases its memory. */
  #empty(): void {
    this.#blocks = []
    this.#firstBlock = this.#oldest = this.#next = 0
    this.#spare = undefined
    if (this.#capacity > FEWEST) this.#resize(FEWEST)
  }

  #resize(capacity: number): void {
    const [entries, expiries, former] = [this.#entries, this.#expiries, this.#capacity]
    this.#capacity = capacity
    this.#entries = new Uint32Array(capacity * NUMBERS)
    this.#expiries = new Float64Array(capacity)
    this.#slots = new Uint32Array(capacity * 2)
    for (let number = this.#oldest; number < this.#next; number++) {
      const [from, to] = [number & (former - 1), number & (capacity - 1)]
      for (let i = 0; i < NUMBERS; i++)
        this.#entries[to * NUMBERS + i] = entries[from * NUMBERS + i] ?? 0
      this.#expiries[to] = expiries[from] ?? 0
      if (this.#number(to * NUMBERS + WIDTH) !== 0) this.#takeSlot(to)
    }
  }

  /** FNV-1a from a secret start; the last steps spread it over all bits. */
  #hashOf(key: string): number {
    let hash = this.#seed
    for (let i = 0; i < key.length; i++) hash = Math.imul(hash ^ key.charCodeAt(i), 0x01000193)
    hash = Math.imul(hash ^ (hash >>> 15), 0x2c1b3c6d)
    return (hash ^ (hash >>> 13)) >>> 0
  }
}

/**
 * Has characters beyond Latin-1, such as those that stand for bytes that are not UTF-8
 * (`schema/sip/message.ts`).
 */
const wide = /[^\0-\xff]/
