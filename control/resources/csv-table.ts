/** Tables of rows that are imported, all or nothing, with what is wrong in each line. */
import type { Tables } from '../../schema/sql/query.ts'
import { ApiError, type RequestProblem } from '../http/api-error.ts'
import { quoted } from '../http/clean-text.ts'
import { write } from '../http/rows.ts'
import { CsvProblem, type CsvRecord, csvRecords } from './csv-records.ts'

export interface TableColumns {
  readonly known: ReadonlySet<string>
  readonly needed: readonly string[]
  /** Lines, without the header. */
  readonly most: number
}

type ReadLine<Line> = (record: CsvRecord) => Line | Problems | Promise<Line | Problems>
type Problems = readonly RequestProblem[]

export const maxReportedProblems = 100
/** Then the rest of the table is not read. */
const maxWrongLines = 10_000
/** A description has 200. */
const maxCellLength = 400

/**
 * Parses and checks every line. Throws 400 with the first hundred problems, each with its line.
 *
 * @param pause gives other work a turn.
 */
export async function readLines<Line extends object>(
  table: Uint8Array,
  columns: TableColumns,
  readerOf: (header: readonly string[]) => ReadLine<Line>,
  pause: () => Promise<unknown>,
): Promise<readonly Line[]> {
  const lines: Line[] = []
  const problems: RequestProblem[] = []
  let header: readonly string[] = []
  let read: ReadLine<Line> | undefined
  let wrongLines = 0
  const wrong = (found: readonly RequestProblem[]): void => {
    wrongLines += 1
    problems.push(...found.slice(0, maxReportedProblems - problems.length))
  }
  try {
    for await (const records of csvRecords(table, pause))
      for (const { line: number, cells } of records) {
        const record = { line: number, cells: cells.map(unmarked) }
        if (read === undefined) {
          header = headerOf(record, columns)
          read = readerOf(header)
          continue
        }
        const found = lengthProblem(record, header) ?? read(record)
        const line = found instanceof Promise ? await found : found
        if (isProblems(line)) wrong(line)
        else lines.push(line)
        if (lines.length + wrongLines > columns.most)
          throw badTable(`The table has more than ${columns.most} lines`)
        if (wrongLines > maxWrongLines)
          throw badTable(`More than ${maxWrongLines} lines are not valid`, problems)
      }
  } catch (error) {
    if (!(error instanceof CsvProblem)) throw error
    if (error.line === undefined) throw badTable(error.message)
    wrong([{ path: `lines.${error.line}`, message: error.message }])
  }
  if (wrongLines > 0)
    throw badTable(
      wrongLines === 1 ? '1 line is not valid' : `${wrongLines} lines are not valid`,
      problems,
    )
  if (lines.length === 0) throw badTable('The table has no lines')
  return lines
}

/** Lines are objects that are no lists. */
const isProblems = (line: object): line is Problems => Array.isArray(line)

function lengthProblem(
  { line, cells }: CsvRecord,
  { length }: readonly string[],
): Problems | undefined {
  const path = `lines.${line}`
  if (cells.length !== length)
    return [{ path, message: `has ${cells.length} cells, the header has ${length}` }]
  if (cells.some((cell) => cell.length > maxCellLength))
    return [{ path, message: `has a cell of more than ${maxCellLength} characters` }]
  return undefined
}

function headerOf(
  { line, cells }: CsvRecord,
  { known: allowed, needed }: TableColumns,
): readonly string[] {
  const path = `lines.${line}`
  const names = cells.map((cell) => cell.toLowerCase())
  const known = new Set<string>()
  const problems: RequestProblem[] = []
  for (const name of names) {
    if (problems.length === maxReportedProblems) break
    if (!allowed.has(name))
      problems.push({
        path,
        message: `the column ${quoted(name)} is not known; known are ${[...allowed].join(', ')}`,
      })
    else if (known.has(name)) problems.push({ path, message: `the column ${name} appears twice` })
    known.add(name)
  }
  for (const name of needed)
    if (!known.has(name)) problems.push({ path, message: `the column ${name} is missing` })
  if (problems.length > 0) throw badTable('The header of the table is not valid', problems)
  return names
}

const flags: Readonly<Record<string, boolean>> = {
  true: true,
  yes: true,
  '1': true,
  false: false,
  no: false,
  '0': false,
}

/** A flag as people write it; another text stays, and is refused as a flag. */
export const flagIn = (cell: string): boolean | string => flags[cell.toLowerCase()] ?? cell

export const badTable = (message: string, details?: readonly RequestProblem[]): ApiError =>
  new ApiError(400, 'validation_failed', message, details === undefined ? {} : { details })

/** Thrown to roll a dry run back. */
class DryRun<Report> extends Error {
  readonly report: Report

  constructor(report: Report) {
    super('dry run')
    this.report = report
  }
}

/** Runs `work` in a transaction, which a dry run rolls back. */
export async function triedOut<Report>(
  store: Tables,
  isDryRun: boolean,
  work: () => Promise<Report>,
): Promise<Report> {
  let tried: DryRun<Report> | undefined
  try {
    return await write(store, async () => {
      const report = await work()
      if (!isDryRun) return report
      tried = new DryRun(report)
      throw tried
    })
  } catch (error) {
    if (tried !== undefined && error === tried) return tried.report
    throw error
  }
}

/**
 * One line, without its line end. A text that a spreadsheet would run as a formula is marked,
 * because tenants choose names; `readLines` takes the marks off.
 */
export const csvLine = (cells: readonly (string | number | null)[]): string =>
  cells.map((cell) => csvCell(cell === null ? '' : String(cell))).join(',')

function csvCell(given: string): string {
  const text = given.replace(formulas, "$1'")
  return /[",;\t\r\n]|^\s|\s$/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}

/**
 * The beginning of a formula, also behind what some spreadsheets take as the end of a cell; a
 * signed number is none. With marks in front it is one, too: so each text is read as it was.
 */
const formula = String.raw`(?:[^\S\t\r\n]|')*(?:[=@\uff1d\uff20]|[+\-\uff0b\uff0d](?!\d*$)|[\t\r])`
const formulas = new RegExp(String.raw`(^|[;\t\r\n])(?=${formula})`, 'g')
const markedFormulas = new RegExp(String.raw`(^|[;\t\r\n])'(?=${formula})`, 'g')

const unmarked = (cell: string): string =>
  cell.includes("'") ? cell.replace(markedFormulas, '$1') : cell
