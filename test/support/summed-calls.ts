/** Call records at random, what is asked of them, and the answers counted one by one. */
import type { Insertable } from 'kysely'
import { openSums, type CallSources } from '../../control/reports/call-filters.ts'
import { rollUp } from '../../control/reports/roll-up.ts'
import { type Summary, summaryOf } from '../../control/reports/summary.ts'
import {
  type SummaryGrouping,
  summaryGroupings,
  type SummaryRequest,
} from '../../control/reports/summarize.ts'
import type { Store } from '../../schema/storage/store.ts'
import { execute } from '../../schema/sql/query.ts'
import type { CdrTable } from '../../schema/tables/calls.ts'

export type StoredRecord = Insertable<CdrTable>

export const DAY = 86_400_000
/** 2026-11-01T00:00:00Z. */
export const firstDay = Date.UTC(2026, 10, 1)

/** The sums of an SQLite database are in memory. */
export const placeOf = (store: Store): CallSources => ({
  store,
  sums: store.statements.isShared ? store : openSums(':memory:'),
  steadyNow: () => 0,
})

export const summarizeAt = (place: CallSources, asked: Partial<SummaryRequest>): Promise<Summary> =>
  resultOf(
    summaryOf(place, {
      tenantId: null,
      from: firstDay,
      before: firstDay + 5 * DAY,
      groupBy: 'customer',
      filters: {},
      orderBy: 'count',
      limit: 200,
      ...asked,
    }),
  )

/** Resolves with how many records the sums lack then. */
export const rollUpAt = async (
  place: CallSources,
  now = firstDay,
  retainedFrom?: number,
): Promise<number> => (await resultOf(rollUp(place, { now, retainedFrom }))).behind

export async function resultOf<T>(work: AsyncGenerator<void, T, undefined>): Promise<T> {
  let step = await work.next()
  while (step.done !== true) step = await work.next()
  return step.value
}

export const storeRecords = async (
  { store }: Pick<CallSources, 'store'>,
  records: readonly StoredRecord[],
): Promise<unknown> => execute(store, store.db.insertInto('cdr').values(records))

let calls = 0

/** A call of the first day, with these columns different. */
export function aRecord(columns: Partial<StoredRecord> = {}): StoredRecord {
  calls += 1
  const { start_stamp = firstDay } = columns
  return {
    call_uuid: `call-${calls}`,
    call_id: `${calls}@caller`,
    direction: 'inbound',
    caller_id_number: '4930100',
    caller_id_name: null,
    destination_number: '4940200',
    answer_stamp: null,
    end_stamp: start_stamp + 1_000,
    start_stamp,
    post_dial_delay_ms: null,
    duration: 1,
    billsec: 0,
    disposition: 'FAILED',
    sip_code: 503,
    hangup_cause: 'NONE',
    hangup_by: 'system',
    denial_code: null,
    attempts: '[]',
    node: null,
    carrier: null,
    tenant_id: null,
    customer_id: null,
    currency: null,
    cost_micros: 0,
    source_address: '192.0.2.1',
    ...columns,
  }
}

export function randomRecord(random: () => number): StoredRecord {
  const below = (count: number): number => Math.floor(random() * count)
  const one = <T>(...values: readonly T[]): T => values[below(values.length)] as T
  const customer = one(null, 1, 2, 3, 4)
  const isAnswered = random() < 0.5
  const isPaid = isAnswered && customer !== null
  return aRecord({
    start_stamp: firstDay + below(5 * DAY),
    tenant_id: customer === null ? one(null, 1) : customer < 3 ? 1 : 2,
    customer_id: customer,
    caller_id_number: `49301${below(12)}`,
    destination_number: one('+1900555', '4930', '110', '+4990012', 'alice') + below(5),
    direction: one('inbound', 'outbound'),
    disposition: isAnswered ? 'ANSWERED' : one('FAILED', 'BUSY', 'NO ANSWER', 'CONGESTION'),
    denial_code: random() < 0.2 ? one('no_rate', 'insufficient_funds') : null,
    billsec: isAnswered ? 1 + below(600) : 0,
    cost_micros: isPaid ? one(0, 10_000, 16_500_000) : 0,
    currency: isPaid ? one('USD', 'USD', 'EUR') : null,
    post_dial_delay_ms: one(null, 100, 250),
    node: one(null, 'sip:10.0.0.1:5060;transport=udp', 'sip:10.0.0.2:5060;transport=udp'),
    carrier: one(null, 'telco', 'backup'),
  })
}

