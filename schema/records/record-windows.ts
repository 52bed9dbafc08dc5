/**
 * Records of a period, newest first, in windows of a bounded number: each is a statement of some
 * milliseconds.
 */
import { sql } from 'kysely'
import { first, type Tables } from '../sql/query.ts'

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
  store: Tables,
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
  store: Tables,
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
