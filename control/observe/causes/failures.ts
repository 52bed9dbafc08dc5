/**
 * The failures of a period: calls by disposition, and failed requests of the API by route and key.
 */
import { sql } from 'kysely'
import { z } from 'zod'
import { DAY_MS, HOUR_MS } from '../../../schema/clock.ts'
import { moneyToDecimal, timeToText } from '../../../schema/columns.ts'
import type { Store } from '../../../schema/storage/store.ts'
import { all, first, readApart } from '../../../schema/sql/query.ts'
import type { Principal } from '../../auth/principal.ts'
import { plural } from '../../http/clean-text.ts'
import { count, moment } from '../../http/view-fields.ts'
import type { HistoryQuery } from './state-history.ts'
import { inTurn } from '../../reports/searches.ts'
import { callSums, type SumsReader } from '../../reports/call-sums.ts'

export const failuresView = z.strictObject({
  start: moment,
  end: moment,
  calls: z.strictObject({
    total: count,
    answered: count,
    failed: count.describe('Not answered, and not refused by the platform.'),
    refused: z.record(z.string(), count).describe('By denial_code.'),
  }),
  api_requests: z.strictObject({ total: count, failed: count }).describe('Of keys, whole hours.'),
  api_failures: z
    .array(
      z.strictObject({
        route: z.string(),
        code: z.string().describe('The code of the error, or its status.'),
        key: z
          .string()
          .nullable()
          .describe('Uuid. Null: no key, or one that the credential may not see.'),
        requests: count,
        first_at: moment,
        last_at: moment,
      }),
    )
    .describe('Most frequent first; whole hours.'),
  api_failures_total: count.describe('Of this period, listed or not.'),
  complete: z
    .boolean()
    .describe(
      'False: only the most frequent are listed. Raise limit, or ask for a shorter period.',
    ),
})

export interface FailuresReader extends SumsReader {
  /** The only SIP domain whose keys are meant; null: all. */
  readonly domain: string | null
  /** Whether the credential may read keys and calls. */
  readonly maySeeKeys: boolean
  readonly maySeeCalls: boolean
}

/** Limits the reader to the rows that this credential may see. */
export const failuresReader = (
  { store, pause }: Pick<SumsReader, 'store' | 'pause'>,
  { tenantId, domain, isOnlyDomain, scopes }: Principal,
): FailuresReader => ({
  store,
  pause,
  tenantId,
  domain,
  maySeeKeys: scopes.has('keys:read'),
  maySeeCalls: (domain === null || isOnlyDomain === true) && scopes.has('cdrs:read'),
})

type Failures = z.output<typeof failuresView>

export const failuresIn = (reader: FailuresReader, period: HistoryQuery): Promise<Failures> =>
  readApart(reader.store, reader.tenantId, () => countFailures(reader, period))

async function countFailures(reader: FailuresReader, period: HistoryQuery): Promise<Failures> {
  const { from, before, limit } = period
  const sums = reader.maySeeCalls ? await inTurn(reader, () => callSums(reader, from, before)) : []
  const refused: Record<string, number> = {}
  const calls = { total: 0, answered: 0, failed: 0 }
  for (const { denial, answered, ...sum } of sums) {
    const unanswered = sum.calls - answered
    calls.total += sum.calls
    calls.answered += answered
    if (denial === null) calls.failed += unanswered
    else if (unanswered > 0) refused[denial] = (refused[denial] ?? 0) + unanswered
  }
  const totals = await totalsOf(reader, period)
  const failures = await failuresOf(reader, period, limit)
  return {
    start: timeToText(from),
    end: timeToText(before),
    calls: { ...calls, refused },
    api_requests: totals,
    api_failures: failures.map(({ route, code, uuid, requests, firstAt, lastAt }) => ({
      route,
      code,
      key: reader.maySeeKeys ? uuid : null,
      requests,
      first_at: timeToText(firstAt),
      last_at: timeToText(lastAt),
    })),
    ...endOf(failures),
  }
}

const endOf = (listed: readonly { readonly total: number }[]) => {
  const total = listed[0]?.total ?? 0
  return { api_failures_total: total, complete: listed.length === total }
}

/** The hours of requests; for a tenant, those of its keys. */
const hoursIn = ({ store, tenantId, domain }: FailuresReader, { from, before }: HistoryQuery) =>
  store.db
    .selectFrom('api_hour')
    .leftJoin('application_key', 'application_key.id', 'api_hour.application_key_id')
    .where('hour', '>=', Math.floor(from / HOUR_MS))
    .where('hour', '<', Math.ceil(before / HOUR_MS))
    .$if(tenantId !== null, (own) => own.where('application_key.tenant_id', '=', tenantId))
    .$if(domain !== null, (own) => own.where('application_key.domain', '=', domain))

