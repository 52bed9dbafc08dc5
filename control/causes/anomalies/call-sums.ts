/** Calls of a period in sums by customer, prefix, carrier and refusal. */
import { sql } from 'kysely'
import type { Store } from '../../../schema/open.ts'
import { prepare } from '../../../schema/sql/prepared.ts'
import { all } from '../../../schema/sql/query.ts'
import { windows } from '../../pbx/sums/record-windows.ts'

export interface CallSum {
  readonly customerId: number | null
  readonly carrier: string | null
  readonly prefix: string | null
  readonly denial: string | null
  readonly currency: string | null
  calls: number
  answered: number
  costMicros: number
  /** Milliseconds UTC, of the start of a call. */
  firstAt: number
  lastAt: number
}

export interface SumsReader {
  readonly store: Store
  readonly tenantId: number | null
  /** Yields to the event loop. */
  readonly pause: () => Promise<void>
}

/** Of one statement, however busy the period is: about 5 ms, in which SIP waits where the database is a file. */
const MAX_RECORDS = 1_000

/** Of the calls that began in the period. */
export async function callSums(
  reader: SumsReader,
  from: number,
  before: number,
): Promise<readonly CallSum[]> {
  const sums = new Map<string, CallSum>()
  const slice = preparedSlice(reader)
  const { store, tenantId } = reader
  const scope = { tenantId, customerId: undefined }
  for await (const window of windows(store, scope, { from, before }, MAX_RECORDS)) {
    const rows = await slice.all({ ...window, tenantId: tenantId ?? 0 })
    for (const row of rows) add(sums, row)
    if (rows.length > 0) await reader.pause()
  }
  return [...sums.values()]
}

function add(sums: Map<string, CallSum>, row: CallSum): void {
  const { customerId, carrier, prefix, denial, currency } = row
  const name = JSON.stringify([customerId, carrier, prefix, denial, currency])
  const known = sums.get(name)
  if (known === undefined) sums.set(name, { ...row })
  else {
    known.calls += row.calls
    known.answered += row.answered
    known.costMicros += row.costMicros
    known.lastAt = Math.max(known.lastAt, row.lastAt)
    known.firstAt = Math.min(known.firstAt, row.firstAt)
  }
}

interface Slice {
  readonly from: number
  readonly before: number
  readonly tenantId: number
}

const preparedSlice = ({ store, tenantId }: SumsReader) =>
  prepare<Slice, CallSum>(store, (db, param) => {
    const query = db
      .selectFrom('cdr')
      .select(['customer_id as customerId', 'carrier', 'rate_prefix as prefix'])
      .select(['denial_code as denial', 'currency'])
      .select((row) => row.fn.countAll<number>().as('calls'))
      .select([
        sql<number>`CAST(sum(CASE WHEN disposition = 'ANSWERED' THEN 1 ELSE 0 END) AS bigint)`.as(
          'answered',
        ),
        sql<number>`CAST(sum(cost_micros) AS bigint)`.as('costMicros'),
        sql<number>`min(start_stamp)`.as('firstAt'),
        sql<number>`max(start_stamp)`.as('lastAt'),
      ])
      .where('start_stamp', '>=', param('from'))
      .where('start_stamp', '<', param('before'))
      .groupBy(['customer_id', 'carrier', 'rate_prefix', 'denial_code', 'currency'])
    return tenantId === null ? query : query.where('tenant_id', '=', param('tenantId'))
  })

/** Records that are looked through for a few that show what happened. */
const MAX_LOOKED = 5_000

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

/** Calls from `from` on, oldest first, with these values. */
export async function samplesOf(
  { store, tenantId }: SumsReader,
  { from, before }: { readonly from: number; readonly before: number },
  wanted: {
    readonly customerId?: number | null
    readonly prefix?: string | null
    readonly denial?: string
    /** Only calls that cost something. */
    readonly isCharged?: boolean
  },
  limit: number,
): Promise<readonly Sample[]> {
  const { customerId, prefix, denial, isCharged = false } = wanted
  const some = store.db
    .selectFrom('cdr')
    .select(['call_uuid', 'caller_id_number as caller', 'destination_number as callee'])
    .select(['source_address as source', 'carrier', 'start_stamp as start'])
    .select(['rate_prefix', 'denial_code', 'required_micros as required'])
    .select(['available_micros as available', 'cost_micros'])
    .where('start_stamp', '>=', from)
    .where('start_stamp', '<', before)
    .$if(tenantId !== null, (own) => own.where('tenant_id', '=', tenantId))
    .$if(customerId != null, (own) => own.where('customer_id', '=', customerId ?? 0))
    .orderBy('start_stamp')
    .limit(MAX_LOOKED)
    .as('some')
  const query = store.db
    .selectFrom(some)
    .selectAll()
    .$if(prefix != null, (own) => own.where('rate_prefix', '=', prefix ?? ''))
    .$if(isCharged, (own) => own.where('cost_micros', '>', 0))
    .$if(denial !== undefined, (own) => own.where('denial_code', '=', denial ?? ''))
    .orderBy('start')
    .limit(limit)
  return all(store, query)
}
