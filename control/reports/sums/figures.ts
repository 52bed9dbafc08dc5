/** What calls come to: figures that add up, in SQL over records, over kept sums, and in memory. */
import { type RawBuilder, sql } from 'kysely'

/** Of the calls of one group in one currency. */
export interface Figures {
  calls: number
  answered: number
  /** Not answered, because the platform refused them. */
  denied: number
  /** Not answered, and neither refused by the platform nor busy, cancelled or without an answer. */
  failed: number
  billsec: number
  cost: bigint
  /** The sum of the post-dial delays, and of how many calls it is. */
  pddMs: number
  pddCalls: number
  firstAt: number
  lastAt: number
  /** The ids of the records that were stored first and last. */
  firstId: number
  lastId: number
  /** 10^18 and the cost of the dearest call, `-`, the id of its record: the greatest text. Empty: all were free. */
  dearest: string
}

/** A group as a statement gives it, in the order of the columns below: half as dear to read as an object. */
export type GroupValues = readonly [
  member: string,
  currency: string,
  calls: number,
  answered: number,
  denied: number,
  failed: number,
  billsec: number,
  cost: string,
  pddMs: number,
  pddCalls: number,
  firstAt: number,
  lastAt: number,
  firstId: number,
  lastId: number,
  dearest: string,
]

export const noFigures = (): Figures => ({
  calls: 0,
  answered: 0,
  denied: 0,
  failed: 0,
  billsec: 0,
  cost: 0n,
  pddMs: 0,
  pddCalls: 0,
  firstAt: Infinity,
  lastAt: -Infinity,
  firstId: Infinity,
  lastId: -Infinity,
  dearest: '',
})

export function add(sum: Figures, other: Readonly<Figures>): void {
  sum.calls += other.calls
  sum.answered += other.answered
  sum.denied += other.denied
  sum.failed += other.failed
  sum.billsec += other.billsec
  sum.cost += other.cost
  sum.pddMs += other.pddMs
  sum.pddCalls += other.pddCalls
  if (other.firstAt < sum.firstAt) sum.firstAt = other.firstAt
  if (other.lastAt > sum.lastAt) sum.lastAt = other.lastAt
  if (other.firstId < sum.firstId) sum.firstId = other.firstId
  if (other.lastId > sum.lastId) sum.lastId = other.lastId
  if (other.dearest > sum.dearest) sum.dearest = other.dearest
}

export function figuresIn(values: GroupValues): Figures {
  const [, , calls, answered, denied, failed, billsec, cost, pddMs, pddCalls] = values
  return {
    calls,
    answered,
    denied,
    failed,
    billsec,
    pddMs,
    pddCalls,
    cost: cost === '0' ? 0n : BigInt(cost),
    firstAt: values[10],
    lastAt: values[11],
    firstId: values[12],
    lastId: values[13],
    dearest: values[14],
  }
}

const dearest = sql<string>`max(CASE WHEN cdr.cost_micros > 0
  THEN CAST(1000000000000000000 + cdr.cost_micros AS TEXT) || '-' || CAST(cdr.id AS TEXT) ELSE '' END)`

const ends = [
  sql<number>`min(cdr.start_stamp)`.as('firstAt'),
  sql<number>`max(cdr.start_stamp)`.as('lastAt'),
  sql<number>`min(cdr.id)`.as('firstId'),
  sql<number>`max(cdr.id)`.as('lastId'),
  dearest.as('dearest'),
]

const counted = (condition: RawBuilder<unknown>) =>
  sql<number>`count(*) FILTER (WHERE ${condition})`

/** Of rows of `cdr`. */
export const ofRecords = [
  sql<number>`count(*)`.as('calls'),
  counted(sql`cdr.disposition = 'ANSWERED'`).as('answered'),
  counted(sql`cdr.disposition <> 'ANSWERED' AND cdr.denial_code IS NOT NULL`).as('denied'),
  counted(sql`cdr.disposition IN ('FAILED', 'CONGESTION') AND cdr.denial_code IS NULL`).as(
    'failed',
  ),
  sql<number>`sum(cdr.billsec)`.as('billsec'),
  sql<string>`CAST(sum(cdr.cost_micros) AS TEXT)`.as('cost'),
  sql<number>`coalesce(sum(cdr.post_dial_delay_ms), 0)`.as('pddMs'),
  sql<number>`count(cdr.post_dial_delay_ms)`.as('pddCalls'),
  ...ends,
]

const nothing = <Name extends keyof Figures>(name: Name) => sql<number>`0`.as(name)

/** Of rows of `cdr_cost_change` with their records: they change the cost alone. */
export const ofCostChanges = [
  nothing('calls'),
  nothing('answered'),
  nothing('denied'),
  nothing('failed'),
  nothing('billsec'),
  sql<string>`CAST(sum(change.cost_micros) AS TEXT)`.as('cost'),
  nothing('pddMs'),
  nothing('pddCalls'),
  ...ends,
]

/** Of rows of `call_sum`. */
export const ofSums = [
  sql<number>`sum(calls)`.as('calls'),
  sql<number>`sum(answered)`.as('answered'),
  sql<number>`sum(denied)`.as('denied'),
  sql<number>`sum(failed)`.as('failed'),
  sql<number>`sum(billsec)`.as('billsec'),
  sql<string>`CAST(sum(cost_micros) AS TEXT)`.as('cost'),
  sql<number>`sum(pdd_ms)`.as('pddMs'),
  sql<number>`sum(pdd_calls)`.as('pddCalls'),
  sql<number>`min(first_at)`.as('firstAt'),
  sql<number>`max(last_at)`.as('lastAt'),
  sql<number>`min(first_id)`.as('firstId'),
  sql<number>`max(last_id)`.as('lastId'),
  sql<string>`max(dearest)`.as('dearest'),
]