async function totalsOf(reader: FailuresReader, period: HistoryQuery) {
  const query = hoursIn(reader, period)
    .select([
      sql<number>`CAST(coalesce(sum(requests), 0) AS bigint)`.as('total'),
      sql<number>`CAST(coalesce(sum(CASE WHEN outcome = '' THEN 0 ELSE requests END), 0) AS bigint)`.as(
        'failed',
      ),
    ])
    // Requests without a key are counted only when they fail.
    .where('application_key_id', '<>', 0)
  const [row] = await all(reader.store, query)
  return row ?? { total: 0, failed: 0 }
}

/** How many groups there are, whatever the limit. */
export const groupCount = sql<number>`CAST(count(*) OVER () AS bigint)`.as('total')

function failuresOf(reader: FailuresReader, period: HistoryQuery, limit: number) {
  const query = hoursIn(reader, period)
    .select(['route', 'outcome as code', 'application_key.uuid'])
    .select([
      sql<number>`CAST(sum(requests) AS bigint)`.as('requests'),
      sql<number>`min(first_at)`.as('firstAt'),
      sql<number>`max(last_at)`.as('lastAt'),
      groupCount,
    ])
    .where('outcome', '<>', '')
    .groupBy(['route', 'outcome', 'application_key.uuid'])
    .orderBy('requests', 'desc')
    .limit(limit)
  return all(reader.store, query)
}

/** The unusual properties of a call, against the calls of its customer in the 14 days before. */
const PAST_DAYS = 14
/** The newest ones: about 4 ms. */
const MAX_PAST = 2_000
/** Fewer calls are not compared. */
const MIN_PAST = 10
/** Times the mean of the calls that cost something, and one unit of the currency at least. */
const DEAR_FACTOR = 5
const DEAR_MICROS = 1_000_000

interface ComparedCall {
  readonly source_address: string
  readonly caller_id_number: string
  readonly rate_prefix: string | null
  readonly cost_micros: number
}

export interface PaidCall extends ComparedCall {
  readonly start_stamp: number
  readonly customer_id: number | null
}

/** Empty: nothing, or there is too little to compare it with. */
export async function unusualAbout(
  { store, tenantId }: { readonly store: Store; readonly tenantId: number | null },
  call: PaidCall,
): Promise<{ readonly signs: readonly string[]; readonly compared: number }> {
  const { customer_id: customerId, start_stamp: start } = call
  if (customerId === null) return { signs: [], compared: 0 }
  const some = store.db
    .selectFrom('cdr')
    .select(['source_address', 'caller_id_number', 'rate_prefix', 'cost_micros'])
    .where('customer_id', '=', customerId)
    .where('start_stamp', '>=', start - PAST_DAYS * DAY_MS)
    .where('start_stamp', '<', start)
    .$if(tenantId !== null, (own) => own.where('tenant_id', '=', tenantId))
    .orderBy('start_stamp', 'desc')
    .limit(MAX_PAST)
    .as('some')
  const query = store.db.selectFrom(some).select((row) => {
    const like = (name: 'source_address' | 'caller_id_number' | 'rate_prefix') =>
      row.fn.countAll<number>().filterWhere(name, '=', call[name]).as(name)
    return [
      row.fn.countAll<number>().as('calls'),
      like('source_address'),
      like('caller_id_number'),
      like('rate_prefix'),
      row.fn.countAll<number>().filterWhere('cost_micros', '>', 0).as('charged'),
      sql<number>`CAST(coalesce(sum(cost_micros) FILTER (WHERE cost_micros > 0), 0) AS double precision)`.as(
        'costMicros',
      ),
    ]
  })
  const past = await first(store, query)
  return past === undefined
    ? { signs: [], compared: 0 }
    : { signs: signsOf(call, past), compared: past.calls }
}

/** How many calls had the same, and what those that cost something came to. */
interface PastCounts {
  readonly calls: number
  readonly source_address: number
  readonly caller_id_number: number
  readonly rate_prefix: number
  readonly charged: number
  readonly costMicros: number
}

/** Pure. */
function signsOf(call: ComparedCall, past: PastCounts): readonly string[] {
  if (past.calls < MIN_PAST) return []
  const of = `of the customer's last ${plural(past.calls, 'call')} in ${PAST_DAYS} days`
  const mean = past.costMicros / Math.max(1, past.charged)
  const isDear = call.cost_micros >= DEAR_MICROS && call.cost_micros >= mean * DEAR_FACTOR
  return [
    past.source_address === 0 ? `None ${of} came from ${call.source_address}.` : '',
    past.caller_id_number === 0 ? `None ${of} had this caller.` : '',
    call.rate_prefix !== null && past.rate_prefix === 0
      ? `None ${of} went to prefix ${call.rate_prefix}.`
      : '',
    isDear && past.charged > 0
      ? `It cost ${moneyToDecimal(call.cost_micros)}; the mean ${of} is ${moneyToDecimal(Math.round(mean))}.`
      : '',
  ].filter((sign) => sign !== '')
}
