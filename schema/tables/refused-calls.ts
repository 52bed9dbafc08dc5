/** `unknown_source`: 403; `overload`: 503 before the tenant of the call was known. */
export const refusalReasons = ['unknown_source', 'overload'] as const
export type RefusalReason = (typeof refusalReasons)[number]

/** At most one row per minute and reason. */
export interface RefusedCallsTable {
  minute: number
  reason: RefusalReason
  calls: number
}
