/**
 * Signs the INVITEs to carriers that want it (STIR/SHAKEN: RFC 8224, 8588, and 8946 for forwards).
 * A call that cannot be signed goes on without: its trace says why.
 */
import type { Attestation, PresentedIdentity } from '../../../schema/contracts/caller-identity.ts'
import type { Log } from '../../../schema/contracts/log.ts'
import type { OwnedNumbers } from '../../../schema/contracts/owned-numbers.ts'
import type { CallToSign, SignedCall, StirPort } from '../../../schema/contracts/stir.ts'
import { usualExitCodes, withoutPlus } from '../../../schema/rules/numbers.ts'
import type { LiveCall } from '../call-machine/state.ts'
import { tenantOfCall } from '../cdr/cdr.ts'
import type { CallDeadlines } from '../deadlines.ts'
import type { IncomingInvite } from '../inbound/incoming-invite.ts'
import type { Headers } from '../signalling.ts'
import { calledOf, isAnonymous, numberedPartyOf, type Party, partyOf } from '../sip-headers.ts'

interface CallSignerDeps {
  readonly stir: Pick<StirPort, 'sign'>
  /** Absent: nobody owns a number. */
  readonly ownedNumbers?: Pick<OwnedNumbers, 'find' | 'isOwned'> | undefined
  readonly deadlines: CallDeadlines
  /** Milliseconds by the steady clock. */
  readonly now: () => number
  readonly log: Log
}

/** An INVITE as it is about to leave, before its signature. */
export interface InviteToSign {
  readonly uri: string
  readonly headers: Headers
}

export interface SignedInvite {
  readonly headers: Headers
  /** Those of them that are the signature; empty: there is none. */
  readonly signature: Headers
  /** Undefined: it is not signed, or the signature is that of the caller's network. */
  readonly attestation: Attestation | undefined
  /** Why it is not signed; undefined: it is. */
  readonly unsigned: string | undefined
}

/** A call waits no longer for the signing service. */
export const SIGN_MS = 1_000
/** Calls that wait for it at the same time; further ones go on without a signature. */
const MAX_SIGNING = 1_000

export class CallSigner {
  readonly #deps: CallSignerDeps
  readonly #totals: Record<Attestation | 'div' | 'unsigned', number> = {
    A: 0,
    B: 0,
    C: 0,
    div: 0,
    unsigned: 0,
  }
  #waiting = 0

  constructor(deps: CallSignerDeps) {
    this.#deps = deps
  }

  /** A promise only where another service signs. */
  sign(
    call: LiveCall,
    invite: IncomingInvite,
    outgoing: InviteToSign,
  ): SignedInvite | Promise<SignedInvite> {
    const asked = callToSign(call, invite, outgoing, this.#deps)
    if (asked === undefined) return this.#unsigned(outgoing, NO_NUMBERS)
    const signed = this.#deps.stir.sign(asked)
    if (!(signed instanceof Promise)) return this.#taken(outgoing, asked, signed)
    if (!call.isEmergency && this.#waiting < MAX_SIGNING)
      return this.#awaited(outgoing, asked, signed)
    signed.catch(() => undefined)
    return this.#unsigned(outgoing, call.isEmergency ? EMERGENCY : TOO_MANY)
  }

  telemetry(): Readonly<Record<string, number>> {
    const { A, B, C, div, unsigned } = this.#totals
    return {
      stir_calls_signed_A_total: A,
      stir_calls_signed_B_total: B,
      stir_calls_signed_C_total: C,
      stir_calls_signed_div_total: div,
      stir_calls_signed_unsigned_total: unsigned,
      stir_calls_signing: this.#waiting,
    }
  }

  #awaited(
    outgoing: InviteToSign,
    asked: CallToSign,
    signing: Promise<SignedCall>,
  ): Promise<SignedInvite> {
    const { deadlines, log, now } = this.#deps
    this.#waiting += 1
    return new Promise((resolve) => {
      let isOver = false
      const end = (invite: () => SignedInvite): void => {
        if (isOver) return
        isOver = true
        this.#waiting -= 1
        deadlines.cancel(deadline)
        resolve(invite())
      }
      const without = (why: string): void => end(() => this.#unsigned(outgoing, why))
      const deadline = deadlines.at(now() + SIGN_MS, () => without(TOO_LATE))
      signing.then(
        (signed) => end(() => this.#taken(outgoing, asked, signed)),
        (error: unknown) => {
          log('error', 'a call could not be signed', { error })
          without(FAULT)
        },
      )
    })
  }

  #taken(outgoing: InviteToSign, asked: CallToSign, signed: SignedCall): SignedInvite {
    if (signed.kind === 'unsigned') return this.#unsigned(outgoing, signed.why)
    const { identities } = signed
    if (identities.length === 0 || identities.some((each) => breaksLine.test(each)))
      return this.#unsigned(outgoing, NO_SIGNATURE)
    const signature = {
      // The caller's date may be of another clock (RFC 8224 §5.1).
      Date: new Date(asked.iat * 1_000).toUTCString(),
      // No list (RFC 8224 §4): each has a line of its own.
      Identity: identities.join('\r\nIdentity: '),
    }
    const headers = { ...withoutSignature(outgoing.headers, 'date'), ...signature }
    const attestation = asked.divertedBy === undefined ? asked.attestation : undefined
    this.#totals[attestation ?? 'div'] += 1
    return { headers, signature, attestation, unsigned: undefined }
  }

  /** Nor does a signature pass that another network has given for another called number. */
  #unsigned({ headers }: InviteToSign, unsigned: string): SignedInvite {
    this.#totals.unsigned += 1
    const others = withoutSignature(headers)
    return { headers: others, signature: {}, attestation: undefined, unsigned }
  }
}

