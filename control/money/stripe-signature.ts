/**
 * Stripe's webhook signatures: `Stripe-Signature: t=<unix seconds>,v1=<hex>[,v1=…]`, each `v1` an
 * HMAC-SHA256 over `<t>.<body as received>` with the whole secret as key. During a rotation there are
 * several; one valid signature is enough.
 */
import { createHmac, timingSafeEqual } from 'node:crypto'

/** Applies to past and future times; Stripe's own library accepts any future time. */
const toleranceSeconds = 300
/** Longer headers, or more signatures, are not Stripe's. */
const maxHeaderLength = 4_096

/** @param now milliseconds UTC. */
export function isSignedByStripe(
  body: Buffer,
  header: string | undefined,
  secret: string,
  now: number,
): boolean {
  const signed = parseHeader(header)
  if (signed === undefined) return false
  const isFresh = Math.abs(Math.floor(now / 1_000) - Number(signed.time)) <= toleranceSeconds
  const expected = createHmac('sha256', secret).update(`${signed.time}.`).update(body).digest()
  // Every signature is compared, so that timing does not reveal a position in the list.
  const isRight = signed.signatures.map((hex) => isSame(hex, expected)).includes(true)
  return isFresh && isRight
}

interface SignedHeader {
  readonly time: string
  readonly signatures: readonly string[]
}

function parseHeader(header: string | undefined): SignedHeader | undefined {
  if (header === undefined || header.length > maxHeaderLength) return undefined
  let time: string | undefined
  const signatures: string[] = []
  for (const item of header.split(',')) {
    const [name, value = ''] = item.split('=', 2)
    if (name === 't' && time !== undefined) return undefined
    if (name === 't') time = value
    if (name === 'v1') signatures.push(value)
  }
  return time !== undefined && /^\d{1,12}$/.test(time) ? { time, signatures } : undefined
}

function isSame(hex: string, expected: Buffer): boolean {
  if (!/^[0-9a-f]{64}$/.test(hex)) return false
  return timingSafeEqual(Buffer.from(hex, 'hex'), expected)
}
