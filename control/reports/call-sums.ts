/** Calls of a period in sums by customer, prefix, carrier and refusal, out of the records. */
import { costFor } from './own-prices.ts'
import { sql } from 'kysely'
import type { Store } from '../../schema/storage/store.ts'
import { prepare } from '../../schema/sql/query.ts'
import { type Window, windows } from '../../schema/records/record-windows.ts'

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

/** The reader whose records are summed. */
export interface RecordsReader {
  readonly store: Pick<Store, 'db' | 'statements'>
  readonly tenantId: number | null
}

export interface SumsReader extends RecordsReader {
  readonly store: Store
  /** Yields to the event loop. */
  readonly pause: () => Promise<void>
}

/**
 * Records of one statement, however busy the period is: about 5 ms, in which SIP waits where no
 * thread reads.
 */
const MAX_RECORDS = 1_000

/** Sums the calls that began in the period. */
export async function callSums(
  reader: SumsReader,
  from: number,
  before: number,
): Promise<readonly CallSum[]> {
  const sums = new Map<string, CallSum>()
  for await (const rows of sumsOfWindows(reader, { from, before }, MAX_RECORDS)) {
    for (const row of rows) add(sums, row)
    if (rows.length > 0) await reader.pause()
  }
  return [...sums.values()]
}

/** The sums of each window of so many records: a group may be in several. */
export async function* sumsOfWindows(
  { store, tenantId }: RecordsReader,
  period: Window,
  records: number,
): AsyncGenerator<readonly CallSum[], void, undefined> {
  const slice = preparedSlice({ store, tenantId })
  for await (const window of windows(store, { tenantId, customerId: undefined }, period, records))
    yield await slice.all({ ...window, tenantId: tenantId ?? 0 })
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

/** The sums over rows of `cdr`. */
export const callSumColumns = (tenantId: number | null) => [
  sql<number>`count(*)`.as('calls'),
  sql<number>`count(*) FILTER (WHERE cdr.disposition = 'ANSWERED')`.as('answered'),
  sql<number>`sum(CAST(${costFor(tenantId)} AS double precision))`.as('costMicros'),
  sql<number>`min(cdr.start_stamp)`.as('firstAt'),
  sql<number>`max(cdr.start_stamp)`.as('lastAt'),
]

const preparedSlice = ({ store, tenantId }: RecordsReader) =>
  prepare<Slice, CallSum>(store, (db, param) => {
    const query = db
      .selectFrom('cdr')
      .select(['customer_id as customerId', 'carrier', 'rate_prefix as prefix'])
      .select(['denial_code as denial', 'currency'])
      .select(callSumColumns(tenantId))
      .where('start_stamp', '>=', param('from'))
      .where('start_stamp', '<', param('before'))
      .groupBy(['customer_id', 'carrier', 'rate_prefix', 'denial_code', 'currency'])
    return tenantId === null ? query : query.where('tenant_id', '=', param('tenantId'))
  })
