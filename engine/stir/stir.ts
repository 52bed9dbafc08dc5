/**
 * Signed calls (RFC 8224, 8225, 8588, 8946): signs with the key of the tenant, of a signing service
 * or of the platform, and says what a received signature proves.
 */
import { sign, type X509Certificate } from 'node:crypto'
import type { Cancel } from '../../schema/clock.ts'
import type { Log } from '../../schema/contracts/log.ts'
import type {
  CallToSign,
  CallToVerify,
  SignedCall,
  StirKeysPort,
  StirKeyStatus,
  StirPort,
  VerifiedCall,
} from '../../schema/contracts/stir.ts'
import { OneAtATime } from '../../schema/one-at-a-time.ts'
import { canonicalNumber } from '../../schema/stir/canonical-number.ts'
import { identityText, MAX_IDENTITIES } from '../../schema/stir/identity-header.ts'
import { divPayload, shakenPayload, type ShakenClaims } from '../../schema/stir/passport.ts'
import { readCertificates } from '../../schema/stir/pem.ts'
import { rawSignature } from '../../schema/stir/signature-form.ts'
import { Certificates, type CertificatesDeps } from './certificates.ts'
import { Replays } from './replays.ts'
import { type SigningKey, SigningKeys } from './signing-keys.ts'
import { SigningService } from './signing-service.ts'
import type { StirRecords } from './stir-store.ts'
import { Verifier } from './verifier.ts'

export interface StirDeps extends CertificatesDeps {
  readonly load: () => Promise<StirRecords>
  /** The text of the file of authorities; undefined: there is none. */
  readonly authoritiesFile: () => Promise<string | undefined>
  readonly publicUrl: string | undefined
  readonly maxAgeSeconds: number
  /** A signing service; undefined: there is none. */
  readonly signingService: { readonly url: string; readonly token: string | undefined } | undefined
  /** Milliseconds by a clock that never steps. */
  readonly steadyNow: () => number
  readonly log: Log
}

/** Certificates in the file of authorities, and those of the database together. */
const MAX_AUTHORITIES = 500
/** The time after which a certificate that could not be fetched is tried again. */
const RETRY_MS = 60_000

export class Stir implements StirPort, StirKeysPort {
  readonly #deps: StirDeps
  readonly #certificates: Certificates
  readonly #keys: SigningKeys
  readonly #replays = new Replays()
  readonly #verifier: Verifier
  readonly #service: SigningService | undefined
  readonly #reloads = new OneAtATime(() => this.#load())
  /** Keys are written often, and their certificates may be slow: rounds do not pile up. */
  readonly #fetches = new OneAtATime(() => this.#fetchMissing())
  readonly #figures = { signed: 0, unsigned: 0, passed: 0, failed: 0, none: 0 }
  #cancelRetry: Cancel | undefined
  #isStopped = false

  constructor(deps: StirDeps) {
    this.#deps = deps
    const { maxAgeSeconds, signingService, publicUrl, now } = deps
    const certificates = new Certificates(deps)
    this.#certificates = certificates
    this.#verifier = new Verifier({ certificates, replays: this.#replays, maxAgeSeconds })
    this.#keys = new SigningKeys({ publicUrl, now, chainAt: (url) => certificates.chainAt(url) })
    this.#service = signingService && new SigningService({ ...deps, ...signingService })
  }

  reload(): Promise<void> {
    return this.#reloads.request()
  }

  stop(): void {
    this.#isStopped = true
    this.#cancelRetry?.()
    this.#service?.close()
  }

  canSign(tenantId: number | null): boolean {
    return this.#service !== undefined || this.#keyFor(tenantId, this.#deps.now()) !== undefined
  }

