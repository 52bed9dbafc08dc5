/**
 * Signed calls (STIR/SHAKEN: RFC 8224, 8225, 8226, 8588, 8946). The engine gives the facts of an
 * INVITE and gets the value of its `Identity` header, or what such a header proves.
 */
import type { Attestation } from './caller-identity.ts'

/** `none`: there is no Identity header, or nobody looks at it. */
export type Verification = 'passed' | 'failed' | 'none'

/** 3GPP TS 24.229 §7.2A.20. */
export type Verstat = 'TN-Validation-Passed' | 'TN-Validation-Failed' | 'No-TN-Validation'

/** Responses of RFC 8224 §6.2.2, and 403 for a PASSporT that is too old (§6.2.2). */
export type VerificationStatus = 403 | 428 | 436 | 437 | 438

export interface CallToSign {
  readonly tenantId: number | null
  /** The number that the INVITE asserts, in normal form. */
  readonly orig: string
  /** The number in the Request-URI as it is sent, in normal form. */
  readonly dest: string
  readonly attestation: Attestation
  /** A UUID that names the origin (RFC 8588 §5). */
  readonly origid: string
  /** Numbers that have forwarded the call: a `div` PASSporT is added for each (RFC 8946). */
  readonly divertedBy?: readonly { readonly number: string; readonly dest: string }[]
  /** Identity headers as they were received; they pass with a forwarded call. */
  readonly received?: readonly string[]
  /** Seconds since 1970. */
  readonly iat: number
}

export type SignedCall =
  /** Values of the Identity headers, in order. */
  | { readonly kind: 'signed'; readonly identities: readonly string[] }
  /** One clause that says why there is no signature. */
  | { readonly kind: 'unsigned'; readonly why: string }

export interface CallToVerify {
  /** The values of all Identity headers. */
  readonly identities: readonly string[]
  /** The calling number of the INVITE, in normal form. */
  readonly orig: string
  readonly dest: string
  /** Seconds since 1970. */
  readonly now: number
  /** The `Date` header, seconds since 1970; absent: there is none. */
  readonly date?: number | undefined
  /** Tells a failover of the same call from a replay; absent: replays are not looked for. */
  readonly callId?: string | undefined
}

export type VerifiedCall =
  | {
      readonly verification: 'passed'
      readonly attestation: Attestation | null
      readonly origid: string | null
      /** The subject of the certificate, for people. */
      readonly signer: string
    }
  | {
      readonly verification: 'failed'
      readonly status: VerificationStatus
      readonly reason: string
      /** One clause for the operator. */
      readonly why: string
    }
  | { readonly verification: 'none' }

/** Signs and verifies. A value, and no promise, wherever nothing has to be fetched. */
export interface StirPort {
  /** Whether a call of this tenant can be signed at all. */
  canSign(tenantId: number | null): boolean
  sign(call: CallToSign): SignedCall | Promise<SignedCall>
  verify(call: CallToVerify): VerifiedCall | Promise<VerifiedCall>
  telemetry(): Readonly<Record<string, number>>
}

/** The use of a key of ours at this moment. */
export interface StirKeyStatus {
  /**
   * `in_use`: it signs the calls of its owner. `usable`: a newer one does. `waiting`: its time has
   * not begun, or its certificate has not been fetched. `unusable`: `why` says it.
   */
  readonly state: 'in_use' | 'usable' | 'waiting' | 'expired' | 'off' | 'unusable'
  readonly why: string | null
  /** URL of the certificate in signatures. */
  readonly x5u: string | null
  /** Last moment at which it signs. Milliseconds UTC. */
  readonly until: number | null
}

/** The part of the API: keys and authorities have been changed, and what is shown of them. */
export interface StirKeysPort {
  reload(): Promise<void>
  keyStatus(id: number): StirKeyStatus | undefined
  /** The chain in PEM that is published by this name; undefined: there is none. */
  publishedCertificate(name: string): string | undefined
}
