/** Carriers of whose calls far fewer are answered than before. Pure. */
import { PAST_DAYS } from './baseline.ts'

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

/** Without what the platform refused, which says nothing of a carrier. */
export interface CarrierSum {
  readonly carrier: string
  readonly calls: number
  readonly answered: number
  readonly firstAt: number
  readonly lastAt: number
}

interface Carried {
  calls: number
  answered: number
  firstAt: number
  lastAt: number
  pastCalls: number
  pastAnswered: number
}

/** Compares the calls of a period with the days before. First all of the period, then the past. */
export class CarrierAnswers {
  readonly #carriers = new Map<string, Carried>()

  addNow({ carrier, calls, answered, firstAt, lastAt }: CarrierSum): void {
    const known = this.#carriers.get(carrier)
    if (known === undefined) {
      const past = { pastCalls: 0, pastAnswered: 0 }
      this.#carriers.set(carrier, { calls, answered, firstAt, lastAt, ...past })
      return
    }
    known.calls += calls
    known.answered += answered
    known.firstAt = Math.min(known.firstAt, firstAt)
    known.lastAt = Math.max(known.lastAt, lastAt)
  }

  /** Forgets the past. */
  beginPast(): void {
    for (const carried of this.#carriers.values()) {
      carried.pastCalls = 0
      carried.pastAnswered = 0
    }
  }

  addPast({ carrier, calls, answered }: CarrierSum): void {
    const known = this.#carriers.get(carrier)
    if (known === undefined) return
    known.pastCalls += calls
    known.pastAnswered += answered
  }

  findings(): readonly CarrierFinding[] {
    return [...this.#carriers].flatMap(([carrier, carried]) => {
      const { calls, answered, firstAt, lastAt, pastCalls, pastAnswered } = carried
      if (calls < MIN_CALLS || pastCalls < PAST_DAYS) return []
      const asrPercent = Math.round((answered / calls) * 100)
      const usualPercent = Math.round((pastAnswered / pastCalls) * 100)
      const isLow = asrPercent < usualPercent * DROP && usualPercent - asrPercent >= MIN_POINTS
      return isLow ? [{ carrier, calls, asrPercent, usualPercent, firstAt, lastAt }] : []
    })
  }
}
