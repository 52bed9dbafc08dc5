import type { RefusalReason } from '../refused-calls.ts'

/** At most one row a minute for each reason. */
export interface RefusedCallsTable {
  minute: number
  reason: RefusalReason
  calls: number
}
