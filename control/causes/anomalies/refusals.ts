/** Calls that the platform refused: an empty wallet, a missing rate, callers without a payer. Pure. */
import { compared, type Limits } from './baseline.ts'
import type { CallSum } from './call-sums.ts'

/** A wallet that refuses a few calls is empty, whatever the past was like. */
const MIN_REFUSED = 3
const limits = {
  wallet: { floor: 10, newFloor: 3, factor: 3 },
  rate: { floor: 5, newFloor: 3, factor: 3 },
  // Strangers call every platform.
  unknown_callers: { floor: 10, newFloor: 10, factor: 3 },
} as const satisfies Record<string, Limits>

const codes = {
  wallet: ['insufficient_funds', 'daily_spend_limit'],
  rate: ['no_rate'],
  unknown_callers: ['unknown_caller', 'unknown_source', 'no_payer'],
} as const

export interface RefusalFinding {
  readonly kind: keyof typeof codes
  readonly code: string
  readonly customerId: number | null
  readonly calls: number
  /** Per day of the past. */
  readonly mean: number
  readonly firstAt: number
  readonly lastAt: number
}

interface Refused {
  readonly code: string
  readonly customerId: number | null
  calls: number
  firstAt: number
  lastAt: number
}

/** @param past the sums of the same hours of each day before. */
export function refusalFindings(
  now: readonly CallSum[],
  past: readonly (readonly CallSum[])[],
): readonly RefusalFinding[] {
  const days = past.map(refusedIn)
  return [...refusedIn(now)].flatMap(([name, refused]) => {
    const kind = kindOf(refused.code)
    if (kind === undefined || refused.calls < MIN_REFUSED) return []
    const before = days.map((day) => day.get(name)?.calls ?? 0)
    const hasPast = before.some((calls) => calls > 0)
    const { isUnusual, mean } = compared(refused.calls, before, hasPast, limits[kind])
    if (kind !== 'wallet' && !isUnusual) return []
    return [{ ...refused, kind, mean }]
  })
}

const kindOf = (code: string): RefusalFinding['kind'] | undefined =>
  (Object.keys(codes) as (keyof typeof codes)[]).find((kind) =>
    (codes[kind] as readonly string[]).includes(code),
  )

function refusedIn(sums: readonly CallSum[]): ReadonlyMap<string, Refused> {
  const refused = new Map<string, Refused>()
  for (const { denial, customerId, calls, answered, firstAt, lastAt } of sums) {
    const count = calls - answered
    if (denial === null || count === 0) continue
    const name = `${customerId ?? 0} ${denial}`
    const known = refused.get(name)
    if (known === undefined)
      refused.set(name, { code: denial, customerId, calls: count, firstAt, lastAt })
    else {
      known.calls += count
      known.firstAt = Math.min(known.firstAt, firstAt)
      known.lastAt = Math.max(known.lastAt, lastAt)
    }
  }
  return refused
}