  sign(call: CallToSign): SignedCall | Promise<SignedCall> {
    const signed = this.#sign(call)
    return signed instanceof Promise
      ? signed.then((answer) => this.#countSigned(answer))
      : this.#countSigned(signed)
  }

  verify(call: CallToVerify): VerifiedCall | Promise<VerifiedCall> {
    const verified = this.#verifier.verify(call)
    return verified instanceof Promise
      ? verified.then((answer) => this.#countVerified(answer))
      : this.#countVerified(verified)
  }

  keyStatus(id: number): StirKeyStatus | undefined {
    return this.#keys.status(id)
  }

  publishedCertificate(name: string): string | undefined {
    return this.#keys.published(name)
  }

  /** The last moments at which our owners can sign. */
  ends(): readonly { readonly file: string; readonly notAfter: number }[] {
    return this.#keys.ends()
  }

  telemetry(): Readonly<Record<string, number>> {
    return {
      stir_signed_total: this.#figures.signed,
      stir_unsigned_total: this.#figures.unsigned,
      stir_verified_passed_total: this.#figures.passed,
      stir_verified_failed_total: this.#figures.failed,
      stir_verified_none_total: this.#figures.none,
      stir_replays_kept: this.#replays.size,
      ...this.#certificates.telemetry(),
      ...this.#service?.telemetry(),
    }
  }

  #sign(call: CallToSign): SignedCall | Promise<SignedCall> {
    const { tenantId, iat, attestation: attest, origid } = call
    const orig = canonicalNumber(call.orig)
    if (orig === undefined) return unsigned('the calling number is no telephone number')
    const received = (call.received ?? []).slice(0, MAX_IDENTITIES)
    const diverted = call.divertedBy ?? []
    if (diverted.length > MAX_IDENTITIES) return unsigned('the call was forwarded too often')
    // The first signature is about the number that was called first.
    const dest = canonicalNumber(diverted[0]?.number ?? call.dest)
    if (dest === undefined) return unsigned('the called number is no telephone number')
    const steps = diverted.map((step) => ({
      div: canonicalNumber(step.number) ?? '',
      dest: canonicalNumber(step.dest) ?? '',
    }))
    if (steps.some(({ div, dest: to }) => div === '' || to === ''))
      return unsigned('a number that forwards is no telephone number')
    const key = this.#keyFor(tenantId, iat * 1_000)
    const withDiversions = (first: readonly string[]): SignedCall => {
      if (steps.length > 0 && key === undefined) return unsigned('there is no key for diversions')
      const more = steps.map((step) => key && signedDiv(key, divPayload({ ...step, orig, iat })))
      return {
        kind: 'signed',
        identities: [...first, ...more.filter((each) => each !== undefined)],
      }
    }
    if (received.length > 0) return withDiversions(received)
    const claims = { attest, orig, dest, iat, origid }
    if (this.#service !== undefined && !this.#hasOwnKey(tenantId, iat * 1_000))
      return this.#byService(this.#service, claims, key, withDiversions)
    if (key === undefined) return unsigned('there is no valid key')
    return withDiversions([signedShaken(key, claims)])
  }

  /** The platform's key signs when the service does not. */
  async #byService(
    service: SigningService,
    claims: ShakenClaims,
    key: SigningKey | undefined,
    withDiversions: (first: readonly string[]) => SignedCall,
  ): Promise<SignedCall> {
    const answer = await service.sign(claims)
    if (answer.kind === 'signed') return withDiversions([answer.identity])
    return key === undefined ? unsigned(answer.why) : withDiversions([signedShaken(key, claims)])
  }

  #hasOwnKey(tenantId: number | null, now: number): boolean {
    return tenantId !== null && this.#keys.of(tenantId, now) !== undefined
  }

  #keyFor(tenantId: number | null, now: number): SigningKey | undefined {
    return (
      (tenantId === null ? undefined : this.#keys.of(tenantId, now)) ?? this.#keys.of(null, now)
    )
  }

  #countSigned(answer: SignedCall): SignedCall {
    this.#figures[answer.kind] += 1
    return answer
  }

  #countVerified(answer: VerifiedCall): VerifiedCall {
    this.#figures[answer.verification] += 1
    return answer
  }

  async #load(): Promise<void> {
    const { keys, authorities } = await this.#deps.load()
    const file = await this.#deps.authoritiesFile()
    const named = [
      ...authorities,
      ...(file === undefined ? [] : [{ name: 'STIR_AUTHORITIES', certificate: file }]),
    ]
    const problems = await this.#certificates.trust(
      named.flatMap(({ name, certificate }) => this.#read(name, certificate)),
    )
    for (const problem of problems) this.#deps.log('warn', `STIR authority ${problem}`)
    this.#keys.load(keys)
    this.#cancelRetry?.()
    void this.#fetches.request()
  }

  #read(name: string, pem: string): readonly X509Certificate[] {
    const read = readCertificates(pem, MAX_AUTHORITIES)
    if (typeof read !== 'string') return read
    this.#deps.log('warn', `STIR authorities of ${name}: the text ${read}`)
    return []
  }

  async #fetchMissing(): Promise<void> {
    const isMissing = await this.#keys.fetchMissing()
    if (!isMissing || this.#isStopped) return
    this.#cancelRetry?.()
    this.#cancelRetry = this.#deps.schedule(() => void this.#fetches.request(), RETRY_MS)
  }
}

const signedShaken = (key: SigningKey, claims: ShakenClaims): string =>
  signedBy(key, 'shaken', shakenPayload(claims))

const signedDiv = (key: SigningKey, payload: string): string => signedBy(key, 'div', payload)

function signedBy({ key, x5u, headers }: SigningKey, ppt: 'shaken' | 'div', payload: string) {
  const input = `${headers[ppt]}.${payload}`
  const signature = rawSignature(sign('sha256', Buffer.from(input, 'latin1'), key))
  return identityText(`${input}.${signature.toString('base64url')}`, x5u, ppt)
}

const unsigned = (why: string): SignedCall => ({ kind: 'unsigned', why })
