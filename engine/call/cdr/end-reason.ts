/** Maps the end of a call to the disposition, status and cause of its record. Pure. */
import type { CallRecord, MoneyLack } from '../../../schema/contracts/call-record.ts'
import { denialText } from '../../../schema/contracts/denials.ts'
import type { Disposition } from '../../../schema/contracts/field-values.ts'

/** The end of a call as it happened. The first one counts. */
export type End =
  | CallRefusal
  /** The called side refused, and the caller got its response. */
  | {
      readonly kind: 'rejected'
      readonly status: number
      readonly reason: string
      readonly headers: Readonly<Record<string, string>>
      /** The carrier's own status, where its callers get another one. */
      readonly answered?: number
    }
  /** The call rang for too long. */
  | { readonly kind: 'no-answer' }
  /** CANCEL; `reason` is its `Reason` header. */
  | { readonly kind: 'cancelled'; readonly reason?: string | undefined }
  /** BYE. */
  | { readonly kind: 'hung-up'; readonly by: 'caller' | 'callee' }
  /** Ended from here, in any state; `cause` is ITU-T Q.850, `code` the record's `denial_code`. */
  | {
      readonly kind: 'cut'
      readonly by: 'system' | 'api'
      readonly cause: number
      readonly code: string | null
      /** The cause in the record, where Q.850 has none. */
      readonly name?: string
      /** When it ended, by the steady clock. Absent: now. */
      readonly endedAt?: number
    }

/** Refused here before any destination was called; `code` is the record's `denial_code`. */
export interface CallRefusal {
  readonly kind: 'refused'
  readonly status: number
  readonly reason: string
  readonly code: string
  readonly headers?: Readonly<Record<string, string>>
  /** The subject of its sentence (`denialText`). */
  readonly detail?: string | undefined
  /** The dispatcher set whose nodes were full, for the record. */
  readonly setId?: number
  /** Absent: it was not refused for money. */
  readonly lack?: MoneyLack | undefined
}

export function refused(
  status: number,
  reason: string,
  code: string,
  headers?: CallRefusal['headers'],
  detail?: string,
): CallRefusal {
  return {
    kind: 'refused',
    status,
    reason,
    code,
    ...(headers && { headers }),
    ...(detail !== undefined && { detail }),
  }
}

/** The end that the caller gets when there is no candidate, or none has sent a final response. */
export const noCandidate = refused(503, 'No Backend PBX Nodes Available', 'no_candidate')

/** No party has sent RTP since `lastPacketAt`. */
export const mediaTimeout = (lastPacketAt: number): End => ({
  kind: 'cut',
  by: 'system',
  cause: cause.timer,
  code: 'media_timeout',
  name: 'MEDIA_TIMEOUT',
  endedAt: lastPacketAt,
})

/** A bug ends one call, not the process. */
export const fault = refused(500, 'Server Internal Error', 'fault')

/** The sentence in the record. Undefined: the platform has neither refused nor ended the call. */
export const denialTextOf = (end: End): string | undefined =>
  'code' in end && end.code !== null
    ? denialText(end.code, 'detail' in end ? end.detail : undefined)
    : undefined

type EndSummary = Pick<
  CallRecord,
  'disposition' | 'sipCode' | 'hangupCause' | 'hangupBy' | 'denialCode'
>

/** `sipCode` is what the caller got: 200 once it was answered, 487 after its CANCEL. */
export function summarize(end: End, wasAnswered: boolean): EndSummary {
  const summary = summaryOf(end)
  return wasAnswered ? { ...summary, disposition: 'ANSWERED', sipCode: 200 } : summary
}

function summaryOf(end: End): EndSummary {
  const denialCode = 'code' in end ? end.code : null
  switch (end.kind) {
    case 'refused':
      return { ...byStatus(end.status), sipCode: end.status, hangupBy: 'system', denialCode }
    case 'rejected':
      return {
        ...byStatus(end.answered ?? end.status),
        sipCode: end.status,
        hangupBy: 'callee',
        denialCode,
      }
    case 'no-answer':
      return { ...byStatus(480), sipCode: 480, hangupBy: 'system', denialCode }
    case 'cancelled':
      return { ...byStatus(487), sipCode: 487, hangupBy: 'caller', denialCode }
    case 'hung-up':
      return {
        disposition: 'FAILED',
        sipCode: 487,
        hangupCause: causeName(16),
        hangupBy: end.by,
        denialCode,
      }
    case 'cut':
    default:
      return {
        disposition: end.by === 'api' ? 'CANCELED' : 'FAILED',
        sipCode: cutStatus(end.by),
        hangupCause: end.name ?? causeName(end.cause),
        hangupBy: end.by,
        denialCode,
      }
  }
}

