/**
 * The values that fields of calls, call records and ledger entries may have, in the API's spelling.
 */

export const directions = ['inbound', 'outbound', 'internal'] as const
export type Direction = (typeof directions)[number]

export const dispositions = [
  'ANSWERED',
  'NO ANSWER',
  'BUSY',
  'CANCELED',
  'FAILED',
  'CONGESTION',
] as const
export type Disposition = (typeof dispositions)[number]

/** Which party ended a call. */
export const hangupParties = ['caller', 'callee', 'system', 'api'] as const
export type HangupParty = (typeof hangupParties)[number]

/** The proof that Identity headers give of a caller (RFC 8224). */
export const verifications = ['passed', 'failed', 'none'] as const

/** The same, as 3GPP TS 24.229 writes it. */
export const verstats = [
  'TN-Validation-Passed',
  'TN-Validation-Failed',
  'No-TN-Validation',
] as const

export const attestations = ['A', 'B', 'C'] as const

/** Calls of a carrier are verified and marked, or those that are not proved are refused. */
export const verifyPolicies = ['off', 'mark', 'refuse'] as const
export type VerifyPolicy = (typeof verifyPolicies)[number]

/** How equals share calls: drawn by weight, one after the other, or in exact parts by weight. */
export const distributions = ['weight', 'round_robin', 'percent'] as const
export type Distribution = (typeof distributions)[number]

/** Measured by the media relay; computed here from jitter and loss; reported by a phone. */
export const mosSources = ['measured', 'computed', 'reported'] as const
export type MosSource = (typeof mosSources)[number]

/** Why a call that was to be recorded has no recording. */
export const recordingErrors = [
  'not_relayed',
  'relay_failed',
  'nothing_captured',
  'unknown_codec',
  'not_written',
] as const
export type RecordingError = (typeof recordingErrors)[number]

export const entryKinds = ['topup', 'debit', 'adjust', 'refund'] as const
export type EntryKind = (typeof entryKinds)[number]

/**
 * Whether a relay stands between the parties: `bypass`, only where media could not flow otherwise;
 * `prefer`, when a relay is alive; `anchor`, always: without a relay the call is refused.
 */
export type MediaPolicy = 'bypass' | 'prefer' | 'anchor'

/**
 * How a party sends media: `auto`, as its own SDP says; RTP; SRTP with keys in SDP (SDES);
 * DTLS-SRTP with ICE.
 */
export type MediaProfile = 'auto' | 'rtp' | 'srtp' | 'webrtc'

/** How a party takes digits: RFC 4733 events in RTP, or SIP INFO; `auto`: as they come. */
export type DtmfMode = 'auto' | 'rfc4733' | 'info'

/**
 * Rules of a carrier, a dispatcher set, an extension, a tenant or an agent for the media of its
 * calls.
 */
export interface MediaRules {
  /** null: inherited, from the tenant of an extension, then from the setting `MEDIA_POLICY`. */
  readonly policy: MediaPolicy | null
  readonly profile: MediaProfile
  /** Allowed codecs, the preferred first; null: as the parties agree. */
  readonly codecs: readonly string[] | null
  readonly dtmf: DtmfMode
}

/** The quality of the media of one party. A value is null where it is not known. */
export interface StreamQuality {
  readonly mos: number | null
  /** Receiver reports of the relay; jitter and loss (ITU-T G.107); or the phone. */
  readonly mosSource: MosSource | null
  readonly jitterMs: number | null
  readonly packetLossPct: number | null
  readonly roundTripMs: number | null
  readonly packets: number
}

/** The quality of a call: of the caller's media and of the callee's. */
export interface CallQuality {
  readonly caller: StreamQuality | null
  readonly callee: StreamQuality | null
}

export type ProposalState = 'open' | 'approved' | 'refused' | 'expired' | 'failed'
