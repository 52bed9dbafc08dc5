/** What calls come to: figures that add up, in SQL over records, over kept sums, and in memory. */
import { sql } from 'kysely'

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

/** How the figures of two rows become one. In the order of the columns of `call_sum`. */
export const foldOf = {
  calls: 'sum',
  answered: 'sum',
  denied: 'sum',
  failed: 'sum',
  billsec: 'sum',
  cost_micros: 'sum',
  pdd_ms: 'sum',
  pdd_calls: 'sum',
  first_at: 'min',
  last_at: 'max',
  first_id: 'min',
  last_id: 'max',
  dearest: 'max',
} as const
type FigureColumn = keyof typeof foldOf
export const figureColumns = Object.keys(foldOf) as readonly FigureColumn[]

/** The figures of one row, in SQL. */
export type FiguresOfRow = Readonly<Record<FigureColumn, string>>

/** Of a row of `cdr`. An empty denial code is none. */
export const ofRecord: FiguresOfRow = {
  calls: '1',
  answered: "CASE WHEN cdr.disposition = 'ANSWERED' THEN 1 ELSE 0 END",
  denied: "CASE WHEN cdr.disposition <> 'ANSWERED' AND cdr.denial_code <> '' THEN 1 ELSE 0 END",
  failed: `CASE WHEN cdr.disposition IN ('FAILED', 'CONGESTION')
    AND coalesce(cdr.denial_code, '') = '' THEN 1 ELSE 0 END`,
  billsec: 'cdr.billsec',
  cost_micros: 'cdr.cost_micros',
  pdd_ms: 'coalesce(cdr.post_dial_delay_ms, 0)',
  pdd_calls: 'CASE WHEN cdr.post_dial_delay_ms IS NULL THEN 0 ELSE 1 END',
  first_at: 'cdr.start_stamp',
  last_at: 'cdr.start_stamp',
  first_id: 'cdr.id',
  last_id: 'cdr.id',
  dearest: `CASE WHEN cdr.cost_micros > 0
    THEN CAST(1000000000000000000 + cdr.cost_micros AS TEXT) || '-' || CAST(cdr.id AS TEXT)
    ELSE '' END`,
}

/** Of a row of `cdr_cost_change` with its record: it changes the cost alone. */
export const ofCostChange: FiguresOfRow = {
  ...ofRecord,
  calls: '0',
  answered: '0',
  denied: '0',
  failed: '0',
  billsec: '0',
  cost_micros: 'change.cost_micros',
  pdd_ms: '0',
  pdd_calls: '0',
}

/** Of a row of `call_sum`. */
export const ofSum = Object.fromEntries(
  figureColumns.map((column) => [column, column]),
) as FiguresOfRow

/** Figures of many rows, in the order of `GroupValues`. */
export const folded = (row: FiguresOfRow) =>
  figureColumns.map((column) => {
    const fold = `${foldOf[column]}(${row[column]})`
    return sql.raw(column === 'cost_micros' ? `CAST(${fold} AS TEXT)` : fold).as(column)
  })
