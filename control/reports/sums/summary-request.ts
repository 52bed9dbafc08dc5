/** What is asked of calls in aggregate. Plain data: it is sent to the thread of reports. */
import type { CallFilters } from './call-filters.ts'
import type { Grouping } from './dimensions.ts'

export const summaryOrders = ['cost', 'count', 'asr'] as const

export interface SummaryRequest {
  /** Null for all tenants. */
  readonly tenantId: number | null
  /** Milliseconds UTC of the start of calls; `before` is exclusive. */
  readonly from: number
  readonly before: number
  readonly groupBy: Grouping
  readonly filters: CallFilters
  readonly orderBy: (typeof summaryOrders)[number]
  readonly limit: number
}
