/** A call record as reports show it: the fields of SPECIFICATION.md §2.4, then those of §12.3. */
import type { CallTags, PresentedCaller, SentNumbers } from '../../schema/contracts/call-record.ts'
import { storedDenialText } from '../../schema/contracts/denials.ts'
import { moneyToDecimal, moneyToNumber, timeToText } from '../../schema/columns.ts'
import type { MediaQuality } from '../../schema/records/stored-record.ts'
import { carrierCostView } from './carrier-cost-view.ts'
import type { CdrRow, RecordingView } from './cdr-store.ts'
import { rateView } from './rate-view.ts'
import { timeOrNull } from '../http/view-fields.ts'

export function viewOf(row: CdrRow) {
  return {
    call_uuid: row.call_uuid,
    caller_id_number: row.caller_id_number,
    destination_number: row.destination_number,
    start_stamp: timeToText(row.start_stamp),
    billsec: row.billsec,
    disposition: row.disposition,
    mos_score: row.mos_score,
    cost: row.cost_micros === null ? null : moneyToNumber(row.cost_micros),
    cost_exact: row.cost_micros === null ? null : moneyToDecimal(row.cost_micros),
    currency: row.currency,
    answer_stamp: timeOrNull(row.answer_stamp),
    end_stamp: timeToText(row.end_stamp),
    duration: row.duration,
    post_dial_delay_ms: row.post_dial_delay_ms,
    sip_code: row.sip_code,
    hangup_cause: row.hangup_cause,
    hangup_by: row.hangup_by,
    denial_code: row.denial_code,
    direction: row.direction,
    set_id: row.set_id,
    node: row.node,
    instance: row.instance,
    carrier: row.carrier,
    attempts: attemptsOf(row.attempts),
    jitter_ms: row.jitter_ms,
    packet_loss_pct: row.packet_loss_pct,
    customer_id: row.customer_id,
    tenant_slug: row.tenant_slug,
    call_id: row.call_id,
    recovered: row.is_recovered === 1,
    unauthorized_by_ocs: row.is_unauthorized_by_ocs === 1,
    mos_source: row.mos_source,
    // Only `insertCallRecord` writes it.
    media_quality:
      row.media_quality === null ? null : (JSON.parse(row.media_quality) as MediaQuality),
    recording: row.recording === null ? null : (JSON.parse(row.recording) as RecordingView),
    recording_error: row.recording_error,
    denial_text: storedDenialText(row.denial_code, row.denial_text),
    tags: row.tags === null ? null : (JSON.parse(row.tags) as CallTags),
    verification: row.verification,
    verstat: row.verstat,
    attestation: row.attestation,
    ...carrierCostView(row),
    customer_name: row.customer_name,
    ...rateView(row),
    number_dialled: row.number_dialled,
    ...sentOfLast(row.attempts),
  }
}

export type CdrView = ReturnType<typeof viewOf>

interface StoredAttempt {
  readonly destination: string
  readonly status: number
  readonly reason: string
  readonly startedAt: number
  readonly endedAt: number
  readonly presented?: PresentedCaller
  readonly sent?: SentNumbers
}

interface AttemptView {
  readonly destination: string
  readonly status: number
  readonly reason: string
  readonly presented?: PresentedCaller | undefined
  readonly sent?: SentNumbers | undefined
  readonly start_stamp: string
  readonly end_stamp: string
}

/** Only `insertCallRecord` writes them. */
const attemptsOf = (json: string) =>
  (JSON.parse(json) as StoredAttempt[]).map(
    ({ destination, status, reason, presented, sent, startedAt, endedAt }): AttemptView => ({
      destination,
      status,
      reason,
      ...(presented && { presented }),
      ...(sent && { sent }),
      start_stamp: timeToText(startedAt),
      end_stamp: timeToText(endedAt),
    }),
  )

function sentOfLast(json: string) {
  const sent = (JSON.parse(json) as StoredAttempt[]).findLast((each) => each.sent !== undefined)
  return { number_sent: sent?.sent?.called ?? null, caller_sent: sent?.sent?.caller ?? null }
}
