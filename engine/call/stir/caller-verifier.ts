/**
 * Verifies the callers of INVITEs by their Identity headers (STIR: RFC 8224 §6.2), where a carrier
 * wants it. A call of anybody else is not looked at, and waits for nothing.
 */
import type { Log } from '../../../schema/contracts/log.ts'
import type {
  StirPort,
  Verification,
  VerifiedCall,
  Verstat,
} from '../../../schema/contracts/stir.ts'
import { headerNamed, splitList } from '../../../schema/sip/index.ts'
import type { Routing } from '../../routing/routing.ts'
import type { LiveCall } from '../call-machine/state.ts'
import type { CallDeadlines } from '../deadlines.ts'
import type { IncomingInvite } from '../inbound/incoming-invite.ts'
import type { Headers, SipRequest } from '../signalling.ts'
import { calledOf, callerOf, partyOf } from '../sip-headers.ts'
import type { VerifiedCaller } from './verified-caller.ts'

interface CallerVerifierDeps {
  readonly stir: Pick<StirPort, 'verify'>
  readonly routing: Pick<Routing, 'isEmergencyNumber' | 'registeredUser'>
  readonly deadlines: CallDeadlines
  /** Milliseconds by the steady clock. */
  readonly now: () => number
  readonly log: Log
}

/** A caller waits no longer for a certificate. */
export const VERIFY_MS = 2_000
/** Calls that wait at the same time; further ones go on as not verified. */
export const MAX_VERIFYING = 1_000

type Asked = Pick<VerifiedCaller, 'orig' | 'dest' | 'identities'>

export class CallerVerifier {
  readonly #deps: CallerVerifierDeps
  readonly #totals: Record<Verification, number> = { passed: 0, failed: 0, none: 0 }
  #waiting = 0

  constructor(deps: CallerVerifierDeps) {
    this.#deps = deps
  }

  /** Whether somebody wants to know who calls. */
  isAsked({ origin }: Pick<IncomingInvite, 'origin'>): boolean {
    return origin.kind === 'carrier' && origin.verify !== undefined
  }

  /** A promise only where a certificate has to be fetched. */
  verify(
    request: SipRequest,
    call: LiveCall,
    invite: IncomingInvite,
  ): VerifiedCaller | Promise<VerifiedCaller> {
    const asked = this.#askedBy(request, invite)
    const { identities } = asked
    if (identities.length === 0) return this.#decided(asked, { verification: 'none' }, NO_HEADER)
    const { callId, calledNumber } = invite
    const now = Math.floor((this.#deps.now() + call.stampOffsetMs) / 1_000)
    const date = dateIn(request.headers)
    const verified = this.#deps.stir.verify({ ...asked, callId, now, date })
    if (!(verified instanceof Promise)) return this.#decided(asked, verified)
    // Nobody who needs help waits for a certificate.
    const mayWait = !this.#deps.routing.isEmergencyNumber(calledNumber)
    if (mayWait && this.#waiting < MAX_VERIFYING) return this.#awaited(asked, verified)
    verified.catch(() => undefined)
    return this.#decided(asked, unverified, mayWait ? TOO_MANY : EMERGENCY)
  }

  telemetry(): Readonly<Record<string, number>> {
    const { passed, failed, none } = this.#totals
    return {
      stir_calls_verified_passed_total: passed,
      stir_calls_verified_failed_total: failed,
      stir_calls_verified_none_total: none,
      stir_calls_verifying: this.#waiting,
    }
  }

  /**
   * The numbers that a signature is about. The rules of the carrier may make a number
   * international, or make a local one of it, which nobody has signed.
   */
  #askedBy(request: SipRequest, { origin, callerNumber, calledNumber }: IncomingInvite): Asked {
    const { headers, uri } = request
    const caller = callerOf(headers['p-asserted-identity'], partyOf(headers['from'] ?? '')).number
    // To a registered Contact the called number stands elsewhere.
    const isRegistered = this.#deps.routing.registeredUser(origin) !== undefined
    const called = isRegistered ? calledNumber : calledOf(uri).number
    return {
      orig: callerNumber.startsWith('+') ? callerNumber : caller,
      dest: calledNumber.startsWith('+') ? calledNumber : called,
      identities: splitList(headerNamed(headers, 'identity') ?? ''),
    }
  }

  /** Its time is bounded; the caller may cancel meanwhile. */
  #awaited(asked: Asked, verifying: Promise<VerifiedCall>): Promise<VerifiedCaller> {
    const { deadlines, log, now } = this.#deps
    this.#waiting += 1
    return new Promise((resolve) => {
      let isOver = false
      const end = (verified: VerifiedCall, why?: string): void => {
        if (isOver) return
        isOver = true
        this.#waiting -= 1
        deadlines.cancel(deadline)
        resolve(this.#decided(asked, verified, why))
      }
      const deadline = deadlines.at(now() + VERIFY_MS, () => end(unverified, TOO_LATE))
      verifying.then(end, (error: unknown) => {
        log('error', 'a caller could not be verified', { error })
        end(unverified, FAULT)
      })
    })
  }

  #decided(asked: Asked, verified: VerifiedCall, why = NOT_JUDGED): VerifiedCaller {
    const { verification } = verified
    this.#totals[verification] += 1
    switch (verification) {
      case 'passed': {
        const { attestation, signer } = verified
        return { ...asked, verification, verstat: verstats.passed, attestation, why: signer }
      }
      case 'failed': {
        const refusal = { status: verified.status, reason: verified.reason }
        const said = { attestation: null, why: verified.why, refusal }
        return { ...asked, verification, verstat: verstats.failed, ...said }
      }
      case 'none': {
        // RFC 8224 §6.2.2: also for headers of a kind that nobody here reads.
        const refusal = notReached.has(why) ? noCertificate : noIdentity
        const said = { attestation: null, why, refusal }
        return { ...asked, verification, verstat: verstats.none, ...said }
      }
    }
  }
}

/** Seconds since 1970; undefined: there is none, or it is no date. */
function dateIn(headers: Headers): number | undefined {
  const ms = Date.parse(headerNamed(headers, 'date') ?? '')
  return Number.isNaN(ms) ? undefined : Math.floor(ms / 1_000)
}

const unverified: VerifiedCall = { verification: 'none' }

const NO_HEADER = 'the INVITE has no Identity header'
const NOT_JUDGED = 'nothing here can judge its Identity headers'
const TOO_LATE = `no certificate came within ${VERIFY_MS / 1_000} s`
const TOO_MANY = `${MAX_VERIFYING} calls wait for certificates already`
const EMERGENCY = 'a call to an emergency number waits for no certificate'
const FAULT = 'a fault of the platform'

const notReached: ReadonlySet<string> = new Set([TOO_LATE, TOO_MANY, EMERGENCY, FAULT])

const noIdentity = { status: 428, reason: 'Use Identity Header' } as const
const noCertificate = { status: 436, reason: 'Bad Identity Info' } as const

const verstats = {
  passed: 'TN-Validation-Passed',
  failed: 'TN-Validation-Failed',
  none: 'No-TN-Validation',
} as const satisfies Record<Verification, Verstat>
