/**
 * Says what the Identity headers of an INVITE prove (RFC 8224 §6.2, RFC 8588, RFC 8946). What costs
 * nothing comes first: no certificate is fetched for a call that cannot pass.
 */
import { verify } from 'node:crypto'
import type { CallToVerify, VerificationStatus, VerifiedCall } from '../../schema/contracts/stir.ts'
import { canonicalNumber } from '../../schema/stir/canonical-number.ts'
import { MAX_IDENTITIES, parseIdentity } from '../../schema/stir/identity-header.ts'
import { type Passport, readPassport } from '../../schema/stir/passport.ts'
import { derSignature } from '../../schema/stir/signature-form.ts'
import { verificationReasons } from '../../schema/stir/statuses.ts'
import { coversNumber } from '../../schema/stir/tn-auth-list.ts'
import type { Certificates, Looked, SignerCertificate } from './certificates.ts'
import { expandCompact } from './compact-form.ts'
import type { Replays } from './replays.ts'

export interface VerifierDeps {
  readonly certificates: Pick<Certificates, 'known' | 'fetch'>
  readonly replays: Replays
  /** How far `iat` and `Date` may be from now. */
  readonly maxAgeSeconds: number
}

/** A header whose form is right. */
interface Claim {
  readonly passport: Passport
  /** JWS signing input (RFC 7515 §5.1). */
  readonly signed: string
  readonly signature: string
  /** The number for which its signer speaks: the caller, or who diverts the call. */
  readonly speaksFor: string
}

type Failed = Extract<VerifiedCall, { readonly verification: 'failed' }>

/**
 * A PASSporT under one of diversion: the call rang elsewhere before it was forwarded (RFC 8946
 * §4.2).
 */
const DIVERTED_AGE_SECONDS = 300

export class Verifier {
  readonly #deps: VerifierDeps

  constructor(deps: VerifierDeps) {
    this.#deps = deps
  }

  verify(call: CallToVerify): VerifiedCall | Promise<VerifiedCall> {
    const claims = this.#claimsOf(call)
    if ('verification' in claims) return claims
    const urls = [...new Set(claims.map(({ passport }) => passport.x5u))]
    const known = urls.map((url) => this.#deps.certificates.known(url))
    const missing = urls.filter((_, index) => known[index] === undefined)
    const found = new Map(urls.map((url, index) => [url, known[index]]))
    if (missing.length === 0) return this.#judge(call, claims, found)
    // One that is known to be bad decides without the others.
    if (known.some((each) => each?.kind === 'bad')) return this.#judge(call, claims, found)
    return this.#fetch(call, claims, { missing, found })
  }

  async #fetch(
    call: CallToVerify,
    claims: readonly Claim[],
    { missing, found }: { readonly missing: readonly string[]; readonly found: Map<string, Known> },
  ): Promise<VerifiedCall> {
    await Promise.all(
      missing.map(async (url) => found.set(url, await this.#deps.certificates.fetch(url))),
    )
    return this.#judge(call, claims, found)
  }

  /** The claims about this call, or what is known without a certificate. */
  #claimsOf(call: CallToVerify): readonly Claim[] | VerifiedCall {
    const { identities } = call
    if (identities.length === 0) return { verification: 'none' }
    if (identities.length > MAX_IDENTITIES) return failed(438, 'there are too many headers')
    const claims: Claim[] = []
    for (const identity of identities) {
      const claim = claimIn(identity, call)
      if (claim === undefined) continue
      if ('verification' in claim) return claim
      claims.push(claim)
    }
    if (claims.length === 0) return { verification: 'none' }
    return this.#problemOf(claims, call) ?? claims
  }

  #problemOf(claims: readonly Claim[], call: CallToVerify): Failed | undefined {
    const orig = canonicalNumber(call.orig)
    const dest = canonicalNumber(call.dest)
    if (orig === undefined) return failed(438, 'the call has no calling number')
    if (dest === undefined) return failed(438, 'the call has no called number')
    const wrong = claims.find(({ passport }) => !isNumber(passport.orig, orig))
    if (wrong !== undefined)
      return failed(438, `${wrong.passport.orig ?? 'a URI'} is signed as the calling number`)
    const chains = claims.filter(({ passport }) => passport.kind !== 'div')
    if (chains.length === 0) return failed(438, 'a diversion is signed without the first call')
    for (const { passport } of chains) {
      const diversions = diversionsTo(dest, passport, claims)
      if (diversions === undefined)
        return failed(438, `${passport.dest.join(', ') || 'a URI'} is signed as the called number`)
      const problem = this.#staleness(call, [passport, ...diversions])
      if (problem !== undefined) return problem
    }
    return undefined
  }

