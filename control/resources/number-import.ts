/**
 * `POST /numbers/import`: imports a table of numbers, all or nothing, and reports invalid lines.
 * A number that is there already gets what its line says; columns that the table lacks keep their
 * values.
 */
import { setImmediate as nextTurn } from 'node:timers/promises'
import { type Insertable, type Selectable, sql } from 'kysely'
import type { z } from 'zod'
import { fromFlag, moneyToDecimal, toFlag } from '../../schema/columns.ts'
import { type NumberRange, rangeColumns } from '../../schema/rules/number-ranges.ts'
import { all, execute, type Tables } from '../../schema/sql/query.ts'
import type { PhoneNumberTable } from '../../schema/tables/tenants.ts'
import { writeWithinLimits } from '../auth/tenant-limits.ts'
import type { RequestScope } from '../auth/tenants.ts'
import { ApiError, type RequestProblem } from '../http/api-error.ts'
import { problemsOf } from '../http/validate.ts'
import { timeOrNull } from '../http/view-fields.ts'
import { compiled } from './table-rows.ts'
import { refuseUncounted } from './braked.ts'
import { targetOf } from './call-target.ts'
import { badTable, flagIn, maxReportedProblems, readLines, triedOut } from './csv-table.ts'
import { numberBody, rangeOfBody, rangeProblem, refuseOtherOwner } from './numbers.ts'
import { resolve, tenantOf } from './references.ts'
import { ownsRange } from './tenancy.ts'

const targetColumns = ['set_id', 'extension', 'extension_domain', 'agent'] as const

export const numberCsvColumns = [
  'number',
  'last_number',
  'tenant',
  'customer',
  ...targetColumns,
  'display_name',
  'emergency_address',
  'verified_since',
  'attestation',
  'monthly_fee',
  'is_active',
] as const

type NumberColumn = (typeof numberCsvColumns)[number]
const known: ReadonlySet<string> = new Set(numberCsvColumns)
const maxNumbers = 100_000

/** Plain data: it is sent to the thread. */
export interface NumberWork {
  readonly kind: 'numbers'
  /** The bytes as they arrived. */
  readonly table: Uint8Array
  readonly isDryRun: boolean
  /** Columns that need a further scope. */
  readonly may: { readonly targets: boolean; readonly fees: boolean }
  readonly scope: RequestScope
}

export interface NumberReport {
  readonly imported: number
  readonly created: number
  readonly updated: number
}

export interface NumberOutcome {
  readonly kind: 'numbers'
  readonly report: NumberReport
  /** Rows that memory has to read again, and the customers that own them or did so. */
  readonly changed: { readonly ids: readonly number[]; readonly customerIds: readonly number[] }
}

/** Throws an `ApiError` for a table that cannot be imported. */
export async function importNumbers(
  store: Tables,
  { table, isDryRun, may, scope }: NumberWork,
): Promise<NumberOutcome> {
  let named: ReadonlySet<string> = new Set()
  const lines = await readLines<NumberLine>(
    table,
    { known, needed: ['number'], most: maxNumbers },
    (header) => {
      named = new Set(header)
      refuseBeyond(named, may)
      return ({ line, cells }) => readLine(line, header, cells)
    },
    nextTurn,
  )
  refuseOverlaps(lines)
  return triedOut(store, isDryRun, () =>
    writeWithinLimits(store, scope, ['numbers'], () =>
      new NumberWriter(store, named, scope).write(lines),
    ),
  )
}

function refuseBeyond(named: ReadonlySet<string>, { targets, fees }: NumberWork['may']): void {
  if (!targets && targetColumns.some((column) => named.has(column)))
    throw new ApiError(403, 'insufficient_scope', 'Targets of calls need the scope routes:write')
  if (!fees && named.has('monthly_fee'))
    throw new ApiError(
      403,
      'insufficient_scope',
      'The column monthly_fee needs the scope rates:write or wallets:write',
    )
}

interface NumberLine {
  readonly line: number
  readonly body: z.output<typeof numberBody>
  readonly range: NumberRange
}

/** An empty cell is an absent field. */
function readLine(
  line: number,
  header: readonly string[],
  cells: readonly string[],
): NumberLine | readonly RequestProblem[] {
  const fields = header.flatMap((name, index) => {
    const cell = cells[index] ?? ''
    return cell === '' ? [] : [[name, valueOf(name, cell)]]
  })
  const parsed = numberBody.safeParse(Object.fromEntries(fields))
  if (!parsed.success) return problemsOf(parsed.error).map((problem) => atLine(line, problem))
  const range = rangeOfBody(parsed.data)
  const problem = rangeProblem(range)
  return problem === undefined ? { line, body: parsed.data, range } : [atLine(line, problem)]
}

