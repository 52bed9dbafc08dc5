/**
 * The header by which instances know each other's requests: AES-256-GCM under a key that only
 * instances have. It seals the caller's credential, so that a program that took an instance's
 * address learns none, and it is bound to one instance, one moment, one method, one path and one
 * body.
 */
import { createCipheriv, createDecipheriv, createHash, createHmac, hkdfSync } from 'node:crypto'
import { z } from 'zod'
import { parseJson } from '../http/body.ts'

/** Header: the token in requests; in responses, the proof that an instance has read it. */
export const INSTANCE_HEADER = 'x-tollgate-node'

const NONCE_BYTES = 16
const TAG_BYTES = 16
/** Longer than any credential; the headers of a request have at most 16 kB. */
const MAX_LENGTH = 12_000

const text = z.string().max(8_192)
const claims = z.strictObject({
  from: text,
  to: text,
  /** Milliseconds UTC by the clock of `from`. */
  at: z.number(),
  /** SHA-256 of the body, base64url. */
  body: text,
  /** The client's. */
  address: text,
  authorization: text.optional(),
  apiKey: text.optional(),
  tenantSlug: text.optional(),
  /** The instance's own question, without a caller. */
  question: z.unknown().optional(),
})

/** The claims of an instance about its request. */
export type InstanceClaims = z.output<typeof claims>

/** The request that a token is bound to. */
export interface SignedRequest {
  readonly method: string
  /** Path and query, as sent. */
  readonly target: string
}

interface OpenedToken {
  readonly claims: InstanceClaims
  /** Names this token for ever. */
  readonly nonce: string
}

export interface SealedToken {
  readonly token: string
  /** `INSTANCE_HEADER` of the response of an instance that has read the token. */
  readonly proof: string
}

export function sealToken(
  key: Buffer,
  request: SignedRequest,
  made: InstanceClaims,
  randomBytes: (size: number) => Buffer,
): SealedToken {
  const nonce = randomBytes(NONCE_BYTES)
  const { cipherKey, iv } = cipherOf(key, nonce)
  const cipher = createCipheriv('aes-256-gcm', cipherKey, iv).setAAD(boundTo(request))
  const sealed = Buffer.concat([cipher.update(JSON.stringify(made), 'utf8'), cipher.final()])
  const token = Buffer.concat([nonce, cipher.getAuthTag(), sealed]).toString('base64url')
  return { token, proof: proofOf(key, nonce.toString('base64url')) }
}

/** Undefined: no instance of this installation has made it for this request. */
export function openToken(
  key: Buffer,
  token: string,
  request: SignedRequest,
): OpenedToken | undefined {
  if (token.length > MAX_LENGTH) return undefined
  const bytes = Buffer.from(token, 'base64url')
  if (bytes.length < NONCE_BYTES + TAG_BYTES) return undefined
  const nonce = bytes.subarray(0, NONCE_BYTES)
  const { cipherKey, iv } = cipherOf(key, nonce)
  const decipher = createDecipheriv('aes-256-gcm', cipherKey, iv).setAAD(boundTo(request))
  decipher.setAuthTag(bytes.subarray(NONCE_BYTES, NONCE_BYTES + TAG_BYTES))
  let plain: string
  try {
    const rest = bytes.subarray(NONCE_BYTES + TAG_BYTES)
    plain = Buffer.concat([decipher.update(rest), decipher.final()]).toString('utf8')
  } catch {
    return undefined
  }
  const parsed = parseJson(plain)
  const checked = claims.safeParse(parsed.kind === 'value' ? parsed.value : undefined)
  return checked.success ? { claims: checked.data, nonce: nonce.toString('base64url') } : undefined
}

/** Proof of the instance that has opened the token with this nonce. */
export const proofOf = (key: Buffer, nonce: string): string =>
  createHmac('sha256', key).update('tollgate node, answer\0').update(nonce).digest('base64url')

export const bodyHash = (body: Buffer): string =>
  createHash('sha256').update(body).digest('base64url')

/** A key for each token: no pair of key and IV is used twice, however many there are. */
function cipherOf(key: Buffer, nonce: Buffer): { cipherKey: Buffer; iv: Buffer } {
  const bytes = Buffer.from(hkdfSync('sha256', key, nonce, 'tollgate node, request 1', 44))
  return { cipherKey: bytes.subarray(0, 32), iv: bytes.subarray(32) }
}

const boundTo = ({ method, target }: SignedRequest): Buffer =>
  Buffer.from(JSON.stringify([method, target]))
