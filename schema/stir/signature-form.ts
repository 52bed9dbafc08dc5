/**
 * A signature of ES256 is two numbers of 32 bytes (RFC 7518 §3.4), which OpenSSL has as DER. Node
 * converts one to the other by an export of the key, which takes longer than the signature (60 of
 * 100 µs), so it is done here. Pure.
 */
const NUMBER_BYTES = 32
const RAW_BYTES = 2 * NUMBER_BYTES
const SEQUENCE = 0x30
const INTEGER = 0x02

/** The two numbers of a signature in DER that OpenSSL has made. */
export function rawSignature(der: Buffer): Buffer {
  const raw = Buffer.alloc(RAW_BYTES)
  let at = 2
  for (let end = NUMBER_BYTES; end <= RAW_BYTES; end += NUMBER_BYTES) {
    const length = der[at + 1] ?? 0
    const start = at + 2
    // A number may have a zero before it, or fewer bytes.
    const from = length > NUMBER_BYTES ? start + length - NUMBER_BYTES : start
    der.copy(raw, end - (start + length - from), from, start + length)
    at = start + length
  }
  return raw
}

/** The same signature in DER; undefined: it is not two numbers. */
export function derSignature(raw: Buffer): Buffer | undefined {
  if (raw.length !== RAW_BYTES) return undefined
  const der = Buffer.alloc(RAW_BYTES + 8)
  let at = 2
  for (let start = 0; start < RAW_BYTES; start += NUMBER_BYTES) {
    let from = start
    while (from < start + NUMBER_BYTES - 1 && raw[from] === 0) from += 1
    const isNegative = (raw[from] ?? 0) > 0x7f
    const length = start + NUMBER_BYTES - from
    der[at] = INTEGER
    der[at + 1] = isNegative ? length + 1 : length
    at += isNegative ? 3 : 2
    raw.copy(der, at, from, start + NUMBER_BYTES)
    at += length
  }
  der[0] = SEQUENCE
  der[1] = at - 2
  return der.subarray(0, at)
}
