/** `unknown_source`: 403; `overload`: 503 before it was known whose call it is. */
export const refusalReasons = ['unknown_source', 'overload'] as const
export type RefusalReason = (typeof refusalReasons)[number]

/** At most one row a minute for each reason. */
export interface RefusedCallsTable {
  minute: number
  reason: RefusalReason
  calls: number
}
