/**
 * `POST /rates/import`: imports a table of rates, all or nothing, and reports each invalid line.
 */
import type { RequestScope } from '../auth/tenants.ts'
import { refuseUncounted } from './braked.ts'
import { fromFlag, moneyToDecimal } from '../../schema/columns.ts'
import { type Tables, execute, first } from '../../schema/sql/query.ts'
import type { RequestProblem } from '../http/api-error.ts'
import { problemsOf } from '../http/validate.ts'
import { writeWithinLimits } from '../auth/tenant-limits.ts'
import { ratesToPut, type NewRate } from './bulk-rates.ts'
import type { CsvRecord } from './csv-records.ts'
import { flagIn, readLines, triedOut } from './csv-table.ts'
import { refuseDatedPrices } from './dated-prices.ts'
import { unknownPeriod } from './plan-periods.ts'
import { rateBody, rateColumns, rateProblem, type StoredRate } from './rates.ts'
import { timeOrNull } from '../http/view-fields.ts'

export const rateCsvColumns = [
  'prefix',
  'description',
  'rate_per_minute',
  'connect_fee',
  'first_increment',
  'first_rate_per_minute',
  'increment',
  'blocked',
  'period',
  'effective_from',
  'effective_to',
]

/** Also known: the plan of a line, where one file holds several. */
const knownColumns = new Set<string>([...rateCsvColumns, 'rate_plan'])

export interface ImportReport {
  readonly imported: number
  readonly created: number
  readonly updated: number
  readonly removed: number
  /** Absent: there is nothing to warn of. */
  readonly warnings?: readonly string[]
}

/** Returns the plan that a line's cell names (undefined: an empty cell), or why there is none. */
export type PlanOf = (name: string | undefined) => Promise<number | RequestProblem>

/** Returns the names of the periods of a plan. */
type PeriodsOf = (planId: number) => Promise<readonly string[]>

export interface PlanLookUps {
  readonly planOf: PlanOf
  readonly periodsOf: PeriodsOf
}

const maxRates = 250_000

/**
 * Parses and checks every line. Throws 400 with the first hundred problems, each with its line.
 *
 * @param allowsDefault a line may have an empty prefix, and so price every number.
 * @param pause gives other work a turn.
 */
export const readRates = (
  table: Uint8Array,
  plans: PlanLookUps,
  allowsDefault: boolean,
  pause: () => Promise<unknown>,
): Promise<readonly NewRate[]> =>
  readLines<NewRate>(
    table,
    { known: knownColumns, needed: ['prefix', 'rate_per_minute'], most: maxRates },
    (header) => {
      const reader = new LineReader(header, plans, allowsDefault)
      return (record) => reader.read(record)
    },
    pause,
  )

type RateColumns = ReturnType<typeof rateColumns>

/** Columns that differ from line to line; the others are its terms. */
const ownColumns = ['prefix', 'description'] as const
const ownBody = rateBody.pick({ prefix: true, description: true })
/** Terms in memory at once. */
const maxTerms = 10_000

/**
 * Parses the lines of one table. Most lines repeat the terms of another; equal terms are checked
 * once.
 */
class LineReader {
  readonly #header: readonly string[]
  readonly #planOf: PlanOf
  readonly #periodsOf: PeriodsOf
  readonly #allowsDefault: boolean
  readonly #linesByKey = new Map<string, number>()
  readonly #terms = new Map<string, RateColumns>()
  readonly #termCells: readonly number[]

  constructor(
    header: readonly string[],
    { planOf, periodsOf }: PlanLookUps,
    allowsDefault: boolean,
  ) {
    this.#header = header
    this.#planOf = planOf
    this.#periodsOf = periodsOf
    this.#allowsDefault = allowsDefault
    this.#termCells = [...header.keys()].filter((index) => !isOwn(header[index]))
  }

