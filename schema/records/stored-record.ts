/** The record of an ended call as it is stored. */
import { toFlag } from '../columns.ts'
import type { CallQuality, MosSource, StreamQuality } from '../contracts/field-values.ts'
import type { CdrTable } from '../tables/calls.ts'
import type { CallRecord, CallCost } from '../contracts/call-record.ts'
import { ratedText } from './rated-by.ts'

/** Columns whose values are known when the call ends. */
type CdrColumns = Omit<CdrTable, 'id' | 'recording_error' | Flags | Evidence>
type Flags = 'is_recovered' | 'is_unauthorized_by_ocs'
type Evidence = 'rated' | 'number_dialled'
type CdrValues = CdrColumns & Record<Flags, 0 | 1> & Record<Evidence, string | null>

export const cdrColumns = [
  'call_uuid',
  'call_id',
  'direction',
  'caller_id_number',
  'caller_id_name',
  'destination_number',
  'start_stamp',
  'answer_stamp',
  'end_stamp',
  'post_dial_delay_ms',
  'duration',
  'billsec',
  'disposition',
  'sip_code',
  'hangup_cause',
  'hangup_by',
  'denial_code',
  'set_id',
  'node',
  'carrier',
  'attempts',
  'tenant_id',
  'customer_id',
  'rate_prefix',
  'cost_micros',
  'currency',
  'source_address',
  'mos_score',
  'mos_source',
  'jitter_ms',
  'packet_loss_pct',
  'media_quality',
  'is_recovered',
  'is_unauthorized_by_ocs',
  'required_micros',
  'available_micros',
  'denial_text',
  'instance',
  'tags',
  'verification',
  'verstat',
  'attestation',
  'carrier_cost_micros',
  'carrier_prefix',
  'carrier_currency',
  'carrier_tenant_id',
  'carrier_number',
  'rated',
  'number_dialled',
] as const satisfies readonly (keyof CdrValues)[]

/** The row of a record. */
export function toColumns(record: CallRecord, cost: CallCost): CdrValues {
  const { quality } = record
  const worst = worstOf(quality)
  return {
    call_uuid: record.callUuid,
    call_id: record.callId,
    direction: record.direction,
    caller_id_number: record.callerNumber,
    caller_id_name: record.callerName,
    destination_number: record.calledNumber,
    start_stamp: record.startedAt,
    answer_stamp: record.answeredAt,
    end_stamp: record.endedAt,
    post_dial_delay_ms: record.postDialDelayMs,
    // Never shorter than the charged time.
    duration: Math.max(record.billsec, Math.ceil((record.endedAt - record.startedAt) / 1_000)),
    billsec: record.billsec,
    disposition: record.disposition,
    sip_code: record.sipCode,
    hangup_cause: record.hangupCause,
    hangup_by: record.hangupBy,
    denial_code: record.denialCode,
    set_id: record.setId,
    node: record.node,
    carrier: record.carrier,
    attempts: record.attempts.length === 0 ? '[]' : JSON.stringify(record.attempts),
    tenant_id: record.tenantId,
    customer_id: record.customerId,
    rate_prefix: record.ratePrefix,
    cost_micros: cost.costMicros,
    currency: cost.currency,
    source_address: record.sourceAddress,
    mos_score: worst.mos_score,
    mos_source: worst.mos_source,
    jitter_ms: worst.jitter_ms,
    packet_loss_pct: worst.packet_loss_pct,
    media_quality: quality === undefined ? null : JSON.stringify(bothDirections(quality)),
    is_recovered: toFlag(record.isRecovered),
    is_unauthorized_by_ocs: toFlag(record.isUnauthorizedByOcs),
    required_micros: record.lack?.requiredMicros ?? null,
    available_micros: record.lack?.availableMicros ?? null,
    denial_text: record.denialText ?? null,
    instance: record.instance ?? null,
    tags: record.tags === undefined ? null : JSON.stringify(record.tags),
    verification: record.verification ?? null,
    verstat: record.verstat ?? null,
    attestation: record.attestation ?? null,
    carrier_cost_micros: record.carrierCost?.costMicros ?? null,
    carrier_prefix: record.carrierCost?.prefix ?? null,
    carrier_currency: record.carrierCost?.currency ?? null,
    carrier_tenant_id: record.carrierCost?.tenantId ?? null,
    carrier_number: record.carrierCost?.number ?? null,
    rated: cost.tariff ? ratedText(cost.tariff) : null,
    number_dialled: record.dialledNumber ?? null,
  }
}

/** The quality of a call as its record has it, in the API's spelling. */
export interface QualityColumns {
  /** The lower one of both directions. */
  readonly mos_score: number | null
  /** The source of that score. */
  readonly mos_source: MosSource | null
  /** The higher ones. */
  readonly jitter_ms: number | null
  readonly packet_loss_pct: number | null
}

const unknown: QualityColumns = {
  mos_score: null,
  mos_source: null,
  jitter_ms: null,
  packet_loss_pct: null,
}

export function worstOf(quality: CallQuality | undefined): QualityColumns {
  if (quality === undefined) return unknown
  const { caller, callee } = quality
  const lower = [caller, callee].reduce((worst, each) => {
    if (each?.mos === null || each === null) return worst
    return worst?.mos === undefined || worst.mos === null || each.mos < worst.mos ? each : worst
  }, null)
  return {
    mos_score: lower?.mos ?? null,
    mos_source: lower?.mosSource ?? null,
    jitter_ms: highest(caller?.jitterMs, callee?.jitterMs),
    packet_loss_pct: highest(caller?.packetLossPct, callee?.packetLossPct),
  }
}

function highest(...values: readonly (number | null | undefined)[]): number | null {
  const known = values.filter((value) => typeof value === 'number')
  return known.length === 0 ? null : Math.max(...known)
}

/** The quality of both parties' media, in the API's spelling. */
export const bothDirections = ({ caller, callee }: CallQuality) => ({
  caller: caller && direction(caller),
  callee: callee && direction(callee),
})

export type MediaQuality = ReturnType<typeof bothDirections>

const direction = (stream: StreamQuality) => ({
  mos: stream.mos,
  mos_source: stream.mosSource,
  jitter_ms: stream.jitterMs,
  packet_loss_pct: stream.packetLossPct,
  round_trip_ms: stream.roundTripMs,
  packets: stream.packets,
})
