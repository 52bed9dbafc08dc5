/** What storing ended calls needs, on either database. */
import type { Schedule } from '../../../schema/clock.ts'
import type { EventSink } from '../../../schema/contracts/webhook-events.ts'
import type { Store } from '../../../schema/open.ts'
import type { AccountingEvents } from '../accounting-events.ts'
import type { StoredLease } from '../leases/lease-rows.ts'

export interface CallStoreDeps<S> {
  readonly store: S
  readonly schedule: Schedule
  /** Milliseconds by the steady clock. */
  readonly now: () => number
  /** Milliseconds UTC: for stamps. */
  readonly wallNow: () => number
  readonly events: AccountingEvents
  /** Absent: no event is written. */
  readonly sink?: EventSink | undefined
  /** Nothing is lost meanwhile. */
  readonly onFailure: (error: unknown, waiting: number) => void
  /** Events of calls are lost. Called for the first of an outage, and for those that wait when the process ends. */
  readonly onLostEvents?: (count: number) => void
}

export interface ServerCallsDeps extends CallStoreDeps<Store> {
  /** What this process leases under: calls are paid from its leases. */
  readonly node: string
  /** The leases of this process after a commit, and the wallets that have paid more than was leased for it. */
  readonly onSettled: (leases: readonly StoredLease[], beyond: readonly number[]) => void
}
