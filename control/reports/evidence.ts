/** Some calls of a finding, out of the records: through an index, and so many at most. */
import { MINUTE_MS } from '../../schema/clock.ts'
import { sql } from 'kysely'
import { all, includes } from '../../schema/sql/query.ts'
import type { Window } from '../../schema/records/record-windows.ts'
import type { RecordsReader } from './call-sums.ts'
import type { RefusalFinding } from './findings.ts'
import { hasOwnPrice } from './own-prices.ts'

/** The most records that are read to find a few samples. */
const MAX_EXAMINED = 5_000
/** The last minute of refused calls that are counted by minute. */

export interface Sample {
  readonly call_uuid: string
  readonly caller: string
  readonly callee: string
  readonly source: string
  readonly carrier: string | null
  readonly start: number
  readonly required: number | null
  readonly available: number | null
}

export interface SampleFilter {
  readonly customerId: number | null
  readonly prefix?: string | null
  readonly denial?: string
  readonly carrier?: string
  readonly setId?: number
  /** Only calls that cost something. */
  readonly isCharged?: boolean
  readonly isUnanswered?: boolean
  /** Only calls with an INVITE to this destination. */
  readonly tried?: string
}

/** Calls from `from` on, oldest first, with these values. */
export function samplesOf(
  { store, tenantId }: RecordsReader,
  { from, before }: Window,
  { customerId, prefix, denial, tried, carrier, setId, ...only }: SampleFilter,
  limit: number,
): Promise<readonly Sample[]> {
  const some = store.db
    .selectFrom('cdr')
    .select(['call_uuid', 'caller_id_number as caller', 'destination_number as callee'])
    .select(['source_address as source', 'carrier', 'start_stamp as start'])
    .select(['rate_prefix', 'denial_code', 'cost_micros', 'disposition', 'set_id'])
    .select([
      moneyFor(tenantId, 'required_micros').as('required'),
      moneyFor(tenantId, 'available_micros').as('available'),
    ])
    .$if(tried !== undefined, (own) => own.select('attempts'))
    .where('start_stamp', '>=', from)
    .where('start_stamp', '<', before)
    .$if(tenantId !== null, (own) => own.where('tenant_id', '=', tenantId))
    .$if(customerId !== null, (own) => own.where('customer_id', '=', customerId))
    .orderBy('start_stamp')
    .limit(MAX_EXAMINED)
    .as('some')
  const query = store.db
    .selectFrom(some)
    .select(['call_uuid', 'caller', 'callee', 'source', 'carrier', 'start'])
    .select(['required', 'available'])
    .$if(prefix != null, (own) => own.where('rate_prefix', '=', prefix ?? ''))
    .$if(only.isCharged === true, (own) => own.where('cost_micros', '>', 0))
    .$if(only.isUnanswered === true, (own) => own.where('disposition', '<>', 'ANSWERED'))
    .$if(carrier !== undefined, (own) => own.where('carrier', '=', carrier ?? ''))
    .$if(setId !== undefined, (own) => own.where('set_id', '=', setId ?? 0))
    .$if(tried !== undefined, (own) =>
      own.where(() => includes(sql`attempts`, JSON.stringify(tried ?? ''))),
    )
    .$if(denial !== undefined, (own) => own.where('denial_code', '=', denial ?? ''))
    .orderBy('start')
    .limit(limit)
  return all(store, query)
}

/** A column for a reader of this tenant; null: of all tenants. */
const moneyFor = (tenantId: number | null, column: 'required_micros' | 'available_micros') =>
  tenantId === null
    ? sql<number | null>`${sql.ref(column)}`
    : sql<number | null>`CASE WHEN ${hasOwnPrice} THEN ${sql.ref(column)} END`

export interface CallGroup {
  /** First digits of the called number; empty where calls are grouped by where they came from. */
  readonly start: string
  readonly source: string
  readonly carrier: string | null
  /** The dispatcher set, of calls for which its nodes had no room. */
  readonly setId: number | null
  readonly count: number
}

/** Where the first refused calls came from, or went to: the most frequent three. */
export async function groupsOf(
  { store, tenantId }: RecordsReader,
  { code, customerId, firstAt, lastAt }: RefusalFinding,
): Promise<readonly CallGroup[]> {
  const some = store.db
    .selectFrom('cdr')
    .select(['source_address as source', 'carrier', 'denial_code', 'customer_id'])
    .select('set_id as setId')
    .select(sql<string>`substr(destination_number, 1, 4)`.as('start'))
    .where('start_stamp', '>=', firstAt)
    .where('start_stamp', '<=', lastAt + MINUTE_MS)
    .$if(tenantId !== null, (own) => own.where('tenant_id', '=', tenantId))
    .$if(customerId !== null, (own) => own.where('customer_id', '=', customerId))
    .orderBy('start_stamp')
    .limit(MAX_EXAMINED)
    .as('some')
  const columns =
    code === 'no_rate'
      ? (['start'] as const)
      : code === 'node_limit'
        ? (['setId'] as const)
        : (['source', 'carrier'] as const)
  const query = store.db
    .selectFrom(some)
    .select([...columns])
    .select((row) => row.fn.countAll<number>().as('count'))
    .where('denial_code', '=', code)
    .groupBy([...columns])
    .orderBy('count', 'desc')
    .limit(3)
  const rows = await all(store, query)
  return rows.map((row) => ({
    start: 'start' in row ? row.start : '',
    source: 'source' in row ? row.source : '',
    carrier: 'carrier' in row ? row.carrier : null,
    setId: 'setId' in row ? row.setId : null,
    count: row.count,
  }))
}
