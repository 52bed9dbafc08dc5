/**
 * How long a call to a number is expected to last (ACD): the weighted mean of the answered calls to
 * numbers that begin alike. What carriers and customers pay for it is compared (D400).
 */
import { LRUCache } from 'lru-cache'
import { withoutPlus as digitsOf } from '../../schema/rules/numbers.ts'

/** Beginnings of numbers whose calls are counted: from a country to a network or a city. */
const SHORTEST = 2
const LONGEST = 6
/** Fewer calls say nothing: one long call would. */
const LEAST_CALLS = 20
/** From so many calls on, a new one counts for this part of the mean. */
const MEMORY_CALLS = 100
/** Random numbers cannot make it grow. 10,000 entries take about 1 MB. */
const MAX_DESTINATIONS = 10_000

/** Until there are calls: the minute by which price lists are read. */
export const DEFAULT_SECONDS = 60

/** A call that was answered: the number as it was dialled, and its charged seconds. */
export interface TalkedCall {
  readonly calledNumber: string
  readonly billsec: number
}

interface Destination {
  calls: number
  seconds: number
}

export class ExpectedDurations {
  readonly #destinations = new LRUCache<string, Destination>({ max: MAX_DESTINATIONS })

  /** Takes a call to the outside that is over; one without an answer says nothing. */
  add({ calledNumber, billsec }: TalkedCall): void {
    if (billsec <= 0) return
    const digits = digitsOf(calledNumber)
    const longest = Math.min(LONGEST, digits.length)
    for (let length = SHORTEST; length <= longest; length += 1) {
      const start = digits.slice(0, length)
      const known = this.#destinations.get(start)
      if (known === undefined) this.#destinations.set(start, { calls: 1, seconds: billsec })
      else {
        known.calls = Math.min(known.calls + 1, MEMORY_CALLS)
        known.seconds += (billsec - known.seconds) / known.calls
      }
    }
  }

  /** Whole seconds, 1 at least: of the longest beginning that has had enough calls. */
  of(calledNumber: string): number {
    const digits = digitsOf(calledNumber)
    for (let length = Math.min(LONGEST, digits.length); length >= SHORTEST; length -= 1) {
      const known = this.#destinations.peek(digits.slice(0, length))
      if (known !== undefined && known.calls >= LEAST_CALLS)
        return Math.max(1, Math.round(known.seconds))
    }
    return DEFAULT_SECONDS
  }
}
