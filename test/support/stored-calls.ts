/** Records of calls in any database, without an OCS. */
import { type CallCost, type CallRecord, toColumns } from '../../schema/records/call-record.ts'
import type { Store } from '../../schema/sqlite/open.ts'
import { execute } from '../../schema/sql/query.ts'

export async function storeCall(store: Store, record: CallRecord, cost: CallCost): Promise<void> {
  await execute(store, store.db.insertInto('cdr').values(toColumns(record, cost)))
}
