/** What a live call would cost if it ended now. */
import type { CostSoFar } from '../../../schema/contracts/charging.ts'
import { costMicros } from '../pricing/price.ts'
import type { Reservation } from './reservations.ts'

const freeCall: CostSoFar = { costMicros: 0, currency: null, tariff: null }

/** @param reservation undefined: nothing is reserved for it. */
export function costSoFar(reservation: Reservation | undefined, seconds: number): CostSoFar {
  const { tariff, grantedSeconds } = reservation ?? {}
  if (!tariff || grantedSeconds === undefined) return freeCall
  const billsec = Math.min(seconds, Math.floor(grantedSeconds))
  return { costMicros: costMicros(tariff, billsec), currency: tariff.currency, tariff }
}
