/** The values that fields of calls, call records and ledger entries may have, in the API's spelling. */

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

/** By the media relay; by this platform, out of jitter and loss; by a phone. */
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
