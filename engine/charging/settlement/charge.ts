/** What an ended call costs, and who pays. */
import type { Tariff } from '../../../schema/call-journal.ts'
import type { Account } from '../customers/customer.ts'
import type { Customers } from '../customers/customers.ts'
import { costMicros } from '../pricing/price.ts'
import type { RateTable } from '../pricing/rate-table.ts'
import { rateOf } from '../authorization/authorize.ts'
import type { Reservation } from '../authorization/reservations.ts'

export interface Charge {
  /** Undefined: nobody pays. */
  readonly account: Account | undefined
  readonly tariff: Tariff | null
  readonly costMicros: number
  /** The call used up a grant that the wallet could not extend. */
  readonly isOutOfFunds: boolean
}

export const noCharge: Charge = {
  ...{ account: undefined, tariff: null, costMicros: 0, isOutOfFunds: false },
}

/** Cutting a call takes a moment: so many seconds past the grant are never charged beyond the wallet. */
const cutOffSeconds = 2

/**
 * Charges a call that was authorized here, at the price of its start. A duration far beyond the grant
 * (the engine was told to cut the call and did not) is charged as consumed, even below the credit limit.
 */
export function chargeReserved(reservation: Reservation, billsec: number): Charge {
  const { account, tariff, grantedSeconds, amountMicros } = reservation
  const isOutOfFunds = reservation.isLastGrant && billsec >= grantedSeconds
  if (tariff === null) return { account, tariff, costMicros: 0, isOutOfFunds }
  const price = costMicros(tariff, billsec)
  const isCutOff = billsec > grantedSeconds && billsec <= grantedSeconds + cutOffSeconds
  if (!isCutOff || account === undefined)
    return { account, tariff, costMicros: price, isOutOfFunds }
  const { availableMicros } = account
  const payable = amountMicros + (availableMicros > 0n ? Number(availableMicros) : 0)
  return { account, tariff, costMicros: Math.min(price, payable), isOutOfFunds }
}

/** A call that holds no reservation here: it was let through while the OCS was away, or came late. */
export interface UnreservedCall {
  readonly customerId: number | null
  readonly caller: string
  readonly callee: string
  readonly startedAt: number
  readonly billsec: number
}

/** Charges at the rate in force when the call started. What has no customer or no rate costs nothing. */
export function chargeUnreserved(
  call: UnreservedCall,
  customers: Customers,
  rates: RateTable,
): Charge {
  const account =
    call.customerId === null ? customers.byNumber(call.caller) : customers.byId(call.customerId)
  const rate = account && rateOf(account, call.callee, call.startedAt, rates)
  const tariff = rate?.tariff ?? null
  const price = tariff === null ? 0 : costMicros(tariff, call.billsec)
  return { account, tariff, costMicros: price, isOutOfFunds: false }
}
