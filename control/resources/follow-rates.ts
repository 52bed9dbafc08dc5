/** Tells the engine which rates an import has changed. */
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { OcsPort } from '../../schema/contracts/charging.ts'
import type { ChangedRates } from './rate-import.ts'

/**
 * Milliseconds of the event loop. The clock would also count the rests between slices, and waits
 * for rates of others.
 */
const WORK_MS_PER_RATE = 0.005

/**
 * A few prefixes by themselves: a plan may have a hundred thousand. Resolves with the milliseconds
 * of the event loop that it took.
 */
export async function followRates(
  ocs: OcsPort,
  { plans, prefixes }: ChangedRates,
): Promise<number> {
  let rates = 0
  if (prefixes === undefined) for (const planId of plans) rates += await ocs.reloadPlan(planId)
  else
    for (const { planId, prefix } of prefixes) {
      await ocs.reloadPrefix(planId, prefix)
      rates += 1
      await nextTurn()
    }
  return rates * WORK_MS_PER_RATE
}
