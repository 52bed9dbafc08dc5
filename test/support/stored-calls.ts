/** Records of calls in any database, without an OCS. */
import type { CallCost, CallRecord } from '../../schema/contracts/call-record.ts'
import { toColumns } from '../../schema/records/stored-record.ts'
import type { Store } from '../../schema/storage/store.ts'
import { execute } from '../../schema/sql/query.ts'

export async function storeCall(store: Store, record: CallRecord, cost: CallCost): Promise<void> {
  await execute(store, store.db.insertInto('cdr').values(toColumns(record, cost)))
}
