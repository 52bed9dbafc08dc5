/** The calls of the last run that were talked, so that a restart does not forget how long. */
import type { Store } from '../../schema/storage/store.ts'
import { all } from '../../schema/sql/query.ts'
import type { TalkedCall } from './expected-durations.ts'

/** The newest records of the table are read, whatever they are: about 10 ms. */
const RECORDS = 5_000

/** Calls to the outside, the oldest first. */
export async function recentTalks(store: Store): Promise<readonly TalkedCall[]> {
  const newest = store.db
    .selectFrom('cdr')
    .select(['destination_number', 'billsec', 'direction'])
    .orderBy('id', 'desc')
    .limit(RECORDS)
  return (await all(store, newest))
    .filter(({ direction, billsec }) => direction === 'outbound' && billsec > 0)
    .map(({ destination_number: calledNumber, billsec }) => ({ calledNumber, billsec }))
    .toReversed()
}
