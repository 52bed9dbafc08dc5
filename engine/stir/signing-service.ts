/**
 * A signing service by HTTP, in the form of ATIS-1000082: one POST for each signature, within a
 * limit of time, size and requests at once. One that fails again and again rests.
 */
import type { Schedule } from '../../schema/clock.ts'
import { parseIdentity } from '../../schema/stir/identity-header.ts'
import { readPassport, type ShakenClaims } from '../../schema/stir/passport.ts'
import { CircuitBreaker } from '../hooks/circuit-breaker.ts'
import { WebhookClient } from '../hooks/webhook/webhook-client.ts'
import type { TargetRules } from '../../schema/net/http-target.ts'

export interface SigningServiceDeps {
  /** The part before `/stir/v1/signing`. */
  readonly url: string
  readonly token: string | undefined
  readonly resolve: TargetRules['resolve']
  /** Milliseconds by a clock that never steps. */
  readonly steadyNow: () => number
  readonly schedule: Schedule
}

export type ServiceAnswer =
  | { readonly kind: 'signed'; readonly identity: string }
  | { readonly kind: 'failed'; readonly why: string }

/** A call waits so long for its signature. */
const SIGNING_TIMEOUT_MS = 1_000
const MAX_AT_ONCE = 100

export class SigningService {
  readonly #client: WebhookClient
  readonly #breaker: CircuitBreaker
  readonly #headers: Readonly<Record<string, string>>
  #atOnce = 0
  #requests = 0
  #failures = 0

  constructor({ url, token, resolve, steadyNow, schedule }: SigningServiceDeps) {
    this.#client = new WebhookClient({
      url: `${url.replace(/\/+$/, '')}/stir/v1/signing`,
      timeoutMs: SIGNING_TIMEOUT_MS,
      schedule,
      resolve,
      // The operator names it in a setting: it may stand in the own network.
      allowPrivate: true,
    })
    this.#breaker = new CircuitBreaker(steadyNow)
    this.#headers = token === undefined ? {} : { authorization: `Bearer ${token}` }
  }

  async sign(claims: ShakenClaims): Promise<ServiceAnswer> {
    if (this.#atOnce >= MAX_AT_ONCE) return notSigned('it has too many requests')
    if (!this.#breaker.admits()) return notSigned('it is left out after failures')
    this.#atOnce += 1
    this.#requests += 1
    try {
      const answer = await this.#ask(claims)
      if (answer.kind === 'signed') this.#breaker.succeeded()
      else {
        this.#failures += 1
        this.#breaker.failed()
      }
      return answer
    } finally {
      this.#atOnce -= 1
    }
  }

  close(): void {
    this.#client.close()
  }

  telemetry(): Readonly<Record<string, number>> {
    return {
      stir_signing_requests_total: this.#requests,
      stir_signing_failures_total: this.#failures,
      stir_signing_requests: this.#atOnce,
      stir_signing_is_resting: Number(this.#breaker.isOpen),
    }
  }

  async #ask({ orig, dest, ...claims }: ShakenClaims): Promise<ServiceAnswer> {
    const signingRequest = { ...claims, orig: { tn: orig }, dest: { tn: [dest] } }
    const reply = await this.#client.post(this.#headers, JSON.stringify({ signingRequest }))
    if (reply.kind === 'failed') return notSigned(reply.reason)
    const identity = reply.kind === 'answered' ? identityIn(reply.body) : undefined
    if (identity === undefined) return notSigned('its answer has no identity')
    const isAsked = isAbout(identity, { ...claims, orig, dest })
    return isAsked ? { kind: 'signed', identity } : notSigned('it has signed something else')
  }
}

function identityIn(body: string): string | undefined {
  try {
    const answer: unknown = JSON.parse(body)
    const { signingResponse } = answer as { signingResponse?: { identity?: unknown } }
    const identity = signingResponse?.identity
    return typeof identity === 'string' ? identity : undefined
  } catch {
    return undefined
  }
}

/** A header that says something else than we asked for would be our lie. */
function isAbout(identity: string, { attest, orig, dest, iat, origid }: ShakenClaims): boolean {
  const parsed = parseIdentity(identity)
  const passport = parsed && readPassport(parsed.header, parsed.payload)
  return (
    typeof passport === 'object' &&
    passport.kind === 'shaken' &&
    passport.attestation === attest &&
    passport.orig === orig &&
    passport.dest.length === 1 &&
    passport.dest[0] === dest &&
    passport.iat === iat &&
    passport.origid === origid
  )
}

const notSigned = (why: string): ServiceAnswer => ({
  kind: 'failed',
  why: `the signing service: ${why}`,
})
