/** Figures of calls that add up: in SQL over records, over daily totals, and in memory. */
import { sql } from 'kysely'
import { sumOfMoney } from './money-sums.ts'

/**
 * How the figures of two rows become one, in the order of the columns of `call_sum`. Denied: not
 * answered, because the platform refused them; failed: neither refused by the platform nor busy,
 * cancelled or without an answer. `pdd_ms` is the sum of the post-dial delays of `pdd_calls` calls.
 */
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

/** Figures of a row of `cdr`. An empty denial code is none. */
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

/** Columns that a record adds to the figures once. */
const countedOnce = [
  'calls',
  'answered',
  'denied',
  'failed',
  'billsec',
  'pdd_ms',
  'pdd_calls',
] as const

/**
 * Figures of a row of `cdr_cost_change` with its record: it changes the cost, and moves the record
 * where that has come with another prefix.
 */
export const ofCostChange: FiguresOfRow = {
  ...ofRecord,
  cost_micros: 'change.cost_micros',
  ...(Object.fromEntries(
    countedOnce.map((column) => [column, `change.records * (${ofRecord[column]})`]),
  ) as Record<(typeof countedOnce)[number], string>),
}

/** Figures of a row of `call_sum`. */
export const ofSum = Object.fromEntries(
  figureColumns.map((column) => [column, column]),
) as FiguresOfRow

export const foldedColumn = (column: FigureColumn, figure: string): string =>
  column === 'cost_micros' ? sumOfMoney(figure) : `${foldOf[column]}(${figure})`

/** Figures of many rows, as a `FiguresRow`. */
export const folded = (row: FiguresOfRow) =>
  figureColumns.map((column) => {
    const fold = foldedColumn(column, row[column])
    return sql.raw(column === 'cost_micros' ? `CAST(${fold} AS TEXT)` : fold).as(column)
  })

/** The figures of a group of calls. */
export interface Figures extends Record<Exclude<FigureColumn, 'cost_micros' | 'dearest'>, number> {
  cost_micros: bigint
  /**
   * 10^18 and the cost of the most expensive call, `-`, the id of its record: the greatest text.
   * Empty: all were free.
   */
  dearest: string
}

/** Figures of one group in one currency, as a statement gives them. */
export interface GroupRow extends Omit<Figures, 'cost_micros'> {
  readonly member: string
  readonly currency: string
  readonly cost_micros: string
}

export const noFigures = (): Figures => ({
  calls: 0,
  answered: 0,
  denied: 0,
  failed: 0,
  billsec: 0,
  cost_micros: 0n,
  pdd_ms: 0,
  pdd_calls: 0,
  first_at: Infinity,
  last_at: -Infinity,
  first_id: Infinity,
  last_id: -Infinity,
  dearest: '',
})

export function add(sum: Figures, other: Readonly<Figures>): void {
  sum.calls += other.calls
  sum.answered += other.answered
  sum.denied += other.denied
  sum.failed += other.failed
  sum.billsec += other.billsec
  sum.cost_micros += other.cost_micros
  sum.pdd_ms += other.pdd_ms
  sum.pdd_calls += other.pdd_calls
  sum.first_at = Math.min(sum.first_at, other.first_at)
  sum.last_at = Math.max(sum.last_at, other.last_at)
  sum.first_id = Math.min(sum.first_id, other.first_id)
  sum.last_id = Math.max(sum.last_id, other.last_id)
  if (other.dearest > sum.dearest) sum.dearest = other.dearest
}