  async read({ line, cells }: CsvRecord): Promise<NewRate | RequestProblem[]> {
    const path = `lines.${line}`
    const columns = this.#columns(cells, path)
    if (Array.isArray(columns)) return columns
    if (columns.prefix === '' && !this.#allowsDefault)
      return [{ path: `${path}.prefix`, message: emptyPrefix }]
    const plan = await this.#planOf(this.#cell(cells, 'rate_plan'))
    if (typeof plan !== 'number') return [{ ...plan, path: `${path}.${plan.path}` }]
    const { period } = columns
    const unknown = period === null ? undefined : unknownPeriod(period, await this.#periodsOf(plan))
    if (unknown !== undefined) return [{ path: `${path}.period`, message: unknown }]
    const key = `${plan} ${columns.prefix} ${columns.effective_from_at} ${period}`
    const twin = this.#linesByKey.get(key)
    if (twin !== undefined) return [{ path: `${path}.prefix`, message: `repeats line ${twin}` }]
    this.#linesByKey.set(key, line)
    return { rate_plan_id: plan, ...columns }
  }

  #columns(cells: readonly string[], path: string): RateColumns | RequestProblem[] {
    // No cell contains NUL: such a table is refused.
    const key = this.#termCells.map((index) => cells[index]).join('\0')
    const terms = this.#terms.get(key)
    if (terms !== undefined) {
      const [prefix, description] = ownColumns.map((name) => this.#cell(cells, name))
      const own = ownBody.safeParse({ prefix: prefix ?? '', description })
      if (own.success)
        return { ...terms, prefix: own.data.prefix, description: own.data.description ?? null }
    }
    const columns = this.#checked(cells, path)
    if (!Array.isArray(columns) && this.#terms.size < maxTerms) this.#terms.set(key, columns)
    return columns
  }

  #checked(cells: readonly string[], path: string): RateColumns | RequestProblem[] {
    const named = Object.fromEntries(this.#header.map((name, index) => [name, cells[index] ?? '']))
    const parsed = rateBody.safeParse(bodyOf(named))
    const problems = parsed.success ? [rateProblem(parsed.data)] : problemsOf(parsed.error)
    const found = problems.filter((problem) => problem !== undefined)
    if (parsed.success && found.length === 0) return rateColumns(parsed.data)
    return found.map((problem) => ({ ...problem, path: `${path}.${problem.path}` }))
  }

  /** An empty cell is an absent one. */
  #cell(cells: readonly string[], name: string): string | undefined {
    const cell = cells[this.#header.indexOf(name)]
    return cell === '' ? undefined : cell
  }
}

/** A total or an average of a deck has none either. */
const emptyPrefix =
  'is empty: the rate would price every number. Remove the line, or import with allow_default=true'

/** Warns of rates that are valid and may be meant otherwise. */
function warningsOf(rates: readonly NewRate[]): Pick<ImportReport, 'warnings'> {
  const count = rates.filter(({ prefix }) => prefix === '').length
  if (count === 0) return {}
  const [has, its] = count === 1 ? ['rate has', 'its plan'] : ['rates have', 'their plans']
  return {
    warnings: [
      `${count} ${has} no prefix: every number that no other rate of ${its} prices has this price`,
    ],
  }
}

const isOwn = (name: string | undefined): boolean => ownColumns.some((own) => own === name)

/** The cells as fields of a JSON body; an empty cell is an absent field. */
function bodyOf(named: Readonly<Record<string, string>>): Record<string, unknown> {
  const body: Record<string, unknown> = {}
  for (const [name, cell] of Object.entries(named)) {
    if (name === 'rate_plan' || (cell === '' && name !== 'prefix')) continue
    if (name.endsWith('increment')) body[name] = /^\d{1,6}$/.test(cell) ? Number(cell) : cell
    else if (name === 'blocked') body[name] = flagIn(cell)
    else body[name] = cell
  }
  return body
}

export interface ImportOrder {
  readonly mode: 'merge' | 'replace'
  /** Nothing is stored. */
  readonly isDryRun: boolean
  /** A line may have an empty prefix, and so price every number. */
  readonly allowsDefault: boolean
}

/**
 * Stores the rates, all or nothing: a rate with the same plan, prefix and start is replaced.
 * `replace` also removes the other rates of these plans.
 */
export async function storeRates(
  store: Tables,
  rates: readonly NewRate[],
  { mode, isDryRun }: Pick<ImportOrder, 'mode' | 'isDryRun'>,
  scope: RequestScope,
): Promise<ImportReport> {
  const plans = plansOf(rates)
  const put = ratesToPut(store, rates)
  const warnings = warningsOf(rates)
  const counted = () =>
    writeWithinLimits(store, scope, ['rates'], async () => {
      for (const value of plans)
        await refuseUncounted(store, { column: 'rate_plan_id', value }, 'caps', scope)
      const before = await countRates(store, plans)
      const removed = await refuseDatedPrices(store, plans, async () => {
        const others = mode === 'merge' ? 0 : await removeRates(store, plans)
        await put()
        return others
      })
      const created = (await countRates(store, plans)) - (before - removed)
      const updated = rates.length - created
      return { imported: rates.length, created, updated, removed, ...warnings }
    })
  return triedOut(store, isDryRun, counted)
}

/** Rates that memory has to read again. */
export interface ChangedRates {
  readonly plans: readonly number[]
  /** Undefined: there are many, or others were removed. */
  readonly prefixes: readonly { readonly planId: number; readonly prefix: string }[] | undefined
}

const FEW_RATES = 50

export const changedBy = (
  rates: readonly NewRate[],
  { mode }: Pick<ImportOrder, 'mode'>,
): ChangedRates => ({
  plans: plansOf(rates),
  prefixes:
    mode === 'replace' || rates.length > FEW_RATES
      ? undefined
      : rates.map(({ rate_plan_id: planId, prefix }) => ({ planId, prefix })),
})

const plansOf = (rates: readonly NewRate[]): readonly number[] => [
  ...new Set(rates.map((rate) => rate.rate_plan_id)),
]

const removeRates = (store: Tables, plans: readonly number[]): Promise<number> =>
  execute(store, store.db.deleteFrom('rate').where('rate_plan_id', 'in', plans))

async function countRates(store: Tables, plans: readonly number[]): Promise<number> {
  const query = store.db
    .selectFrom('rate')
    .select((row) => row.fn.countAll<number>().as('n'))
    .where('rate_plan_id', 'in', plans)
  return (await first(store, query))?.n ?? 0
}

/** The columns of a stored rate, as `rateCsvColumns` names them. */
export const rateCells = (row: StoredRate): readonly (string | number | null)[] => [
  row.prefix,
  row.description,
  moneyToDecimal(row.rate_per_minute_micros),
  moneyToDecimal(row.connect_fee_micros),
  row.first_increment_seconds,
  moneyToDecimal(row.first_rate_per_minute_micros),
  row.increment_seconds,
  String(fromFlag(row.is_blocked)),
  row.period,
  timeOrNull(row.effective_from_at),
  timeOrNull(row.effective_to_at),
]
