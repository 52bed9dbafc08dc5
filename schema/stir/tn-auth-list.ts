/** Who may speak for which numbers: the TNAuthList of a certificate (RFC 8226 §9). Pure. */
import { INTEGER, readAll, readSequence, SEQUENCE } from './der.ts'

/** OID of the extension. */
export const TN_AUTH_LIST = '1.3.6.1.5.5.7.1.26'

export interface TnAuthList {
  /** Codes of service providers: their numbers are not listed. */
  readonly providers: readonly string[]
  /** Ranges of numbers, both ends included. */
  readonly ranges: readonly { readonly first: string; readonly last: string }[]
}

const MAX_ENTRIES = 1_000

/** Undefined: malformed. */
export function readTnAuthList(bytes: Buffer): TnAuthList | undefined {
  const entries = readSequence(bytes, MAX_ENTRIES)
  if (entries === undefined || entries.length === 0) return undefined
  const providers: string[] = []
  const ranges: { first: string; last: string }[] = []
  for (const { tag, content } of entries) {
    // The tags are explicit: each holds one element.
    const [inner, more] = readAll(content, 2) ?? []
    if (inner === undefined || more !== undefined) return undefined
    if (tag === PROVIDER) providers.push(inner.content.toString('latin1'))
    else {
      const range = tag === ONE ? oneNumber(inner.content) : rangeIn(tag, inner)
      if (range === undefined) return undefined
      ranges.push(range)
    }
  }
  return { providers, ranges }
}

const PROVIDER = 0xa0
const RANGE = 0xa1
const ONE = 0xa2

function oneNumber(content: Buffer): TnAuthList['ranges'][number] | undefined {
  const number = content.toString('latin1')
  return isNumber.test(number) ? { first: number, last: number } : undefined
}

function rangeIn(
  tag: number,
  inner: { readonly tag: number; readonly content: Buffer },
): TnAuthList['ranges'][number] | undefined {
  if (tag !== RANGE || inner.tag !== SEQUENCE) return undefined
  const [start, count] = readAll(inner.content, 2) ?? []
  if (start === undefined || count?.tag !== INTEGER || count.content.length > 6) return undefined
  const first = start.content.toString('latin1')
  if (!isNumber.test(first) || count.content.length === 0) return undefined
  const size = count.content.readUIntBE(0, count.content.length)
  if (size < 1 || /\D/.test(first)) return undefined
  const last = String(BigInt(first) + BigInt(size) - 1n).padStart(first.length, '0')
  return last.length === first.length ? { first, last } : undefined
}

const isNumber = /^[0-9*#]{1,15}$/

/** Whether the list covers a canonical number. That of a provider is not known from here. */
export const coversNumber = ({ providers, ranges }: TnAuthList, number: string): boolean =>
  providers.length > 0 ||
  ranges.some(
    ({ first, last }) => number.length === first.length && number >= first && number <= last,
  )