function valueOf(column: string, cell: string): unknown {
  if (column === 'is_active') return flagIn(cell)
  return column === 'set_id' && /^[1-9]\d{0,8}$/.test(cell) ? Number(cell) : cell
}

const atLine = (line: number, { path, message }: RequestProblem): RequestProblem => ({
  path: `lines.${line}.${path}`,
  message,
})

/** Throws 400 where two lines have the same number. */
function refuseOverlaps(lines: readonly NumberLine[]): void {
  const sorted = lines.toSorted(({ range: one }, { range: other }) =>
    one.digits === other.digits ? compared(one.first, other.first) : one.digits - other.digits,
  )
  const problems: RequestProblem[] = []
  for (const [index, each] of sorted.entries()) {
    const before = sorted[index - 1]
    const isApart =
      before?.range.digits !== each.range.digits || before.range.last < each.range.first
    if (before === undefined || isApart) continue
    const [earlier, later] = [before.line, each.line].toSorted((one, other) => one - other)
    if (problems.length < maxReportedProblems)
      problems.push({ path: `lines.${later}.number`, message: `repeats line ${earlier}` })
  }
  if (problems.length > 0) throw badTable('Lines have the same numbers', problems)
}

const compared = (one: string, other: string): number => (one < other ? -1 : Number(one > other))

type NumberRow = Selectable<PhoneNumberTable>
type NewNumber = Insertable<PhoneNumberTable>

/** Writes the lines of one table, inside its transaction. */
class NumberWriter {
  readonly #store: Tables
  readonly #named: ReadonlySet<string>
  readonly #scope: RequestScope
  readonly #problems: RequestProblem[] = []
  readonly #owners = new Set<number>()
  readonly #tenants = new Map<string, number | null>()
  readonly #customers = new Map<string, number | null>()
  readonly #targets = new Map<string, Awaited<ReturnType<typeof targetOf>>>()

  constructor(store: Tables, named: ReadonlySet<string>, scope: RequestScope) {
    this.#store = store
    this.#named = named
    this.#scope = scope
  }

  async write(lines: readonly NumberLine[]): Promise<NumberOutcome> {
    const created: NumberLine[] = []
    const ids: number[] = []
    for (const slice of slicesOf(lines)) {
      const stored = await this.#stored(slice)
      const added: NewNumber[] = []
      const changed: NewNumber[] = []
      for (const line of slice) {
        const before = stored.get(keyOf(line.range))
        const columns = await this.#columns(line, before)
        if (columns === undefined) continue
        if (before === undefined) {
          added.push(columns)
          created.push(line)
        } else if (isOther(columns, before)) {
          changed.push({ ...columns, id: before.id })
          ids.push(before.id)
        }
      }
      await this.#insert(added)
      await this.#update(changed)
    }
    this.#refuseProblems('not valid')
    const updated = ids.length
    if (created.length + updated > 0) await this.#refuseTaken(lines)
    for (const id of await this.#idsOf(created)) ids.push(id)
    const report = { imported: lines.length, created: created.length, updated }
    return { kind: 'numbers', report, changed: { ids, customerIds: [...this.#owners] } }
  }

  async #stored(lines: readonly NumberLine[]): Promise<ReadonlyMap<string, NumberRow>> {
    const firsts = lines.map(({ range }) => range.first)
    const query = this.#store.db.selectFrom('phone_number').selectAll()
    const rows = await all(
      this.#store,
      query.where('first_number', 'in', firsts).where('digits', '>', 0),
    )
    return new Map(rows.map((row) => [row.first_number, row]))
  }

  /** The row as the line has it; undefined: the line is not valid. */
  async #columns(line: NumberLine, before: NumberRow | undefined): Promise<NewNumber | undefined> {
    try {
      const { range, body } = line
      const { now, tenantId: writer } = this.#scope
      const tenantId = await this.#tenantOf(line, before)
      const isSame = before?.last_number === range.last && before.tenant_id === tenantId
      await this.#refuseForeign(range, before, isSame)
      const customer_id = await this.#customerOf(line, before, tenantId)
      if (writer !== null && before?.customer_id != null && before.customer_id !== customer_id)
        await refuseUncounted(
          this.#store,
          { column: 'id', value: before.customer_id },
          'all',
          this.#scope,
        )
      for (const id of [before?.customer_id, customer_id]) if (id != null) this.#owners.add(id)
      const target = await this.#targetOf(line, before, tenantId)
      const own = {
        display_name: this.#has('display_name', body.display_name, before?.display_name),
        emergency_address: this.#has(
          'emergency_address',
          body.emergency_address,
          before?.emergency_address,
        ),
        verified_since_at: this.#has(
          'verified_since',
          body.verified_since,
          before?.verified_since_at,
        ),
        attestation: this.#has('attestation', body.attestation, before?.attestation),
        monthly_fee_micros:
          this.#has('monthly_fee', body.monthly_fee, before?.monthly_fee_micros) ?? 0,
        is_active: this.#has('is_active', toFlag(body.is_active), before?.is_active) ?? 1,
      }
      this.#refusePlatformOnly(own, before)
      return {
        ...rangeColumns(range),
        ...own,
        ...target,
        number: before?.number ?? `+${range.first}`,
        tenant_id: tenantId,
        customer_id,
        created_at: before?.created_at ?? now,
        updated_at: now,
      }
    } catch (error) {
      if (!(error instanceof ApiError) || error.details === undefined) throw error
      this.#wrong(line, error.details)
      return undefined
    }
  }

