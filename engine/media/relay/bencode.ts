/**
 * Bencode (BEP 3) as the ng protocol uses it: strings are UTF-8 text, and the keys of a dictionary
 * stand in any order, as rtpengine writes them.
 */
import { isAscii } from 'node:buffer'
import type { NgDictionary, NgValue } from './relays.ts'

/** rtpengine nests about ten deep. */
const MAX_DEPTH = 32

/** The digits of 2^64. */
const MAX_DIGITS = 20

const [MINUS, COLON, ZERO, NINE] = [0x2d, 0x3a, 0x30, 0x39]
const [DICTIONARY, END, INTEGER, LIST] = [0x64, 0x65, 0x69, 0x6c]

/** Numbers are whole. */
export function encodeBencode(value: NgValue): string {
  if (typeof value === 'string') return encodeText(value)
  if (typeof value === 'number') return `i${Math.trunc(value)}e`
  if (isList(value)) {
    let items = 'l'
    for (const item of value) items += encodeBencode(item)
    return `${items}e`
  }
  let entries = 'd'
  for (const key in value) {
    const entry = value[key]
    if (entry !== undefined) entries += encodeKey(key) + encodeBencode(entry)
  }
  return `${entries}e`
}

/**
 * One value from `start` to the end of the bytes; undefined: they are something else. Dictionaries
 * are without the entries whose keys are in `skippedKeys`, which saves most of the time.
 */
export function decodeBencode(
  bytes: Buffer,
  start = 0,
  skippedKeys: SkippedKeys = noKeys,
): NgValue | undefined {
  const reader = new Reader(bytes, start, skippedKeys)
  const value = reader.value(0)
  return reader.isAtEnd ? value : undefined
}

export const isDictionary = (value: NgValue | undefined): value is NgDictionary =>
  typeof value === 'object' && !isList(value)

/** The dictionary, or an empty one for any other value. */
export const dictionaryOf = (value: NgValue | undefined): NgDictionary =>
  isDictionary(value) ? value : {}

/** The list, or an empty one for any other value. */
export const listOf = (value: NgValue | undefined): readonly NgValue[] =>
  value !== undefined && isList(value) ? value : []

const isList = (value: NgValue): value is readonly NgValue[] => Array.isArray(value)

/** Names of ASCII characters, which are found in a text without a string for each key. */
export class SkippedKeys {
  /** By length and first character. */
  readonly #names = new Map<number, string[]>()

  constructor(names: readonly string[]) {
    for (const name of names) {
      const kind = kindOf(name.length, name.charCodeAt(0))
      this.#names.set(kind, [...(this.#names.get(kind) ?? []), name])
    }
  }

  /** Whether the key of this length that begins there is one of them. */
  has(text: string, start: number, length: number): boolean {
    const names = this.#names.get(kindOf(length, text.charCodeAt(start)))
    if (names === undefined) return false
    for (const name of names) if (text.startsWith(name, start)) return true
    return false
  }
}

const kindOf = (length: number, first: number): number => length * 128 + first

const noKeys = new SkippedKeys([])

/** Requests have the same few. */
const keys = new Map<string, string>()
const MAX_KEYS = 200

function encodeKey(key: string): string {
  const known = keys.get(key)
  if (known !== undefined) return known
  const text = encodeText(key)
  if (keys.size < MAX_KEYS) keys.set(key, text)
  return text
}

const encodeText = (text: string): string => `${Buffer.byteLength(text)}:${text}`

/**
 * Each method gives undefined where the bytes are malformed. They are read as one string, a
 * character for a byte: its parts cost less than as many strings out of the buffer, and statistics
 * have hundreds.
 */
class Reader {
  readonly #bytes: Buffer
  readonly #characters: string
  readonly #isAscii: boolean
  readonly #skippedKeys: SkippedKeys
  #at: number

  constructor(bytes: Buffer, start: number, skippedKeys: SkippedKeys) {
    this.#bytes = bytes
    this.#characters = bytes.toString('latin1')
    this.#isAscii = isAscii(bytes)
    this.#skippedKeys = skippedKeys
    this.#at = start
  }

  get isAtEnd(): boolean {
    return this.#at === this.#characters.length
  }

  value(depth: number): NgValue | undefined {
    if (depth > MAX_DEPTH) return undefined
    const kind = this.#characters.charCodeAt(this.#at)
    if (kind === DICTIONARY) return this.#dictionary(depth)
    if (kind === LIST) return this.#list(depth)
    if (kind === INTEGER) return this.#integer()
    return this.#text()
  }

  #dictionary(depth: number): NgDictionary | undefined {
    this.#at += 1
    const dictionary: Record<string, NgValue> = {}
    while (this.#characters.charCodeAt(this.#at) !== END) {
      const start = this.#extent()
      if (start === undefined) return undefined
      if (this.#skippedKeys.has(this.#characters, start, this.#at - start)) {
        if (!this.#skip(depth + 1)) return undefined
        continue
      }
      const key = this.#textBetween(start, this.#at)
      const value = this.value(depth + 1)
      if (value === undefined) return undefined
      if (key === '__proto__') Object.defineProperty(dictionary, key, { value, enumerable: true })
      else dictionary[key] = value
    }
    this.#at += 1
    return dictionary
  }

  #list(depth: number): NgValue[] | undefined {
    this.#at += 1
    const list: NgValue[] = []
    while (this.#characters.charCodeAt(this.#at) !== END) {
      const value = this.value(depth + 1)
      if (value === undefined) return undefined
      list.push(value)
    }
    this.#at += 1
    return list
  }

  /** Skips one value. False: it is malformed. */
  #skip(depth: number): boolean {
    if (depth > MAX_DEPTH) return false
    const kind = this.#characters.charCodeAt(this.#at)
    if (kind === INTEGER) return this.#integer() !== undefined
    if (kind !== DICTIONARY && kind !== LIST) return this.#extent() !== undefined
    this.#at += 1
    while (this.#characters.charCodeAt(this.#at) !== END) {
      if (kind === DICTIONARY && this.#extent() === undefined) return false
      if (!this.#skip(depth + 1)) return false
    }
    this.#at += 1
    return true
  }

  #integer(): number | undefined {
    this.#at += 1
    const sign = this.#characters.charCodeAt(this.#at) === MINUS ? -1 : 1
    if (sign < 0) this.#at += 1
    const digits = this.#digits(END)
    return digits === undefined ? undefined : sign * digits || 0
  }

  #text(): string | undefined {
    const start = this.#extent()
    return start === undefined ? undefined : this.#textBetween(start, this.#at)
  }

  #textBetween(start: number, end: number): string {
    return this.#isAscii
      ? this.#characters.slice(start, end)
      : this.#bytes.toString('utf8', start, end)
  }

  /** Past a text: where it begins. */
  #extent(): number | undefined {
    const length = this.#digits(COLON)
    if (length === undefined) return undefined
    const start = this.#at
    if (start + length > this.#characters.length) return undefined
    this.#at = start + length
    return start
  }

  /** Past `terminator`. Figures above 2^53 lose their last digits. */
  #digits(terminator: number): number | undefined {
    const start = this.#at
    let value = 0
    let byte = this.#characters.charCodeAt(this.#at)
    while (byte >= ZERO && byte <= NINE) {
      value = value * 10 + byte - ZERO
      byte = this.#characters.charCodeAt(++this.#at)
    }
    const digits = this.#at - start
    if (byte !== terminator || digits === 0 || digits > MAX_DIGITS) return undefined
    this.#at += 1
    return value
  }
}
