/** The header `Range` of a request for bytes (RFC 9110 §14). Pure. */

export type ByteRange =
  /** Without a range, or with one that may be ignored: several, or another unit. */
  | { readonly kind: 'whole' }
  /** Both are part of it. */
  | { readonly kind: 'part'; readonly start: number; readonly end: number }
  | { readonly kind: 'unsatisfiable' }

/** `size` of the whole, at least 1. */
export function byteRange(header: string | undefined, size: number): ByteRange {
  const match = /^bytes=(\d{0,15})-(\d{0,15})$/i.exec(header?.replaceAll(' ', '') ?? '')
  const [, first = '', last = ''] = match ?? []
  if (first === '' && last === '') return { kind: 'whole' }
  if (first === '') return ending(Number(last), size)
  const start = Number(first)
  const end = last === '' ? size - 1 : Math.min(Number(last), size - 1)
  if (last !== '' && Number(last) < start) return { kind: 'whole' }
  return start < size ? { kind: 'part', start, end } : { kind: 'unsatisfiable' }
}

/** The last bytes. */
const ending = (count: number, size: number): ByteRange =>
  count === 0
    ? { kind: 'unsatisfiable' }
    : { kind: 'part', start: Math.max(0, size - count), end: size - 1 }
