/** Present figures of charging, and totals since the start. */
import type { OcsStats } from '../../schema/contracts/charging.ts'
import type { Reservations } from './authorization/reservations.ts'
import type { CallStore } from './call-store.ts'
import type { Customers } from './customers/customers.ts'
import type { MoneySums } from './ledger/posting.ts'

interface Counted {
  readonly customers: Customers
  readonly reservations: Reservations
  readonly sums: MoneySums
  readonly stored: ReturnType<CallStore['stats']>
  readonly verdicts: OcsStats['verdicts']
}

export function statsOf({ customers, reservations, sums, stored, verdicts }: Counted): OcsStats {
  const { waiting, commits, failures, lostEvents } = stored
  let reservedMicros = 0n
  for (const customer of customers.all()) reservedMicros += customer.reservedMicros
  return {
    openCalls: reservations.size,
    reservedMicros,
    waitingWrites: waiting,
    commits,
    commitFailures: failures,
    lostEvents,
    verdicts,
    moved: sums.list(),
  }
}
