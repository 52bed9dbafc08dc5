/** Reads DER (X.690), as far as certificates and revocation lists need it. Pure and bounded. */

export interface Der {
  /** The identifier octet, such as 0x30 for a SEQUENCE. */
  readonly tag: number
  readonly content: Buffer
  /** The element with its tag and length. */
  readonly whole: Buffer
}

export const SEQUENCE = 0x30
export const INTEGER = 0x02
export const BIT_STRING = 0x03
export const OBJECT_ID = 0x06

/** The elements that `bytes` consists of; undefined: they are malformed, or more than `most`. */
export function readAll(bytes: Buffer, most: number): readonly Der[] | undefined {
  const found: Der[] = []
  let at = 0
  while (at < bytes.length) {
    const next = readAt(bytes, at)
    if (next === undefined || found.length === most) return undefined
    found.push(next)
    at += next.whole.length
  }
  return found
}

/** The elements of the only SEQUENCE of `bytes`. */
export function readSequence(bytes: Buffer, most: number): readonly Der[] | undefined {
  const only = readAt(bytes, 0)
  if (only?.tag !== SEQUENCE || only.whole.length !== bytes.length) return undefined
  return readAll(only.content, most)
}

export function readAt(bytes: Buffer, at: number): Der | undefined {
  const tag = bytes[at]
  const first = bytes[at + 1]
  if (tag === undefined || first === undefined) return undefined
  // Four octets of length are 4 GiB; the indefinite form is no DER.
  const octets = first < 0x80 ? 0 : first - 0x80
  if (octets > 4 || (octets === 0 && first >= 0x80)) return undefined
  const start = at + 2 + octets
  if (start > bytes.length) return undefined
  const length = octets === 0 ? first : bytes.readUIntBE(at + 2, octets)
  const end = start + length
  if (end > bytes.length) return undefined
  return { tag, content: bytes.subarray(start, end), whole: bytes.subarray(at, end) }
}