const breaksLine = /[\r\n]/

const NO_NUMBERS = 'the INVITE asserts no number, or calls none'
const NO_SIGNATURE = 'the signing service has given no signature'
const TOO_LATE = `no signature came within ${SIGN_MS / 1_000} s`
const TOO_MANY = `${MAX_SIGNING} calls wait for signatures already`
const EMERGENCY = 'an emergency call does not wait for the signing service'
const FAULT = 'a fault of the platform'

function withoutSignature(headers: Headers, other?: string): Headers {
  const others: Headers = {}
  for (const name in headers) {
    const value = headers[name]
    const key = name.toLowerCase()
    if (value !== undefined && key !== 'identity' && key !== other) others[name] = value
  }
  return others
}

/** The call before the rules of the carrier. */
type InviteBefore = Pick<
  IncomingInvite,
  'calledNumber' | 'from' | 'headers' | 'identity' | 'verified'
>

interface SignedFacts {
  readonly ownedNumbers?: CallSignerDeps['ownedNumbers']
  /** Milliseconds by the steady clock. */
  readonly now: () => number
}

/** Undefined: it says no number of the caller, or calls none. */
export function callToSign(
  call: Pick<LiveCall, 'account' | 'destination' | 'forwardedBy' | 'origin' | 'start'> &
    Pick<LiveCall, 'stampOffsetMs'>,
  { verified, identity, from, calledNumber, headers: before }: InviteBefore,
  { uri, headers }: InviteToSign,
  { ownedNumbers, now }: SignedFacts,
): CallToSign | undefined {
  const asserted = identity?.asserted ?? assertedNumber(before) ?? ''
  const orig = canonical(assertedNumber(headers), [asserted, from.number])
  const dest = canonical(numberIn(calledOf(uri)), [calledNumber])
  if (orig === undefined || dest === undefined) return undefined
  const asked = {
    tenantId: tenantOfCall(call),
    orig,
    dest,
    attestation: attestationOf(orig, call, ownedNumbers, identity),
    // A trace back by the number of the origin finds the record (RFC 8588 §5).
    origid: call.start.callUuid,
    iat: Math.floor((now() + call.stampOffsetMs) / 1_000),
  }
  const isForwarded = call.forwardedBy !== undefined && verified?.verification === 'passed'
  // The caller's network has signed its number, and nobody else's.
  if (!isForwarded || withoutPlus(verified.orig) !== withoutPlus(orig)) return asked
  const { identities: received, dest: number } = verified
  return { ...asked, received, divertedBy: [{ number, dest }] }
}

/**
 * The number of the call where a carrier's rules have written an exit code in front of it (RFC 8224
 * §8.3): behind a code alone, other digits may be a number of the place.
 */
function canonical(sent: string | undefined, known: readonly string[]): string | undefined {
  if (sent === undefined) return undefined
  const digits = withoutPlus(sent)
  const isBehindCode = (number: string) =>
    number !== '' && usualExitCodes.some((code) => digits === `${code}${withoutPlus(number)}`)
  return known.find(isBehindCode) ?? sent
}

/** The number that the network is told, else the one that is shown. */
function assertedNumber(headers: Headers): string | undefined {
  const asserted = numberIn(numberedPartyOf(headers['p-asserted-identity'] ?? ''))
  if (asserted !== undefined) return asserted
  const shown = partyOf(headers['From'] ?? '')
  return isAnonymous(shown) ? undefined : numberIn(shown)
}

const numberIn = ({ number, irregular }: Party): string | undefined =>
  number === '' || irregular !== undefined ? undefined : number

/** RFC 8588 §4: A owns the number, B is a known customer, C has come from elsewhere. */
export function attestationOf(
  number: string,
  { account, origin, forwardedBy }: Pick<LiveCall, 'account' | 'forwardedBy' | 'origin'>,
  ownedNumbers: CallSignerDeps['ownedNumbers'],
  identity?: PresentedIdentity,
): Attestation {
  // The number itself has named the payer: nobody else has said that it is the caller's.
  if (origin?.kind === 'carrier' && origin.payer === 'from_number') return 'C'
  // The rules about callers know what customers of a tenant share, and who has called first.
  const isDecided = identity && withoutPlus(identity.asserted) === withoutPlus(number)
  if (isDecided && identity.attestation !== 'B') return identity.attestation
  const phone = origin?.kind === 'extension' ? origin : undefined
  const customerId = account?.customerId ?? phone?.customerId ?? null
  const tenantId = account?.tenantId ?? phone?.tenantId ?? null
  if (ownedNumbers?.isOwned(number, { tenantId, customerId }) === true)
    return ownedNumbers.find(number)?.attestation ?? 'A'
  if (forwardedBy !== undefined) return 'C'
  return customerId !== null || phone !== undefined ? 'B' : 'C'
}
