/**
 * Which number a call shows to a carrier, and who vouches for it. The rules of a source (extension,
 * customer, dispatcher set, carrier) say it; one function decides (`decideCallerIdentity`).
 */

/** The number that is presented unless the caller asks for another one that it may present. */
export type PresentedNumber =
  /** The `caller_number` of the extension, else the customer's `default_number`. */
  | 'own'
  /** The extension's digits, as they are dialled inside. */
  | 'extension'
  /** The customer's `default_number`. */
  | 'default'
  /** The number of the INVITE: P-Preferred-Identity or From of a phone, else the asserted one. */
  | 'as_sent'

/** Which numbers may be presented. */
export type PresentableNumbers =
  /** Those of the payer, and those that the platform has listed for its tenant. */
  | 'owned'
  /** Those, and the policy's `numbers`, each a number or the first digits of some. */
  | 'list'
  /** Only the platform may say so. */
  | 'any'

/** The fate of a call whose number may not be presented. */
export type OtherwisePresented = 'replace' | 'anonymous' | 'refuse'

/** The identity of forwarded and transferred calls. */
export type ForwardedIdentity =
  /** The first caller's, with Diversion (RFC 5806) and History-Info (RFC 7044) by an own number. */
  | 'original'
  /** The number of who forwards. */
  | 'own'

/** Every field of a policy may be absent: the next one in the order of sources says it. */
export interface CallerIdentityPolicy {
  readonly present?: PresentedNumber | undefined
  readonly allowed?: PresentableNumbers | undefined
  readonly numbers?: readonly string[] | undefined
  readonly otherwise?: OtherwisePresented | undefined
  readonly forwarded?: ForwardedIdentity | undefined
}

/** RFC 8588 §4: A owns the number; B is a known customer; C came through a gateway. */
export type Attestation = 'A' | 'B' | 'C'

/** The decision about a call, for INVITE, trace, record and simulator. */
export interface PresentedIdentity {
  /** Normal form; empty: the call is anonymous. */
  readonly number: string
  readonly name: string
  /** The network is told the number, the called party is not (RFC 3323 §4.3, RFC 3325 §7). */
  readonly isPrivate: boolean
  /** The number that the network is told, also of an anonymous caller; empty: none is known. */
  readonly asserted: string
  /** One clause that says why this number, such as `the caller number of extension 101`. */
  readonly why: string
  /** How far we can vouch for `asserted`. */
  readonly attestation: Attestation
  /** The number that forwards, where the first caller is shown. */
  readonly divertedBy?: string | undefined
  /** Why it forwards (RFC 5806 §4). Absent: not known. */
  readonly diversionReason?: string | undefined
}
