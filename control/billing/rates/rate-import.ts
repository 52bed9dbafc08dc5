/** `POST /rates/import`: a table of rates, all or nothing, with an error for every wrong line. */
import { setImmediate } from 'node:timers/promises'
import { sql } from 'kysely'
import { fromFlag, moneyToDecimal, timeToText } from '../../../schema/columns.ts'
import { compile } from '../../../schema/compiled.ts'
import type { Store } from '../../../schema/open.ts'
import { execute, first, transaction } from '../../../schema/query.ts'
import { ApiError, type ErrorDetail } from '../../http/api-error.ts'
import { problemsOf } from '../../http/validate.ts'
import { parseCsv, type CsvRecord } from './csv.ts'
import { rateBody } from './rate-body.ts'
import { rateColumns, rateProblem, type RateRow } from './rate-store.ts'

export const rateCsvColumns = [
  ...(['prefix', 'description', 'rate_per_minute', 'connect_fee', 'first_increment'] as const),
  ...(['first_rate_per_minute', 'increment', 'blocked', 'effective_from', 'effective_to'] as const),
]

/** Beside those: the plan of a line, where one file holds several. */
const knownColumns = new Set<string>([...rateCsvColumns, 'rate_plan'])

export interface ImportedRate extends ReturnType<typeof rateColumns> {
  readonly rate_plan_id: number
}

export interface ImportReport {
  readonly imported: number
  readonly created: number
  readonly updated: number
  readonly removed: number
}

/** `planOf` answers the plan of a line by what its cell names (undefined: nothing), or why there is none. */
export type PlanOf = (name: string | undefined) => number | ErrorDetail

const maxRates = 250_000
const maxReportedProblems = 100
/** Lines between two turns of the event loop: about 5 ms, so that calls are answered meanwhile. */
const slice = 250

/** Checks every line. Throws 400 with the first hundred problems, each with its line. */
export async function readRates(text: string, planOf: PlanOf): Promise<readonly ImportedRate[]> {
  const rates: ImportedRate[] = []
  const problems: ErrorDetail[] = []
  const linesByKey = new Map<string, number>()
  let header: readonly string[] | undefined
  let wrongLines = 0
  for (const step of parseCsv(text)) {
    if (step.kind === 'problem') {
      wrongLines += 1
      problems.push({ path: `lines.${step.line}`, message: step.message })
      break
    }
    const { record } = step
    if (header === undefined) {
      header = headerOf(record)
      continue
    }
    const rate = readRate(record, header, planOf, linesByKey)
    if (!Array.isArray(rate)) rates.push(rate)
    else {
      wrongLines += 1
      if (problems.length < maxReportedProblems) problems.push(...rate)
    }
    if (rates.length > maxRates) throw badTable(`The table has more than ${maxRates} lines`)
    if (record.line % slice === 0) await setImmediate()
  }
  if (wrongLines > 0) throw badTable(`${wrongLines} lines are not valid`, problems)
  if (rates.length === 0) throw badTable('The table has no lines')
  return rates
}

function headerOf({ line, cells }: CsvRecord): readonly string[] {
  const names = cells.map((cell) => cell.toLowerCase())
  const path = `lines.${line}`
  const problems: ErrorDetail[] = [
    ...names
      .filter((name) => !knownColumns.has(name))
      .map((name) => ({ path, message: `the column ${JSON.stringify(name)} is not known` })),
    ...names
      .filter((name, index) => names.indexOf(name) < index)
      .map((name) => ({ path, message: `the column ${name} is there twice` })),
    ...(['prefix', 'rate_per_minute'] as const)
      .filter((name) => !names.includes(name))
      .map((name) => ({ path, message: `the column ${name} is missing` })),
  ]
  if (problems.length > 0) throw badTable('The header of the table is not valid', problems)
  return names
}

