/**
 * PASSporTs (RFC 8225) with the claims of SHAKEN (RFC 8588) and of diverted calls (RFC 8946), as
 * JSON in base64url. What is read is untrusted: it is bounded before it is parsed. Pure.
 */
import { isUtf8 } from 'node:buffer'
import type { Attestation } from '../contracts/caller-identity.ts'

/** Types of PASSporTs that are understood. `none` has no `ppt`. */
export type PassportKind = 'none' | 'shaken' | 'div'

export interface Passport {
  /** Undefined: a type that is not understood, which RFC 8224 §6.2 says to ignore. */
  readonly kind: PassportKind | undefined
  readonly x5u: string
  /** A telephone number as it was signed; undefined: it is a URI. */
  readonly orig: string | undefined
  /** Telephone numbers as they were signed. */
  readonly dest: readonly string[]
  /** Seconds since 1970. */
  readonly iat: number
  readonly attestation: Attestation | null
  readonly origid: string | null
  /** The number that has diverted the call. */
  readonly div: string | undefined
}

/** Numbers of `dest` that are read. */
const MAX_DESTINATIONS = 32
/** Objects and lists of one part; a PASSporT of SHAKEN has four. */
const MAX_BRACKETS = 64

/** A text instead says what is wrong. */
export function readPassport(header: string, payload: string): Passport | string {
  const head = readJson(header)
  const claims = readJson(payload)
  if (head === undefined || claims === undefined) return 'the PASSporT is no JSON object'
  if (head['alg'] !== 'ES256') return 'the algorithm is not ES256'
  if (head['typ'] !== 'passport') return 'the type is not passport'
  // RFC 7515 §4.1.11: extensions that must be understood; none is.
  if (head['crit'] !== undefined) return 'the PASSporT has critical parameters'
  const { x5u, ppt } = head
  if (typeof x5u !== 'string') return 'the PASSporT names no certificate'
  if (ppt !== undefined && typeof ppt !== 'string') return 'ppt is no text'
  return readClaims(claims, { x5u, kind: kindOf(ppt) })
}

function kindOf(ppt: string | undefined): PassportKind | undefined {
  if (ppt === undefined) return 'none'
  return ppt === 'shaken' || ppt === 'div' ? ppt : undefined
}

function readClaims(
  claims: JsonObject,
  { x5u, kind }: Pick<Passport, 'x5u' | 'kind'>,
): Passport | string {
  const { iat, attest, origid } = claims
  if (typeof iat !== 'number' || !Number.isSafeInteger(iat) || iat < 0) return 'iat is no time'
  const orig = asObject(claims['orig'])
  const dest = asObject(claims['dest'])
  if (orig === undefined || dest === undefined) return 'orig or dest is missing'
  const numbers = destinationsOf(dest)
  if (numbers === undefined) return 'dest is no list of numbers'
  const isShaken = kind === 'shaken'
  const attestation = attest === 'A' || attest === 'B' || attest === 'C' ? attest : null
  if (isShaken && attestation === null) return 'attest is not A, B or C'
  if (isShaken && (typeof origid !== 'string' || origid === '' || origid.length > MAX_ORIGID))
    return 'origid is missing'
  const div = textIn(asObject(claims['div']), 'tn')
  if (kind === 'div' && div === undefined) return 'div is missing'
  return {
    kind,
    x5u,
    orig: textIn(orig, 'tn'),
    dest: numbers,
    iat,
    attestation: isShaken ? attestation : null,
    origid: isShaken && typeof origid === 'string' ? origid : null,
    div,
  }
}

/** A UUID has 36. */
const MAX_ORIGID = 128

/** URIs are passed over: calls are compared by their numbers. */
function destinationsOf({ tn, uri }: JsonObject): readonly string[] | undefined {
  if (tn === undefined) return Array.isArray(uri) ? [] : undefined
  // RFC 8225 §5.2.1 says a list; some signers write one text.
  const list: readonly unknown[] = Array.isArray(tn) ? tn : [tn]
  if (list.length === 0 || list.length > MAX_DESTINATIONS) return undefined
  const texts = list.filter((each) => typeof each === 'string')
  return texts.length === list.length ? texts : undefined
}

type JsonObject = Readonly<Record<string, unknown>>

function readJson(base64url: string): JsonObject | undefined {
  const bytes = Buffer.from(base64url, 'base64url')
  if (!isUtf8(bytes)) return undefined
  const text = bytes.toString()
  if (hasTooManyBrackets(text)) return undefined
  try {
    return asObject(JSON.parse(text))
  } catch {
    return undefined
  }
}

/** Every bracket counts, those in texts too: so many can never be nested too deeply. */
function hasTooManyBrackets(text: string): boolean {
  let count = 0
  for (let index = 0; index < text.length; index += 1) {
    const code = text.charCodeAt(index)
    if (code === OPEN_BRACE || code === OPEN_BRACKET) count += 1
  }
  return count > MAX_BRACKETS
}

const OPEN_BRACE = 0x7b
const OPEN_BRACKET = 0x5b

const asObject = (value: unknown): JsonObject | undefined =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
    ? (value as JsonObject)
    : undefined

function textIn(object: JsonObject | undefined, name: string): string | undefined {
  const value = object?.[name]
  return typeof value === 'string' ? value : undefined
}

export interface ShakenClaims {
  readonly attest: Attestation
  /** Canonical numbers, as all of the following. */
  readonly orig: string
  readonly dest: string
  readonly iat: number
  readonly origid: string
}

export type DivClaims = Pick<ShakenClaims, 'orig' | 'dest' | 'iat'> & { readonly div: string }

/** RFC 8225 §9: the keys in the order of their characters, and no white space. */
export const shakenPayload = ({ attest, dest, iat, orig, origid }: ShakenClaims): string =>
  inBase64Url(
    `{"attest":"${attest}","dest":{"tn":["${dest}"]},"iat":${iat},` +
      `"orig":{"tn":"${orig}"},"origid":${JSON.stringify(origid)}}`,
  )

export const divPayload = ({ dest, div, iat, orig }: DivClaims): string =>
  inBase64Url(
    `{"dest":{"tn":["${dest}"]},"div":{"tn":"${div}"},"iat":${iat},"orig":{"tn":"${orig}"}}`,
  )

export const passportHeader = (ppt: 'shaken' | 'div', x5u: string): string =>
  inBase64Url(`{"alg":"ES256","ppt":"${ppt}","typ":"passport","x5u":${JSON.stringify(x5u)}}`)

const inBase64Url = (text: string): string => Buffer.from(text).toString('base64url')