  /** `all`: from the first call to the last diversion, which has to be fresh. */
  #staleness({ now, date }: CallToVerify, all: readonly Passport[]): Failed | undefined {
    const { maxAgeSeconds } = this.#deps
    const last = all.at(-1)
    for (const passport of all) {
      const age = now - passport.iat
      const most = passport === last ? maxAgeSeconds : Math.max(maxAgeSeconds, DIVERTED_AGE_SECONDS)
      if (age > most) return failed(403, `it was signed ${age} s ago`)
      if (age < -maxAgeSeconds) return failed(403, `it was signed ${-age} s from now`)
    }
    const differs = (time: number) => date !== undefined && Math.abs(date - time) > maxAgeSeconds
    if (differs(now)) return failed(403, 'the Date header is out of date')
    return last !== undefined && differs(last.iat)
      ? failed(403, 'the Date header is not of the time of the signature')
      : undefined
  }

  #judge(
    call: CallToVerify,
    claims: readonly Claim[],
    found: ReadonlyMap<string, Known>,
  ): VerifiedCall {
    let first: { readonly passport: Passport; readonly signer: string } | undefined
    for (const { passport } of claims) {
      const certificate = found.get(passport.x5u)
      if (certificate?.kind === 'bad') return failed(certificate.status, certificate.why)
    }
    for (const claim of claims) {
      const certificate = found.get(claim.passport.x5u)
      if (certificate?.kind !== 'good') return failed(436, 'the certificate was not fetched')
      const problem = problemWith(claim, certificate, call.now)
      if (problem !== undefined) return problem
      const isFirst = first === undefined || first.passport.kind === 'none'
      if (claim.passport.kind !== 'div' && isFirst)
        first = { passport: claim.passport, signer: certificate.signer }
    }
    const { callId } = call
    for (const { signed } of claims)
      if (callId !== undefined && this.#deps.replays.isReplay(signed, callId))
        return failed(438, 'another call has come with this PASSporT')
    if (first === undefined) return failed(438, 'a diversion is signed without the first call')
    const { attestation, origid } = first.passport
    return { verification: 'passed', attestation, origid, signer: first.signer }
  }
}

type Known = Looked | undefined

/** Undefined: a type of PASSporT that is not understood, and ignored (RFC 8224 §6.2). */
function claimIn(identity: string, call: CallToVerify): Claim | Failed | undefined {
  const parsed = parseIdentity(identity)
  if (parsed === undefined) return failed(438, 'the Identity header is malformed')
  if (parsed.alg !== undefined && parsed.alg !== 'ES256')
    return failed(437, 'the algorithm is not ES256')
  if (parsed.ppt !== undefined && parsed.ppt !== 'shaken' && parsed.ppt !== 'div') return undefined
  const whole = parsed.header === '' ? expandCompact(parsed, call) : parsed
  if (whole === undefined) return failed(438, 'a PASSporT in compact form needs Date, and no ppt')
  const { header, payload, signature, info, ppt } = whole
  const passport = readPassport(header, payload)
  if (typeof passport === 'string') return failed(438, passport)
  if (passport.kind === undefined) return undefined
  if (ppt !== undefined && ppt !== passport.kind)
    return failed(438, 'ppt differs from the PASSporT')
  if (info !== passport.x5u) return failed(438, 'info differs from x5u')
  const speaksFor = canonicalNumber(passport.div ?? passport.orig ?? '') ?? ''
  return { passport, signed: `${header}.${payload}`, signature, speaksFor }
}

/**
 * The diversions that lead from a PASSporT to the called number, the first one first (RFC 8946
 * §4.2); undefined: they do not lead there.
 */
function diversionsTo(
  dest: string,
  { dest: signed }: Passport,
  claims: readonly Claim[],
): readonly Passport[] | undefined {
  const path: Passport[] = []
  let target = dest
  while (!signed.some((number) => isNumber(number, target))) {
    const step = claims.find(
      ({ passport }) =>
        passport.kind === 'div' &&
        !path.includes(passport) &&
        passport.dest.some((number) => isNumber(number, target)),
    )
    if (step === undefined) return undefined
    path.unshift(step.passport)
    target = step.speaksFor
  }
  return path
}

function problemWith(
  { passport, signed, signature, speaksFor }: Claim,
  { key, from, until, tnAuthList, signer }: SignerCertificate,
  now: number,
): Failed | undefined {
  const at = now * 1_000
  if (at < from || at > until) return failed(437, `the certificate of ${signer} is not valid now`)
  const der = derSignature(Buffer.from(signature, 'base64url'))
  const isSigned = der !== undefined && verify('sha256', Buffer.from(signed, 'latin1'), key, der)
  if (!isSigned) return failed(438, 'the signature does not hold')
  return tnAuthList === undefined || coversNumber(tnAuthList, speaksFor)
    ? undefined
    : failed(437, `the certificate of ${signer} is not for ${passport.div ?? passport.orig}`)
}

const isNumber = (signed: string | undefined, number: string): boolean =>
  signed === number || (signed !== undefined && canonicalNumber(signed) === number)

const failed = (status: VerificationStatus, why: string): Failed => ({
  verification: 'failed',
  status,
  reason: verificationReasons[status],
  // It may name what somebody else has written.
  why: why.replaceAll(/[^\x20-\x7e]/g, '?').slice(0, MAX_WHY_LENGTH),
})

const MAX_WHY_LENGTH = 200
