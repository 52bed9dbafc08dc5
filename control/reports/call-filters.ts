/** The groupings of calls, the groups with daily totals, and the filters of calls. */
import { closeSync, openSync, rmSync } from 'node:fs'
import Sqlite from 'better-sqlite3'
import { Kysely, type RawBuilder, sql, type SqlBool, SqliteDialect } from 'kysely'
import { MINUTE_MS, HOUR_MS, DAY_MS } from '../../schema/clock.ts'
import type { Direction, Disposition } from '../../schema/contracts/field-values.ts'
import type { Database } from '../../schema/tables/database.ts'
import { sumTables } from '../../schema/migrations/first/calls.ts'
import * as costs from '../../schema/migrations/costs.ts'
import { blockTables } from '../../schema/migrations/record-columns.ts'
import type { Store } from '../../schema/storage/store.ts'
import { SqliteStatements } from '../../schema/sql/sqlite-statements.ts'
import { startPattern } from '../http/envelope.ts'
import { matchesLike } from '../http/text-match.ts'
import { onNode, spellings } from './cdr-match.ts'
import { costFor } from './own-prices.ts'

export const groupings = [
  'customer',
  'tenant',
  'caller',
  'callee_prefix',
  'node',
  'carrier',
  'denial_code',
  'minute',
  'hour',
] as const
/** Quarters of an hour make the hours and days of every zone. */
export type Grouping = (typeof groupings)[number] | 'quarter'

/** Groups that a filter may name, and that calls of a customer are summed by, too. */
export type MemberDimension = 'caller' | 'callee_prefix' | 'node' | 'carrier' | 'denial_code'
/**
 * `rate_prefix`: the prefix that a call is charged by, of each customer. Anomalies are found by it.
 */
export type Dimension = MemberDimension | 'customer' | 'minute' | 'tenant_minute' | 'rate_prefix'

/** Digits of a called number that its group has, without a leading `+`. */
export const PREFIX_LENGTH = 4

/** Stands for all in `customer_id` and `tenant_id` of sums. */
export const ALL = -1
export const NONE = 0

/** The member for groups that are merged, because a day has too many of them. */
export const OTHERS = '\u0001'

/** Dimensions with totals by customer, too. */
export const paired: ReadonlySet<string> = new Set<MemberDimension>([
  'callee_prefix',
  'node',
  'carrier',
  'denial_code',
])

export const QUARTER_MS = HOUR_MS / 4

/** The group of a record. */
export const memberOf: Readonly<Record<Grouping, RawBuilder<string>>> = {
  customer: sql`coalesce(CAST(cdr.customer_id AS TEXT), '')`,
  tenant: sql`coalesce(CAST(cdr.tenant_id AS TEXT), '')`,
  caller: sql`cdr.caller_id_number`,
  callee_prefix: sql`substr(ltrim(cdr.destination_number, '+'), 1, ${sql.lit(PREFIX_LENGTH)})`,
  node: sql`coalesce(cdr.node, '')`,
  carrier: sql`coalesce(cdr.carrier, '')`,
  denial_code: sql`coalesce(cdr.denial_code, '')`,
  minute: sql`CAST(cdr.start_stamp - cdr.start_stamp % ${sql.lit(MINUTE_MS)} AS TEXT)`,
  quarter: sql`CAST(cdr.start_stamp - cdr.start_stamp % ${sql.lit(QUARTER_MS)} AS TEXT)`,
  hour: sql`CAST(cdr.start_stamp - cdr.start_stamp % ${sql.lit(HOUR_MS)} AS TEXT)`,
}

const partOfMinute = (lengthMs: number): RawBuilder<string> => sql`CASE member
  WHEN ${OTHERS} THEN member
  ELSE CAST(CAST(member AS bigint) - CAST(member AS bigint) % ${sql.lit(lengthMs)} AS TEXT) END`

/** The hour and the quarter of a minute, as daily totals have minutes. */
export const hourOfMinute = partOfMinute(HOUR_MS)
export const quarterOfMinute = partOfMinute(QUARTER_MS)

export const startOfDay = (ms: number): number => Math.floor(ms / DAY_MS) * DAY_MS
export const endOfDay = (ms: number): number => Math.ceil(ms / DAY_MS) * DAY_MS

/** Calls match all that are given. */
export interface CallFilters {
  readonly customerId?: number | undefined
  readonly members?: Readonly<Partial<Record<MemberDimension, string>>> | undefined
  readonly direction?: Direction | undefined
  readonly disposition?: Disposition | undefined
  readonly minCostMicros?: number | undefined
}

