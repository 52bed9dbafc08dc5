/** Live calls that must end: their customer is inactive now, or a spend guard ends those that were live when it was set. */
import type { RevokedCall } from '../../../schema/contracts/charging.ts'
import type { Reservations } from '../authorization/reservations.ts'
import type { SpendGuards } from './spend-guards.ts'

/** Each of `callUuids` has given a sign of life at `now`. */
export function revokedAmong(
  callUuids: readonly string[],
  now: number,
  reservations: Reservations,
  guards: Pick<SpendGuards, 'endsCalls' | 'isEnded'>,
): readonly RevokedCall[] {
  return callUuids.flatMap((callUuid) => {
    const { payer, asked } = reservations.touch(callUuid, now) ?? {}
    if (payer?.terms.isActive === false) return [{ callUuid, code: 'customer_inactive' }]
    const isEnded = guards.endsCalls && asked !== undefined && guards.isEnded(asked, payer)
    return isEnded ? [{ callUuid, code: 'spend_guard' }] : []
  })
}