function readRate(
  { line, cells }: CsvRecord,
  header: readonly string[],
  planOf: PlanOf,
  linesByKey: Map<string, number>,
): ImportedRate | ErrorDetail[] {
  const path = `lines.${line}`
  if (cells.length !== header.length)
    return [{ path, message: `has ${cells.length} cells, the header has ${header.length}` }]
  const named = Object.fromEntries(header.map((name, index) => [name, cells[index] ?? '']))
  const parsed = rateBody.safeParse(bodyOf(named))
  if (!parsed.success)
    return problemsOf(parsed.error).map((problem) => ({
      path: `${path}.${problem.path}`,
      message: problem.message,
    }))
  const plan = planOf(named['rate_plan'] === '' ? undefined : named['rate_plan'])
  if (typeof plan !== 'number') return [{ ...plan, path: `${path}.${plan.path}` }]
  const problem = rateProblem(parsed.data)
  if (problem !== undefined) return [{ ...problem, path: `${path}.${problem.path}` }]
  const columns = rateColumns(parsed.data)
  const key = `${plan} ${columns.prefix} ${columns.effective_from_at}`
  const twin = linesByKey.get(key)
  if (twin !== undefined) return [{ path: `${path}.prefix`, message: `repeats line ${twin}` }]
  linesByKey.set(key, line)
  return { rate_plan_id: plan, ...columns }
}

const flags: Readonly<Record<string, boolean>> = {
  ...{ true: true, yes: true, '1': true },
  ...{ false: false, no: false, '0': false },
}

/** The cells as the JSON body would have them; an empty cell is an absent field. */
function bodyOf(named: Readonly<Record<string, string>>): Record<string, unknown> {
  const body: Record<string, unknown> = {}
  for (const [name, cell] of Object.entries(named)) {
    if (name === 'rate_plan' || (cell === '' && name !== 'prefix')) continue
    if (name.endsWith('increment')) body[name] = /^\d{1,6}$/.test(cell) ? Number(cell) : cell
    else if (name === 'blocked') body[name] = flags[cell.toLowerCase()] ?? cell
    else body[name] = cell
  }
  return body
}

const badTable = (message: string, details?: readonly ErrorDetail[]): ApiError =>
  new ApiError(400, 'validation_failed', message, details === undefined ? {} : { details })

/**
 * Stores the rates in one transaction: a rate of the same plan, prefix and start is replaced. With
 * `replace` the other rates of these plans are removed.
 */
export function storeRates(
  store: Store,
  rates: readonly ImportedRate[],
  mode: 'merge' | 'replace',
): ImportReport {
  const plans = [...new Set(rates.map((rate) => rate.rate_plan_id))]
  const put = upsertStatement(store)
  return transaction(store, () => {
    const before = countRates(store, plans)
    const removed =
      mode === 'merge'
        ? 0
        : execute(store, store.db.deleteFrom('rate').where('rate_plan_id', 'in', plans))
    for (const rate of rates) put.run(rate)
    const created = countRates(store, plans) - (before - removed)
    return { imported: rates.length, created, updated: rates.length - created, removed }
  })
}

function countRates(store: Store, plans: readonly number[]): number {
  const query = store.db
    .selectFrom('rate')
    .select((row) => row.fn.countAll<number>().as('n'))
    .where('rate_plan_id', 'in', plans)
  return first(store, query)?.n ?? 0
}

const upsertStatement = (store: Store) =>
  compile<ImportedRate, unknown>(store, (db, param) => {
    const values = {
      description: param('description'),
      rate_per_minute_micros: param('rate_per_minute_micros'),
      connect_fee_micros: param('connect_fee_micros'),
      first_increment_seconds: param('first_increment_seconds'),
      first_rate_per_minute_micros: param('first_rate_per_minute_micros'),
      increment_seconds: param('increment_seconds'),
      is_blocked: param('is_blocked'),
      effective_to_at: param('effective_to_at'),
    }
    return db
      .insertInto('rate')
      .values({
        rate_plan_id: param('rate_plan_id'),
        prefix: param('prefix'),
        effective_from_at: param('effective_from_at'),
        ...values,
      })
      .onConflict((conflict) =>
        conflict
          .expression(sql`rate_plan_id, prefix, ifnull(effective_from_at, -1)`)
          .doUpdateSet(values),
      )
  })

/** The columns of a stored rate, as `rateCsvColumns` names them. */
export const rateCells = (row: RateRow): readonly (string | number | null)[] => [
  row.prefix,
  row.description,
  moneyToDecimal(row.rate_per_minute_micros),
  moneyToDecimal(row.connect_fee_micros),
  row.first_increment_seconds,
  moneyToDecimal(row.first_rate_per_minute_micros),
  row.increment_seconds,
  String(fromFlag(row.is_blocked)),
  row.effective_from_at === null ? null : timeToText(row.effective_from_at),
  row.effective_to_at === null ? null : timeToText(row.effective_to_at),
]
