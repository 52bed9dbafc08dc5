/** Carriers of whose calls far fewer are answered than before. Pure. */
import { PAST_DAYS } from './baseline.ts'
import type { CallSum } from './call-sums.ts'

const MIN_CALLS = 20
/** Answered less than this part of what was usual. */
const DROP = 0.5
/** By at least these percentage points. */
const MIN_POINTS = 20

export interface CarrierFinding {
  readonly carrier: string
  readonly calls: number
  readonly asrPercent: number
  readonly usualPercent: number
  readonly firstAt: number
  readonly lastAt: number
}

export function carrierFindings(
  now: readonly CallSum[],
  past: readonly (readonly CallSum[])[],
): readonly CarrierFinding[] {
  const before = answeredBy(past.flat())
  return [...answeredBy(now)].flatMap(([carrier, { calls, answered, firstAt, lastAt }]) => {
    const usual = before.get(carrier)
    if (calls < MIN_CALLS || usual === undefined || usual.calls < PAST_DAYS) return []
    const asrPercent = Math.round((answered / calls) * 100)
    const usualPercent = Math.round((usual.answered / usual.calls) * 100)
    const isLow = asrPercent < usualPercent * DROP && usualPercent - asrPercent >= MIN_POINTS
    return isLow ? [{ carrier, calls, asrPercent, usualPercent, firstAt, lastAt }] : []
  })
}

/** What the platform refused says nothing of a carrier. */
function answeredBy(sums: readonly CallSum[]) {
  const carriers = new Map<string, Omit<CallSum, 'carrier' | 'prefix' | 'denial' | 'currency'>>()
  for (const { carrier, denial, ...sum } of sums) {
    if (carrier === null || denial !== null) continue
    const known = carriers.get(carrier)
    if (known === undefined) carriers.set(carrier, { ...sum })
    else {
      known.calls += sum.calls
      known.answered += sum.answered
      known.firstAt = Math.min(known.firstAt, sum.firstAt)
      known.lastAt = Math.max(known.lastAt, sum.lastAt)
    }
  }
  return carriers
}