/** The status that the caller gets when we end its unanswered call. */
export const cutStatus = (by: 'system' | 'api'): number => (by === 'api' ? 480 : 503)

interface StatusMeaning {
  readonly disposition: Disposition
  readonly hangupCause: string
}

/** Causes as in RFC 3398 §8.2.6.1 (SIP status → ISUP cause). */
function byStatus(status: number): StatusMeaning {
  const known = meanings[status]
  if (known) return known
  if (status >= 600) return { disposition: 'FAILED', hangupCause: causeName(21) }
  if (status >= 500) return { disposition: 'FAILED', hangupCause: causeName(41) }
  return { disposition: 'FAILED', hangupCause: causeName(127) }
}

const meanings: Readonly<Record<number, StatusMeaning>> = {
  402: { disposition: 'FAILED', hangupCause: 'CALL_REJECTED' },
  403: { disposition: 'FAILED', hangupCause: 'CALL_REJECTED' },
  404: { disposition: 'FAILED', hangupCause: 'UNALLOCATED_NUMBER' },
  408: { disposition: 'NO ANSWER', hangupCause: 'NO_USER_RESPONSE' },
  410: { disposition: 'FAILED', hangupCause: 'NUMBER_CHANGED' },
  480: { disposition: 'NO ANSWER', hangupCause: 'NO_ANSWER' },
  482: { disposition: 'FAILED', hangupCause: 'EXCHANGE_ROUTING_ERROR' },
  483: { disposition: 'FAILED', hangupCause: 'EXCHANGE_ROUTING_ERROR' },
  484: { disposition: 'FAILED', hangupCause: 'INVALID_NUMBER_FORMAT' },
  486: { disposition: 'BUSY', hangupCause: 'USER_BUSY' },
  487: { disposition: 'CANCELED', hangupCause: 'ORIGINATOR_CANCEL' },
  488: { disposition: 'FAILED', hangupCause: 'INCOMPATIBLE_DESTINATION' },
  502: { disposition: 'FAILED', hangupCause: 'NETWORK_OUT_OF_ORDER' },
  503: { disposition: 'CONGESTION', hangupCause: 'NORMAL_TEMPORARY_FAILURE' },
  504: { disposition: 'FAILED', hangupCause: 'RECOVERY_ON_TIMER_EXPIRE' },
  600: { disposition: 'BUSY', hangupCause: 'USER_BUSY' },
  603: { disposition: 'FAILED', hangupCause: 'CALL_REJECTED' },
  604: { disposition: 'FAILED', hangupCause: 'UNALLOCATED_NUMBER' },
}

/** ITU-T Q.850 by the names that switches print. */
const causeNames: Readonly<Record<number, string>> = {
  1: 'UNALLOCATED_NUMBER',
  16: 'NORMAL_CLEARING',
  17: 'USER_BUSY',
  18: 'NO_USER_RESPONSE',
  19: 'NO_ANSWER',
  21: 'CALL_REJECTED',
  27: 'DESTINATION_OUT_OF_ORDER',
  31: 'NORMAL_UNSPECIFIED',
  52: 'OUTGOING_CALL_BARRED',
  38: 'NETWORK_OUT_OF_ORDER',
  41: 'NORMAL_TEMPORARY_FAILURE',
  42: 'SWITCH_CONGESTION',
  102: 'RECOVERY_ON_TIMER_EXPIRE',
  127: 'INTERWORKING',
}

const causeName = (cause: number): string => causeNames[cause] ?? `Q850_${cause}`

/** Q.850: why we end calls. */
export const cause = {
  normal: 16,
  noCredit: 21,
  shutdown: 31,
  connectionLost: 38,
  barred: 52,
  failure: 41,
  timer: 102,
} as const

/** The end of a call that cannot continue: a bug, or an answer that could not be completed. */
export const failure = {
  kind: 'cut',
  by: 'system',
  cause: cause.failure,
  code: null,
} as const satisfies End

/** The `Reason` header (RFC 3326) of a BYE, CANCEL or refusal from here. */
export function reasonHeader(end: Pick<End & { kind: 'cut' }, 'by' | 'cause'>): string {
  const isNoCredit = end.by === 'system' && end.cause === cause.noCredit
  const text = isNoCredit ? 'Insufficient Funds' : causeName(end.cause).replaceAll('_', ' ')
  return `Q.850;cause=${end.cause};text="${text}"`
}

/** The operator's code has given no answer that can be used, and calls do not go on without it. */
export const hookFailed = (retryAfterSeconds: number): CallRefusal =>
  refused(503, 'Service Unavailable', 'hook_failed', { 'Retry-After': String(retryAfterSeconds) })
