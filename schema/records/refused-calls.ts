import { prepare, type Tables } from '../sql/query.ts'
import type { RefusedCallsTable } from '../tables/calls.ts'

/** Adds to the counter of that minute, to which several instances may add. */
export function addRefusedCalls(
  store: Tables,
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
