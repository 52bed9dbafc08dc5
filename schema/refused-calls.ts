/** Calls that were refused without a record: how many in each minute, and why. */
import { compile, type Statement } from './compiled.ts'
import type { Store } from './open.ts'

/** `unknown_source`: 403; `overload`: 503 before it was known whose call it is. */
export const refusalReasons = ['unknown_source', 'overload'] as const
export type RefusalReason = (typeof refusalReasons)[number]

export interface RefusedCallsRow {
  /** The beginning of the minute in milliseconds UTC. */
  readonly minute: number
  readonly reason: RefusalReason
  readonly calls: number
}

/** Adds to what is counted for that minute. */
export function addRefusedCalls(store: Store): (row: RefusedCallsRow) => void {
  const add: Statement<{ minute: number; reason: RefusalReason; calls: number }, unknown> = compile(
    store,
    (db, param) =>
      db
        .insertInto('refused_calls')
        .values({ minute: param('minute'), reason: param('reason'), calls: param('calls') })
        .onConflict((conflict) =>
          conflict.columns(['minute', 'reason']).doUpdateSet((row) => ({
            calls: row('refused_calls.calls', '+', row.ref('excluded.calls')),
          })),
        ),
  )
  return ({ minute, reason, calls }) => void add.run({ minute, reason, calls })
}
