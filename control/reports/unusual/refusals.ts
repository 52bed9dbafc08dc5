/** Calls that the platform refused: an empty wallet, a missing rate, callers without a payer. Pure. */
import { compared, type Limits } from './baseline.ts'

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

/** Calls of a customer, or without one, that were refused for one reason. */
export interface RefusedSum {
  readonly code: string
  readonly customerId: number | null
  readonly calls: number
  readonly firstAt: number
  readonly lastAt: number
}

interface Refused {
  readonly kind: RefusalFinding['kind']
  readonly code: string
  readonly customerId: number | null
  calls: number
  firstAt: number
  lastAt: number
  past: number[]
}

/** Compares the refused calls of a period with the days before. First all of the period, then the past. */
export class Refusals {
  readonly #refused = new Map<string, Refused>()

  addNow(sum: RefusedSum): void {
    const { code, customerId, calls, firstAt, lastAt } = sum
    const kind = kindOf(code)
    if (kind === undefined) return
    const known = this.#refused.get(nameOf(sum))
    if (known === undefined) {
      const refused = { kind, code, customerId, calls, firstAt, lastAt, past: [] }
      this.#refused.set(nameOf(sum), refused)
      return
    }
    known.calls += calls
    known.firstAt = Math.min(known.firstAt, firstAt)
    known.lastAt = Math.max(known.lastAt, lastAt)
  }

  /** Forgets the past, which is of so many days. */
  beginPast(days: number): void {
    for (const refused of this.#refused.values())
      refused.past = Array.from({ length: days }, () => 0)
  }

  /** @param day from 0 on. */
  addPast(day: number, sum: RefusedSum): void {
    const known = this.#refused.get(nameOf(sum))
    if (known !== undefined) known.past[day] = (known.past[day] ?? 0) + sum.calls
  }

  findings(): readonly RefusalFinding[] {
    return [...this.#refused.values()].flatMap(({ past, ...refused }) => {
      const { kind, calls } = refused
      if (calls < MIN_REFUSED) return []
      const hasPast = past.some((count) => count > 0)
      const { isUnusual, mean } = compared(calls, past, hasPast, limits[kind])
      return kind === 'wallet' || isUnusual ? [{ ...refused, mean }] : []
    })
  }
}

const nameOf = ({ customerId, code }: RefusedSum): string => `${customerId ?? 0} ${code}`

const kindOf = (code: string): RefusalFinding['kind'] | undefined =>
  (Object.keys(codes) as (keyof typeof codes)[]).find((kind) =>
    (codes[kind] as readonly string[]).includes(code),
  )
