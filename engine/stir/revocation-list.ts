/** Revocation lists (RFC 5280 §5), read from DER in one walk. */
import { createHash, type KeyObject, verify } from 'node:crypto'
import {
  BIT_STRING,
  type Der,
  INTEGER,
  OBJECT_ID,
  readAll,
  readAt,
  readSequence,
  SEQUENCE,
} from '../../schema/stir/der.ts'
import { pemBlocks } from '../../schema/stir/pem.ts'

export interface RevocationList {
  /** Milliseconds UTC; undefined: the list does not say. */
  readonly nextUpdate: number | undefined
  has(certificate: RevocableCertificate): boolean
  isSignedBy(key: KeyObject): boolean
}

export interface RevocableCertificate {
  /** DER of the issuer's name. */
  readonly issuer: Buffer
  /** Hexadecimal digits, without leading zeros. */
  readonly serial: string
}

const MAX_ENTRIES = 10_000

/** Undefined: malformed, or too long. */
export function readRevocationList(text: Buffer): RevocationList | undefined {
  const [signed, algorithm, signature, more] = readSequence(derOf(text), 4) ?? []
  if (signed?.tag !== SEQUENCE || algorithm === undefined || more !== undefined) return undefined
  if (signature?.tag !== BIT_STRING || signature.content[0] !== 0) return undefined
  const fields = [...(readAll(signed.content, 8) ?? [])]
  if (fields[0]?.tag === INTEGER) fields.shift()
  const [, issuer, thisUpdate, ...others] = fields
  if (issuer?.tag !== SEQUENCE || thisUpdate === undefined || !isTime(thisUpdate)) return undefined
  const next = others[0] !== undefined && isTime(others[0]) ? others.shift() : undefined
  const revoked =
    others[0]?.tag === SEQUENCE ? entriesIn(others[0].content, issuer.whole) : new Set<string>()
  const hash = hashOf(algorithm)
  if (revoked === undefined || hash === undefined) return undefined
  return {
    nextUpdate: next && timeIn(next),
    has: ({ issuer: name, serial }) => revoked.has(entryKey(hashOfName(name), serial)),
    isSignedBy: (key) => isSigned(signed.whole, signature.content.subarray(1), hash, key),
  }
}

function derOf(text: Buffer): Buffer {
  if (text[0] === SEQUENCE) return text
  const [block = ''] = pemBlocks(text.toString('latin1'), 'X509 CRL', 1)
  return Buffer.from(block.split('-----')[2] ?? '', 'base64')
}

/** Undefined: malformed. */
function entriesIn(content: Buffer, listIssuer: Buffer): ReadonlySet<string> | undefined {
  const found = new Set<string>()
  // A name may be nearly as long as the list: each is hashed once, not for each entry.
  let issuer = hashOfName(listIssuer)
  const entries = readAll(content, MAX_ENTRIES)
  for (const entry of entries ?? []) {
    const [serial, , extensions] = readAll(entry.content, 3) ?? []
    if (serial?.tag !== INTEGER) return undefined
    // RFC 5280 §5.3.3: the issuer holds for the following entries, too.
    const named = issuerIn(extensions)
    if (named !== undefined) issuer = hashOfName(named)
    found.add(entryKey(issuer, plainSerial(serial.content.toString('hex'))))
  }
  return entries && found
}

/** OID 2.5.29.29. */
const CERTIFICATE_ISSUER = Buffer.from([0x55, 0x1d, 0x1d])
/** `directoryName` of a GeneralName. */
const DIRECTORY_NAME = 0xa4

function issuerIn(extensions: Der | undefined): Buffer | undefined {
  for (const { content } of readAll(extensions?.content ?? Buffer.alloc(0), 16) ?? []) {
    const parts = readAll(content, 3) ?? []
    if (parts[0]?.tag !== OBJECT_ID || !parts[0].content.equals(CERTIFICATE_ISSUER)) continue
    const names = readSequence(parts.at(-1)?.content ?? Buffer.alloc(0), 8) ?? []
    const directory = names.find(({ tag }) => tag === DIRECTORY_NAME)
    return directory && readAt(directory.content, 0)?.whole
  }
  return undefined
}

const hashOfName = (name: Buffer): string => createHash('sha256').update(name).digest('base64')
const entryKey = (issuerHash: string, serial: string): string => `${issuerHash} ${serial}`

/** Hexadecimal digits without leading zeros, as Node and DER have them in their ways. */
export const plainSerial = (hex: string): string => hex.toLowerCase().replace(/^0+(?=.)/, '')

const UTC_TIME = 0x17
const GENERALIZED_TIME = 0x18
const isTime = ({ tag }: Der): boolean => tag === UTC_TIME || tag === GENERALIZED_TIME

function timeIn({ tag, content }: Der): number | undefined {
  const text = content.toString('latin1')
  const year = Number(text.slice(0, 2)) < 50 ? '20' : '19'
  const parts = /^(\d{4})(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)Z$/.exec(
    tag === UTC_TIME ? `${year}${text}` : text,
  )
  if (parts === null) return undefined
  const [, years = '', month = '', day = '', hour = '', minute = '', second = ''] = parts
  return Date.parse(`${years}-${month}-${day}T${hour}:${minute}:${second}Z`)
}

/** ECDSA and RSA (PKCS #1) with SHA-256 or SHA-384. */
const hashes: Readonly<Record<string, 'sha256' | 'sha384'>> = {
  '2a8648ce3d040302': 'sha256',
  '2a8648ce3d040303': 'sha384',
  '2a864886f70d01010b': 'sha256',
  '2a864886f70d01010c': 'sha384',
}

const hashOf = (algorithm: Der) =>
  hashes[readAll(algorithm.content, 2)?.[0]?.content.toString('hex') ?? '']

function isSigned(bytes: Buffer, signature: Buffer, hash: string, key: KeyObject): boolean {
  try {
    return verify(hash, bytes, key, signature)
  } catch {
    return false
  }
}
