/** Compares the calls of a period with those of the days before, in every part of which something is told. */
import type { CallSum } from './call-sums.ts'
import { CarrierAnswers, type CarrierSum } from './carriers.ts'
import { Spending, type SpentSum } from './money.ts'
import { type RefusedSum, Refusals } from './refusals.ts'

/** Takes sums of calls of one day. */
export interface DayTaker {
  spent(sum: SpentSum): void
  refused(sum: RefusedSum): void
  carried(sum: CarrierSum): void
}

/** First all of the period, then the past. */
export class Comparison {
  readonly spending = new Spending()
  readonly refusals = new Refusals()
  readonly carriers = new CarrierAnswers()

  readonly now: DayTaker = {
    spent: (sum) => this.spending.addNow(sum),
    refused: (sum) => this.refusals.addNow(sum),
    carried: (sum) => this.carriers.addNow(sum),
  }

  /** Forgets the past, which is of so many days. */
  beginPast(days: number): void {
    this.spending.beginPast(days)
    this.refusals.beginPast(days)
    this.carriers.beginPast()
  }

  /** @param day from 0 on. */
  past(day: number): DayTaker {
    return {
      spent: (sum) => this.spending.addPast(day, sum),
      refused: (sum) => this.refusals.addPast(day, sum),
      carried: (sum) => this.carriers.addPast(sum),
    }
  }
}

/** Calls of unknown sources have records as samples only: the platform has them counted elsewhere. */
export const SAMPLED = 'unknown_source'

/** Gives `taker` what calls come to. */
export function takeCalls(sum: CallSum, taker: DayTaker): void {
  const { customerId, carrier, prefix, denial, currency, calls, answered, costMicros } = sum
  const times = { firstAt: sum.firstAt, lastAt: sum.lastAt }
  if (customerId !== null && costMicros !== 0)
    taker.spent({ customerId, prefix, currency, calls: answered, costMicros, ...times })
  const unanswered = calls - answered
  if (denial !== null && unanswered > 0)
    taker.refused({ code: denial, customerId, calls: unanswered, ...times })
  // What the platform refused says nothing of a carrier.
  const carried = denial === null ? calls : answered
  if (carrier !== null && carried > 0)
    taker.carried({ carrier, calls: carried, answered, ...times })
}

/** The same of a day without the refused calls that are counted elsewhere. */
export const withoutSampled = (taker: DayTaker): DayTaker => ({
  spent: (sum) => taker.spent(sum),
  refused: (sum) => (sum.code === SAMPLED ? undefined : taker.refused(sum)),
  carried: (sum) => taker.carried(sum),
})
