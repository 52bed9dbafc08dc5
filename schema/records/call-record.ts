/**
 * Call records: the record of an ended call, its stored form, and windows in which records are
 * read.
 */
import { sql } from 'kysely'
import { toFlag } from '../columns.ts'
import type {
  CallQuality,
  Direction,
  Disposition,
  HangupParty,
  MosSource,
  StreamQuality,
} from '../contracts/field-values.ts'
import type { Store } from '../sqlite/open.ts'
import { first, prepare } from '../sql/query.ts'
import type { CdrTable, RefusedCallsTable } from '../tables/calls.ts'

/**
 * One destination that was tried. Times in milliseconds UTC; status 0 when there was no response.
 */
export interface Attempt {
  readonly destination: string
  readonly status: number
  readonly reason: string
  readonly startedAt: number
  readonly endedAt: number
}

/** The money that a refused call needed, and the money that there was. Neither is charged. */
export interface MoneyLack {
  /** The cost of its first second, with connect fee and first increment. */
  readonly requiredMicros: number
  /**
   * Available in the wallet with its credit, or within the limit of the day. Negative: a debt.
   * Rounded beyond 2^53.
   */
  readonly availableMicros: number
}

/** The record of an ended call (CDR); `cdr` is its stored form. */
export interface CallRecord {
  readonly callUuid: string
  readonly callId: string
  readonly direction: Direction
  readonly callerNumber: string
  readonly callerName: string | null
  readonly calledNumber: string
  readonly startedAt: number
  readonly answeredAt: number | null
  readonly endedAt: number
  readonly postDialDelayMs: number | null
  /** Charged whole seconds (`billedSeconds`); 0 when not answered. */
  readonly billsec: number
  readonly disposition: Disposition
  readonly sipCode: number
  readonly hangupCause: string
  readonly hangupBy: HangupParty
  readonly denialCode: string | null
  /** The sentence of `denialCode`; absent: the record has only the code. */
  readonly denialText?: string | undefined
  readonly setId: number | null
  readonly node: string | null
  /**
   * The node of Tollgate that had the call. Absent: an earlier version began it, or another system
   * reported it.
   */
  readonly instance?: string | undefined
  readonly carrier: string | null
  readonly attempts: readonly Attempt[]
  /** Who may see it: the tenant of the payer, else of the source, else of the destination. */
  readonly tenantId: number | null
  /**
   * The payer is the platform's: the tenant does not see the price. Not stored: the customer says
   * it.
   */
  readonly isPaidByPlatform?: true
  readonly customerId: number | null
  readonly ratePrefix: string | null
  readonly currency: string | null
  readonly sourceAddress: string
  readonly isRecovered: boolean
  readonly isUnauthorizedByOcs: boolean
  /** An emergency call, or a call within a tenant: not authorized and not charged. Not stored. */
  readonly isFree?: boolean
  /** Absent: it was not refused for money. A crash before it is stored loses it. */
  readonly lack?: MoneyLack | undefined
  /** The quality of its media; absent: unknown. */
  readonly quality?: CallQuality | undefined
}

/**
 * Returns the charged seconds of an answered call: rounded up to whole seconds, and at least one,
 * so that connect fee and first increment are always due (SPECIFICATION.md §13.1).
 */
export const billedSeconds = (talkedMs: number): number => Math.max(1, Math.ceil(talkedMs / 1_000))

/** Cost and currency of a call; null when it is not charged. */
export interface CallCost {
  readonly costMicros: number
  readonly currency: string | null
}

/** Columns whose values are known when the call ends. */
type CdrColumns = Omit<CdrTable, 'id' | 'recording_error' | Flags>
type Flags = 'is_recovered' | 'is_unauthorized_by_ocs'
type CdrValues = CdrColumns & Record<Flags, 0 | 1>

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

/**
 * Records of a period, newest first, in windows of a bounded number: each is a statement of some
 * milliseconds.
 */
type Readable = Pick<Store, 'db' | 'statements'>

/** Selects the index by which records are read. */
export interface WindowScope {
  readonly tenantId: number | null
  readonly customerId: number | undefined
}

/** A range of starts of calls; `before` is exclusive. */
export interface Window {
  readonly from: number
  readonly before: number
}

/** Records of a window in the thread of reports: about 15 ms. */
const WINDOW = 10_000

export async function* windows(
  store: Readable,
  scope: WindowScope,
  { from, before }: Window,
  records = WINDOW,
): AsyncGenerator<Window, void, undefined> {
  for (let end = before; end > from;) {
    const start = await startOf(store, scope, { from, before: end }, records)
    yield { from: start, before: end }
    end = start
  }
}

/**
 * The start of the last of so many records from the end; records of one millisecond stay together.
 */
async function startOf(
  store: Readable,
  { tenantId, customerId }: WindowScope,
  { from, before }: Window,
  records: number,
): Promise<number> {
  let query = store.db
    .selectFrom('cdr')
    .select('start_stamp')
    .where('start_stamp', '>=', from)
    .where('start_stamp', '<', before)
    .orderBy('start_stamp', 'desc')
    .limit(1)
    .offset(records - 1)
  if (customerId !== undefined) query = query.where('customer_id', '=', customerId)
  if (tenantId !== null)
    query =
      customerId === undefined
        ? query.where('tenant_id', '=', tenantId)
        : query.where(sql<boolean>`+tenant_id = ${tenantId}`)
  return (await first(store, query))?.start_stamp ?? from
}

/** Adds to the counter of that minute, to which several nodes may add. */
export function addRefusedCalls(
  store: Store,
): (row: Readonly<RefusedCallsTable>) => Promise<unknown> {
  const add = prepare<RefusedCallsTable, unknown>(store, (db, param) =>
    db
      .insertInto('refused_calls')
      .values({ minute: param('minute'), reason: param('reason'), calls: param('calls') })
      .onConflict((conflict) =>
        conflict.columns(['minute', 'reason']).doUpdateSet((row) => ({
          calls: row('refused_calls.calls', '+', row.ref('excluded.calls')),
        })),
      ),
  )
  return ({ minute, reason, calls }) => add.run({ minute, reason, calls })
}

/**
 * A UUID of version 7 (RFC 9562 §5.7): it begins with the time, so that the indexes of calls grow
 * at their end. With random ones each record changed a page of its own in two indexes.
 *
 * @param random a UUID of version 4, from which the rest is taken.
 * @param now milliseconds UTC.
 */
export function timeOrderedUuid(random: string, now: number): string {
  const time = now.toString(16).padStart(12, '0')
  return `${time.slice(0, 8)}-${time.slice(8)}-7${random.slice(15)}`
}