type Condition = RawBuilder<SqlBool>

/** Conditions on records of `cdr`. */
export function conditionsOf(
  filters: CallFilters,
  tenantId: number | null,
  customerColumn: RawBuilder<number> = sql`cdr.customer_id`,
): readonly Condition[] {
  const { customerId, members, direction, disposition, minCostMicros } = filters
  return [
    ...given(customerId, (id) => sql`${customerColumn} = ${id}`),
    ...given(direction, (value) => sql`cdr.direction = ${value}`),
    ...given(disposition, (value) => sql`cdr.disposition = ${value}`),
    ...given(minCostMicros, (value) => sql`${costFor(tenantId)} >= ${value}`),
    ...memberFilters(members).map(([dimension, value]) =>
      isMember(dimension, value, columnOf[dimension]),
    ),
  ]
}

const given = <T>(
  value: T | undefined,
  condition: (value: T) => Condition,
): readonly Condition[] => (value === undefined ? [] : [condition(value)])

export const memberFilters = (members: CallFilters['members']) =>
  Object.entries(members ?? {}) as readonly (readonly [MemberDimension, string])[]

/** Whole columns, so that an index may help. */
const columnOf: Readonly<Record<MemberDimension, RawBuilder<string>>> = {
  ...memberOf,
  callee_prefix: sql`ltrim(cdr.destination_number, '+')`,
  node: sql`cdr.node`,
  carrier: sql`cdr.carrier`,
  denial_code: sql`cdr.denial_code`,
}

/** Whether the value of `column` matches a filter. */
export function isMember(
  dimension: MemberDimension,
  value: string,
  column: RawBuilder<string>,
): Condition {
  if (dimension === 'caller') return sql`${column} IN (${sql.join(spellings(value))})`
  if (dimension === 'callee_prefix') return matchesLike(column, value, startPattern)
  if (dimension === 'node') return onNode(column, value)
  return sql`${column} = ${value}`
}

/** The call records and their daily totals: one database on a server, two files with SQLite. */
type Readable = Pick<Store, 'db' | 'statements'>

export interface CallSources {
  readonly store: Readable
  readonly sums: Readable
  /** Milliseconds of a clock that never jumps: long work on records ends in time. */
  readonly steadyNow: () => number
}

/**
 * The sums are in a file of their own: a transaction on them ends in one turn, and one process adds
 * to them.
 */
export const isInFile = ({ store, sums }: CallSources): boolean => sums !== store

/** Version of the tables in the file; a file of another version is made again. */
const VERSION = 5

/**
 * Opens the sums of the database at `path`, which are made again out of the records when their file
 * is missing, damaged or of another version. `:memory:`: of a database in memory.
 */
export function openSums(path: string): Readable {
  const file = path === ':memory:' ? path : `${path}.sums`
  const sqlite = open(file) ?? openAgain(file)
  const db = new Kysely<Database>({ dialect: new SqliteDialect({ database: sqlite }) })
  return { db, statements: new SqliteStatements(sqlite) }
}

function openAgain(file: string): Sqlite.Database {
  for (const suffix of ['', '-wal', '-shm']) rmSync(file + suffix, { force: true })
  const sqlite = open(file)
  if (sqlite === undefined) throw new Error(`${file} cannot be made`)
  return sqlite
}

/** Undefined: the file is damaged, or of another version. */
function open(file: string): Sqlite.Database | undefined {
  // The file names callers: only the owner of the database may read it.
  if (file !== ':memory:') closeSync(openSync(file, 'a', 0o600))
  const sqlite = new Sqlite(file)
  try {
    sqlite.pragma('journal_mode = WAL')
    // Totals that a power cut loses are added up again.
    sqlite.pragma('synchronous = NORMAL')
    // Groups of a day are on different pages: a slice changes about so many.
    sqlite.pragma('cache_size = -8000')
    // A slice of records is grouped there.
    sqlite.pragma('temp_store = MEMORY')
    sqlite
      .transaction(() => {
        if (sqlite.pragma('user_version', { simple: true }) !== 0) return
        sqlite.exec(sumTables + costs.sumTables + blockTables)
        sqlite.pragma(`user_version = ${VERSION}`)
      })
      .immediate()
    if (sqlite.pragma('user_version', { simple: true }) === VERSION) return sqlite
  } catch (error) {
    if (!(error instanceof Sqlite.SqliteError) || !/CORRUPT|NOTADB/.test(error.code)) throw error
  }
  sqlite.close()
  return undefined
}