export function randomRequest(random: () => number): SummaryRequest {
  const below = (count: number): number => Math.floor(random() * count)
  const one = <T>(...values: readonly T[]): T => values[below(values.length)] as T
  const moments = [0, 1, 2, 3, 4, 5, random() * 5, random() * 5].map((days) => days * DAY)
  const [from = 0, before = 0] = [one(...moments), one(...moments)].toSorted((a, b) => a - b)
  const maybe = <T>(...values: readonly T[]): T | undefined =>
    random() < 0.08 ? one(...values) : undefined
  const members = {
    caller: maybe('493011', '+493012'),
    callee_prefix: maybe('1', '4930', '1900555', '49900'),
    node: maybe('10.0.0.1', '10.0.0.2:5060'),
    carrier: maybe('telco', 'none'),
    denial_code: maybe('no_rate'),
  }
  return {
    tenantId: one(null, null, 1, 2),
    from: firstDay + Math.floor(from),
    before: firstDay + Math.floor(before),
    groupBy: one(...summaryGroupings),
    // In New York the first day has 25 hours.
    zone: one(undefined, undefined, 'Asia/Kolkata', 'America/New_York'),
    filters: {
      customerId: maybe(1, 3),
      members: Object.fromEntries(Object.entries(members).filter(([, value]) => value)),
      direction: random() < 0.05 ? 'outbound' : undefined,
      disposition: random() < 0.05 ? 'BUSY' : undefined,
    },
    orderBy: one('cost', 'count', 'asr'),
    limit: 200,
  }
}

type GroupOfRecord = (record: StoredRecord, zone: string) => string

const groupOf: Readonly<Record<SummaryGrouping, GroupOfRecord>> = {
  customer: ({ customer_id: id }) => String(id ?? ''),
  tenant: ({ tenant_id: id }) => String(id ?? ''),
  caller: ({ caller_id_number: number }) => number,
  callee_prefix: ({ destination_number: number }) => number.replace(/^\++/, '').slice(0, 4),
  node: ({ node }) => node ?? '',
  carrier: ({ carrier }) => carrier ?? '',
  denial_code: ({ denial_code: code }) => code ?? '',
  minute: ({ start_stamp: at }) => new Date(at - (at % 60_000)).toISOString(),
  hour: ({ start_stamp: at }, timeZone) => {
    // On the clock of the zone.
    const minute = Number(
      new Intl.DateTimeFormat('sv-SE', { timeZone, minute: '2-digit' }).format(at),
    )
    return new Date(at - (at % 60_000) - minute * 60_000).toISOString()
  },
  day: ({ start_stamp: at }, timeZone) =>
    new Intl.DateTimeFormat('sv-SE', { timeZone, dateStyle: 'short' }).format(at),
}

/** The sums of the records that match, group by group. */
export function counted(records: readonly StoredRecord[], asked: SummaryRequest) {
  const groups = new Map<string, StoredRecord[]>()
  for (const record of records) {
    if (!isMeant(record, asked)) continue
    const name = groupOf[asked.groupBy](record, asked.zone ?? 'UTC')
    groups.set(name, [...(groups.get(name) ?? []), record])
  }
  return new Map([...groups].map(([name, members]) => [name, figuresOf(members)]))
}

function isMeant(record: StoredRecord, { tenantId, from, before, filters }: SummaryRequest) {
  const { customerId, direction, disposition, members = {} } = filters
  const { caller, callee_prefix: prefix, node, carrier, denial_code: code } = members
  const callee = record.destination_number.replace(/^\++/, '')
  return (
    record.start_stamp >= from &&
    record.start_stamp < before &&
    (tenantId === null || record.tenant_id === tenantId) &&
    (customerId === undefined || record.customer_id === customerId) &&
    (direction === undefined || record.direction === direction) &&
    (disposition === undefined || record.disposition === disposition) &&
    (caller === undefined || record.caller_id_number === caller.replace('+', '')) &&
    (prefix === undefined || callee.startsWith(prefix)) &&
    (node === undefined || record.node?.includes(node) === true) &&
    (carrier === undefined || record.carrier === carrier) &&
    (code === undefined || record.denial_code === code)
  )
}

function figuresOf(records: readonly StoredRecord[]) {
  const count = (is: (record: StoredRecord) => boolean): number => records.filter(is).length
  const isAnswered = ({ disposition }: StoredRecord): boolean => disposition === 'ANSWERED'
  const costs = new Map<string, bigint>()
  for (const { currency, cost_micros: cost = 0 } of records)
    if (currency != null) costs.set(currency, (costs.get(currency) ?? 0n) + BigInt(cost))
  const delays = records.flatMap(({ post_dial_delay_ms: ms }) => ms ?? [])
  const starts = records.map(({ start_stamp: at }) => at)
  return {
    calls: records.length,
    answered: count(isAnswered),
    denied: count((record) => !isAnswered(record) && record.denial_code != null),
    failed: count(
      ({ disposition, denial_code: code }) =>
        code == null && (disposition === 'FAILED' || disposition === 'CONGESTION'),
    ),
    billsec: records.reduce((sum, { billsec }) => sum + billsec, 0),
    cost: Object.fromEntries([...costs].map(([currency, cost]) => [currency, amountOf(cost)])),
    mean_pdd_ms: delays.length === 0 ? null : Math.round(sumOf(delays) / delays.length),
    first_call: new Date(Math.min(...starts)).toISOString(),
    last_call: new Date(Math.max(...starts)).toISOString(),
  }
}

const sumOf = (values: readonly number[]): number => values.reduce((sum, value) => sum + value, 0)

/** The amount with two decimals: all costs are whole cents. */
const amountOf = (micros: bigint): string => (Number(micros / 10_000n) / 100).toFixed(2)