  /** The value of a column that the table has, or else the stored one. */
  #has<T>(
    column: NumberColumn,
    given: T | null | undefined,
    stored: T | null | undefined,
  ): T | null {
    return (this.#named.has(column) || stored === undefined ? given : stored) ?? null
  }

  async #tenantOf({ body }: NumberLine, before: NumberRow | undefined): Promise<number | null> {
    if (before !== undefined && (!this.#named.has('tenant') || this.#scope.tenantId !== null))
      return before.tenant_id
    const key = String(body.tenant ?? '')
    const kept = this.#tenants.get(key)
    if (kept !== undefined) return kept
    const found = await tenantOf(this.#store, body.tenant, this.#scope)
    this.#tenants.set(key, found)
    return found
  }

  /** A tenant learns nothing about numbers of others. */
  async #refuseForeign(
    range: NumberRange,
    before: NumberRow | undefined,
    isSame: boolean,
  ): Promise<void> {
    const { tenantId } = this.#scope
    if (tenantId === null || (isSame && before?.tenant_id === tenantId)) return
    if (!(await ownsRange(this.#store, tenantId, range)))
      throw problemAt('number', 'is not a number of this tenant')
    if (before !== undefined && before.tenant_id !== tenantId) throw problemAt('number', taken)
  }

  async #customerOf(
    { body }: NumberLine,
    before: NumberRow | undefined,
    tenantId: number | null,
  ): Promise<number | null> {
    if (before !== undefined && !this.#named.has('customer')) return before.customer_id
    const { customer = null } = body
    const key = JSON.stringify([tenantId, customer])
    const kept = this.#customers.get(key)
    if (kept !== undefined) return kept
    const owner = { tenantId, scope: this.#scope, path: 'customer' }
    const found = await resolve(this.#store, 'customer', customer, owner)
    if (found !== null) await refuseOtherOwner(this.#store, found, tenantId)
    this.#customers.set(key, found)
    return found
  }

  async #targetOf(
    { body }: NumberLine,
    before: NumberRow | undefined,
    tenantId: number | null,
  ): Promise<Pick<NewNumber, 'target_type' | 'target'>> {
    if (before !== undefined && !targetColumns.some((column) => this.#named.has(column)))
      return { target_type: before.target_type, target: before.target }
    const key = JSON.stringify([tenantId, ...targetColumns.map((column) => body[column])])
    const kept = this.#targets.get(key)
    const found =
      kept === undefined
        ? await targetOf({
            body,
            tenantId,
            scope: this.#scope,
            store: this.#store,
            table: 'phone_number',
          })
        : kept
    this.#targets.set(key, found)
    return { target_type: found?.[0] ?? null, target: found?.[1] ?? null }
  }

  #refusePlatformOnly(
    own: Pick<NumberRow, 'verified_since_at' | 'attestation'>,
    before: NumberRow | undefined,
  ): void {
    if (this.#scope.tenantId === null) return
    if (own.verified_since_at !== (before?.verified_since_at ?? null))
      throw problemAt('verified_since', platformOnly)
    if (own.attestation !== (before?.attestation ?? null))
      throw problemAt('attestation', platformOnly)
  }

  /** All in one statement: one for each takes minutes on a server. */
  async #update(rows: readonly NewNumber[]): Promise<void> {
    if (rows.length === 0) return
    const query = this.#store.db
      .insertInto('phone_number')
      .values(rows)
      .onConflict((conflict) =>
        conflict
          .column('id')
          .doUpdateSet(({ ref }) =>
            Object.fromEntries(writtenColumns.map((name) => [name, ref(`excluded.${name}`)])),
          ),
      )
    await execute(this.#store, query)
  }

  async #insert(rows: readonly NewNumber[]): Promise<void> {
    if (rows.length > 0)
      await execute(this.#store, this.#store.db.insertInto('phone_number').values(rows))
  }

  /** Rows do not overlap each other where each one begins behind the one before. */
  async #refuseTaken(lines: readonly NumberLine[]): Promise<void> {
    const byFirst = new Map(lines.map((each) => [each.range.first, each]))
    const rows = await all<{ first_number: string; before: string }>(
      this.#store,
      compiled(
        this.#store,
        sql`SELECT first_number, before FROM (
          SELECT first_number,
            LAG(first_number) OVER by_number AS before,
            LAG(last_number) OVER by_number AS last_before
          FROM phone_number WHERE digits > 0
          WINDOW by_number AS (PARTITION BY digits ORDER BY first_number, id)
        ) AS pairs WHERE last_before >= first_number`,
      ),
    )
    for (const { first_number, before } of rows) {
      const line = byFirst.get(first_number) ?? byFirst.get(before)
      if (line !== undefined) this.#wrong(line, [{ path: 'number', message: taken }])
    }
    this.#refuseProblems('taken')
  }

  async #idsOf(lines: readonly NumberLine[]): Promise<readonly number[]> {
    const ids: number[] = []
    for (const slice of slicesOf(lines))
      for (const row of (await this.#stored(slice)).values()) ids.push(row.id)
    return ids
  }

  #wrong({ line }: NumberLine, problems: readonly RequestProblem[]): void {
    if (this.#problems.length < maxReportedProblems)
      this.#problems.push(...problems.map((problem) => atLine(line, problem)))
  }

  #refuseProblems(why: 'not valid' | 'taken'): void {
    if (this.#problems.length === 0) return
    if (why === 'not valid') throw badTable('Lines are not valid', this.#problems)
    throw new ApiError(409, 'duplicate', 'Other rows have these numbers', {
      details: this.#problems,
    })
  }
}

const keyOf = ({ first }: NumberRange): string => first

const taken = 'is already taken'
const platformOnly = 'can only be set by the platform'

/** Whether the line changes anything. */
const isOther = (columns: NewNumber, before: NumberRow): boolean =>
  valueColumns.some((name) => (columns[name] ?? null) !== before[name])

/** Columns of a row that a line may change. */
const valueColumns = [
  ...(['last_number', 'digits', 'tenant_id', 'customer_id', 'target_type', 'target'] as const),
  ...(['display_name', 'emergency_address', 'verified_since_at', 'attestation'] as const),
  ...(['monthly_fee_micros', 'is_active'] as const),
]
const writtenColumns = [...valueColumns, 'updated_at'] as const

/** Each has 17 columns: a statement has fewer than 32,766 values. */
const ROWS_AT_ONCE = 500

/** Without a turn of the event loop between them: a transaction on SQLite has none. */
function* slicesOf<T>(items: readonly T[]): Generator<readonly T[]> {
  for (let start = 0; start < items.length; start += ROWS_AT_ONCE)
    yield items.slice(start, start + ROWS_AT_ONCE)
}

const problemAt = (path: string, message: string): ApiError =>
  new ApiError(400, 'validation_failed', 'The line is not valid', { details: [{ path, message }] })

/** A stored number with the names of its references, as it is exported. */
export interface ExportedNumber extends NumberRow {
  readonly tenant: string | null
  readonly customer: string | null
  readonly agent: string | null
}

/** Returns at most `limit` numbers after this id. */
export const numbersAfter = (
  store: Tables,
  { tenantId }: RequestScope,
  after: number,
  limit: number,
): Promise<ExportedNumber[]> =>
  all<ExportedNumber>(
    store,
    compiled(
      store,
      sql<ExportedNumber>`
        SELECT phone_number.*, tenant.slug AS tenant, customer.name AS customer,
          ai_agent.name AS agent
        FROM phone_number
        LEFT JOIN tenant ON tenant.id = phone_number.tenant_id
        LEFT JOIN customer ON customer.id = phone_number.customer_id
        LEFT JOIN ai_agent
          ON ai_agent.id = CASE WHEN target_type = 'agent' THEN CAST(target AS integer) END
        WHERE phone_number.id > ${after} AND digits > 0
          AND ${tenantId === null ? sql`true` : sql`phone_number.tenant_id = ${tenantId}`}
        ORDER BY phone_number.id LIMIT ${limit}`,
    ),
  )

/** The columns of a stored number, as `numberCsvColumns` names them. */
export function numberCells(row: ExportedNumber): readonly (string | number | null)[] {
  const [extension = null, domain = null] =
    row.target_type === 'extension' ? (row.target ?? '').split('@') : []
  return [
    `+${row.first_number}`,
    row.last_number === row.first_number ? null : `+${row.last_number}`,
    row.tenant,
    row.customer,
    row.target_type === 'set' ? row.target : null,
    extension,
    domain,
    row.agent,
    row.display_name,
    row.emergency_address,
    timeOrNull(row.verified_since_at),
    row.attestation,
    moneyToDecimal(row.monthly_fee_micros),
    String(fromFlag(row.is_active)),
  ]
}
