/** What storing ended calls needs, on either database. */
import type { Schedule } from '../../../schema/clock.ts'
import type { EventSink } from '../../../schema/contracts/webhook-events.ts'
import type { Store } from '../../../schema/open.ts'
import type { AccountingEvents } from '../accounting-events.ts'
import type { SpentShare } from '../../shares/node-shares.ts'
import type { ShareOwner } from '../../shares/share-rows.ts'

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
  /** Calls are paid from what this process holds of wallets. */
  readonly owner: ShareOwner
  /** What a commit has taken of the shares of this process, and the wallets that have paid more than was held for it. */
  readonly onSettled: (spent: readonly SpentShare[], beyond: readonly string[]) => void
}
