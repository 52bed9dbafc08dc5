/**
 * Adds records to the daily totals, slice by slice, each with the watermark in one transaction:
 * after a crash it goes on where the last slice ended. A slice is copied into a table of the
 * connection, grouped there by every dimension, and added to the sums of its days. One instance of
 * several does it at a time. On a server, ids may be committed out of order: those that are missing
 * among others are looked for again until no transaction can bring them any more.
 */
import { type RawBuilder, sql } from 'kysely'
import { type Cancel, DAY_MS, type Schedule } from '../../schema/clock.ts'
import type { Log } from '../../schema/contracts/log.ts'
import {
  all,
  execute,
  first,
  lockedTransaction,
  onOneInstance,
  rawRows,
} from '../../schema/sql/query.ts'
import type { SqlValue } from '../../schema/sql/statements.ts'
import {
  ALL,
  isInFile,
  memberOf,
  NONE,
  OTHERS,
  paired,
  type CallSources,
  startOfDay,
} from './call-filters.ts'
import { markedCurrency } from './own-prices.ts'
import { buildBlocks, markChanged, MAX_BUILT } from './columns/block-builder.ts'
import { type Gap, uuidOf, type Watermark, watermarkOf } from './roll-up-state.ts'
import {
  addMargins,
  createMarginPart,
  groupMargins,
  marginColumns,
  marginColumnsOf,
  marginColumnTypes,
} from './margin-sums.ts'
import {
  figureColumns,
  type FiguresOfRow,
  foldedColumn,
  foldOf,
  ofCostChange,
  ofRecord,
} from './figures.ts'
import { addedMoney } from './money-sums.ts'

export interface RollUpRequest {
  /** Milliseconds UTC. */
  readonly now: number
  /**
   * Sums of days that ended before are removed, as the records of these days are; undefined: none
   * is.
   */
  readonly retainedFrom: number | undefined
  /** Fewer records than these are left for later; undefined: none is. */
  readonly least?: number | undefined
}

/** Records that have been added, and those that the sums lack. */
export interface RollUpResult {
  readonly added: number
  readonly behind: number
  /** More blocks may be made at once. */
  readonly hasMoreBlocks: boolean
}

/** Changes of costs in a page. */
const MAX_CHANGES = 5_000
/** Slices of one request: then the thread can be stopped, and progress is logged. */
const MAX_SLICES = 20
/** With more new records than this, the records are read instead of the totals. */
export const MAX_TAIL = 200_000
/** Longer than any transaction may take. */
const GAP_MS = 3_600_000
/** Ids that lack so far before the newest one are of records that were deleted. */
const OLD_GAPS = 10_000
/** Groups of one dimension and tenant that a day keeps. */
const MAX_GROUPS = 5_000
/** Groups of one dimension and customer. */
const MAX_GROUPS_OF_CUSTOMER = 500
/** Rows of one statement that copies. */
const COPIED = 100

/** Yields between statements. */
export async function* rollUp(
  sources: CallSources,
  request: RollUpRequest,
): AsyncGenerator<void, RollUpResult, undefined> {
  let added = 0
  for (let slice = 0; slice < MAX_SLICES; slice += 1) {
    if (request.least !== undefined && (await waiting(sources)) < request.least) break
    const count = yield* addSlice(sources, request)
    if (count === 0) break
    added += count
    yield
  }
  await forgetOld(sources, request)
  const built = yield* buildBlocks(sources, request)
  return { added, behind: await behind(sources), hasMoreBlocks: built === MAX_BUILT }
}

/** Returns how many records and changes it has added. */
async function* addSlice(
  sources: CallSources,
  { now }: RollUpRequest,
): AsyncGenerator<void, number, undefined> {
  const { store, sums } = sources
  const inFile = isInFile(sources)
  // A transaction on a file ends in one turn of the event loop. Its slice is grouped before, in
  // several turns.
  const grouped = inFile
    ? yield* groupSlice(sources, await watermarkOf(sources), ofFile)
    : undefined
  const add = async (): Promise<number> => {
    const known = await beginIfEmpty(sources, await watermarkOf(sources))
    const slice = grouped ?? (await inOneTurn(groupSlice(sources, known, ofServer)))
    // Another instance has added them.
    const isOld = slice.since.upTo !== known.upTo || slice.since.changesUpTo !== known.changesUpTo
    if (isOld || slice.count === 0) return 0
    const isBounded = await isCrowded(sums)
    if (isBounded) await run(sums, boundGroups)
    await run(sums, isBounded ? addFolded : addGroups)
    await run(sums, addMargins)
    await markChanged(sources, slice.changedIds)
    if (!inFile) {
      await keepGaps(sums, known, slice, now)
      if (slice.changeIds.length > 0)
        await execute(
          store,
          store.db.deleteFrom('cdr_cost_change').where('id', 'in', slice.changeIds),
        )
    }
    await dropTables(sums)
    await keepWatermark(sources, known, slice)
    return slice.count
  }
  const done = await onOneInstance(sums, 'callSums', add, lockedTransaction)
  return done.kind === 'elsewhere' ? 0 : done.result
}

/** Runs the work without yielding. */
export async function inOneTurn<T>(work: AsyncGenerator<void, T, undefined>): Promise<T> {
  let step = await work.next()
  while (step.done !== true) step = await work.next()
  return step.value
}

/** How many records are read at a time, and how often. */
interface SliceSize {
  readonly page: number
  /** Only without gaps: those are read with each page. */
  readonly pages: number
}

/**
 * A group is written once for a slice, so that a large one has less to write for each of its
 * records.
 */
const ofFile: SliceSize = { page: 8_000, pages: 5 }
const ofServer: SliceSize = { page: 40_000, pages: 1 }

/** A slice that was read and grouped. */
interface Slice {
  /** The watermark at that time: the slice may only be added to these totals. */
  readonly since: Watermark
  readonly count: number
  readonly upTo: number
  readonly changesUpTo: number
  readonly ids: readonly number[]
  readonly changeIds: readonly number[]
  /** Records whose cost has changed. */
  readonly changedIds: readonly number[]
}

/** Groups new records in `call_part`. Yields between statements. */
async function* groupSlice(
  sources: CallSources,
  since: Watermark,
  { page, pages }: SliceSize,
): AsyncGenerator<void, Slice, undefined> {
  const { sums } = sources
  const [ids, changeIds, changedIds]: [number[], number[], number[]] = [[], [], []]
  let { upTo, changesUpTo } = since
  await dropTables(sums)
  for (const table of createTables) await run(sums, table)
  for (let read = 0; read < pages; read += 1) {
    const known = { ...since, upTo, changesUpTo }
    const rows = await readPage(sources, known, page)
    if (rows.length === 0) break
    // A record that is not in the sums yet is read as it is then.
    const counted = rows.filter(([changeId, id]) => changeId === 0 || has(known, id))
    await copy(sums, counted)
    for (const [changeId, id] of rows)
      if (changeId === 0) ids.push(id)
      else {
        changeIds.push(changeId)
        changedIds.push(id)
      }
    upTo = ids.reduce((most, id) => Math.max(most, id), upTo)
    changesUpTo = changeIds.reduce((most, id) => Math.max(most, id), changesUpTo)
    yield
  }
  const count = ids.length + changeIds.length
  for (const group of count === 0 ? [] : groupings) {
    await run(sums, group)
    yield
  }
  return { since, count, upTo, changesUpTo, ids, changeIds, changedIds }
}

const run = ({ statements }: CallSources['sums'], text: string): Promise<number> =>
  statements.prepare(text).run([])

/** Columns by which the records of a slice are grouped, in the order of `call_slice`. */
const keys: Readonly<Record<string, RawBuilder<unknown>>> = {
  day: sql`cdr.start_stamp - cdr.start_stamp % ${sql.lit(DAY_MS)}`,
  tenant_id: sql`coalesce(cdr.tenant_id, ${sql.lit(NONE)})`,
  customer_id: sql`coalesce(cdr.customer_id, ${sql.lit(NONE)})`,
  minute: memberOf.minute,
  caller: memberOf.caller,
  callee_prefix: memberOf.callee_prefix,
  rate_prefix: sql`coalesce(cdr.rate_prefix, '')`,
  node: memberOf.node,
  carrier: memberOf.carrier,
  denial_code: memberOf.denial_code,
}
const keyColumns = ['day', 'tenant_id', 'customer_id']
const memberColumns = Object.keys(keys).slice(keyColumns.length)
const sliceColumns = [
  ...keyColumns,
  ...memberColumns,
  'currency',
  ...figureColumns,
  ...marginColumns,
]

/** A change of a cost, or 0; the record; the columns of `call_slice`. */
type Row = readonly [changeId: number, id: number, ...values: SqlValue[]]

/**
 * Records, and changes of the costs of others, in one statement, so that both are seen as they were
 * at one moment. While more changes wait than are read at a time, they come first: a record that is
 * read with all changes of its cost must not leave one of them for later, which would count twice.
 */
async function readPage(
  { store }: CallSources,
  known: Watermark,
  records: number,
): Promise<readonly Row[]> {
  const rows = await rawRows<Row>(store, pageOf(store, known, records))
  const changes = rows.reduce((count, [changeId]) => (changeId === 0 ? count : count + 1), 0)
  return changes < MAX_CHANGES ? rows : rawRows<Row>(store, pageOf(store, known, 0))
}

function pageOf({ db }: CallSources['store'], known: Watermark, records: number) {
  const next = db
    .selectFrom('cdr')
    .select([sql`0`.as('change_id'), ...columnsOf(ofRecord, sql`cdr.currency`)])
    .where('cdr.id', '>', known.upTo)
    .orderBy('cdr.id')
    .limit(records)
  const late = db
    .selectFrom('cdr')
    .innerJoin('call_sum_gap as gap', (join) =>
      join.onRef('cdr.id', '>=', 'gap.first_id').onRef('cdr.id', '<=', 'gap.last_id'),
    )
    .select([sql`0`.as('change_id'), ...columnsOf(ofRecord, sql`cdr.currency`)])
  const changes = db
    .selectFrom('cdr_cost_change')
    .select(['id', 'cdr_id', 'cost_micros', 'currency', 'records', 'rate_prefix'])
    .select(['carrier_cost_micros', 'carrier_currency', 'carrier_tenant_id'])
    .where('id', '>', known.changesUpTo)
    .orderBy('id')
    .limit(MAX_CHANGES)
  const changed = db
    .selectFrom(changes.as('change'))
    .innerJoin('cdr', 'cdr.id', 'change.cdr_id')
    .select([sql.ref('change.id').as('change_id')])
    .select(columnsOf(ofCostChange, sql`change.currency`))
  return db
    .selectFrom(next.as('next'))
    .selectAll()
    .$if(known.gaps.length > 0 && records > 0, (query) => query.unionAll(late))
    .unionAll(changed)
}

/** The prefix of a record that was priced anew is that of the change. */
const changedKeys: typeof keys = {
  ...keys,
  rate_prefix: sql`CASE change.records WHEN 0 THEN ${keys['rate_prefix']}
    ELSE coalesce(change.rate_prefix, '') END`,
}

const columnsOf = (figures: FiguresOfRow, currency: RawBuilder<unknown>) => [
  sql.ref('cdr.id').as('id'),
  ...Object.entries(figures === ofRecord ? keys : changedKeys).map(([name, key]) => key.as(name)),
  markedCurrency(currency).as('currency'),
  ...figureColumns.map((figure) => sql.raw(figures[figure]).as(figure)),
  ...marginColumnsOf(figures === ofRecord),
]

/** Whether the sums have the record with this id. */
const has = ({ upTo, gaps }: Watermark, id: number): boolean =>
  id <= upTo && !gaps.some(({ firstId, lastId }) => id >= firstId && id <= lastId)

async function copy({ statements, db }: CallSources['sums'], rows: readonly Row[]): Promise<void> {
  const insertOf = (count: number) => {
    const row = sql`(${sql.join(sliceColumns.map(() => 0))})`
    const values = sql.join(Array.from({ length: count }, () => row))
    return statements.prepare(sql`INSERT INTO call_slice VALUES ${values}`.compile(db).sql)
  }
  const insertMany = insertOf(COPIED)
  for (let from = 0; from < rows.length; from += COPIED) {
    const some = rows.slice(from, from + COPIED)
    const insert = some.length === COPIED ? insertMany : insertOf(some.length)
    await insert.run(some.flatMap(([, , ...columns]) => columns))
  }
}

/** `call_slice` has a row for each record; `call_part` what they come to, as `call_sum` has it. */
const createTables = [
  `CREATE TEMPORARY TABLE call_slice AS
    SELECT ${keyColumns.join(', ')}, ${memberColumns.map((name) => `member AS ${name}`).join(', ')},
      currency, ${figureColumns.join(', ')}, ${marginColumnTypes}
    FROM call_sum WHERE 1 = 0`,
  'CREATE TEMPORARY TABLE call_part AS SELECT * FROM call_sum WHERE 1 = 0',
  createMarginPart,
]
async function dropTables(sums: CallSources['sums']): Promise<void> {
  await run(sums, 'DROP TABLE IF EXISTS call_slice')
  await run(sums, 'DROP TABLE IF EXISTS call_part')
  await run(sums, 'DROP TABLE IF EXISTS margin_part')
}

const groupColumns = ['day', 'dimension', 'customer_id', 'tenant_id', 'member', 'currency']
const foldedFigures = figureColumns.map((figure) => foldedColumn(figure, figure)).join(', ')

/** `from` selects the rows to group: records, or groups of them. */
const group = (
  dimension: string,
  of: { readonly customer?: string; readonly tenant?: string; readonly member: string },
  from = 'call_slice',
): string => `INSERT INTO call_part (${groupColumns.join(', ')}, ${figureColumns.join(', ')})
  SELECT day, ${dimension}, ${of.customer ?? ALL}, ${of.tenant ?? 'tenant_id'}, ${of.member},
    currency, ${foldedFigures}
  FROM ${from} GROUP BY 1, 2, 3, 4, 5, 6`

const pairs = [...paired].map((dimension) => `'${dimension}'`).join(', ')

/** Groups of all customers are made of those of each. */
const groupings = [
  group("'caller'", { member: 'caller' }),
  group("'tenant_minute'", { member: 'minute' }),
  group(
    "'minute'",
    { tenant: String(ALL), member: 'member' },
    `call_part WHERE dimension = 'tenant_minute'`,
  ),
  ...[...paired].map((dimension) =>
    group(`'${dimension}'`, { customer: 'customer_id', member: dimension }),
  ),
  group(
    "'customer'",
    { member: `CASE customer_id WHEN ${NONE} THEN '' ELSE CAST(customer_id AS TEXT) END` },
    `call_part WHERE dimension = 'denial_code'`,
  ),
  group('dimension', { member: 'member' }, `call_part WHERE dimension IN (${pairs})`),
  // Calls without a customer are charged to none.
  group(
    "'rate_prefix'",
    { customer: 'customer_id', member: 'rate_prefix' },
    `call_slice WHERE customer_id <> ${NONE}`,
  ),
  ...groupMargins,
]

const scopeColumns = groupColumns.slice(0, 4).join(', ')
const mostGroups = `CASE customer_id WHEN ${ALL} THEN ${MAX_GROUPS}
  ELSE ${MAX_GROUPS_OF_CUSTOMER} END`
const touchedDays = 'day IN (SELECT day FROM call_part)'

/** Whether some day may get more groups than it keeps. */
async function isCrowded(sums: CallSources['sums']): Promise<boolean> {
  const crowded = sums.statements.prepare(
    `SELECT 1 FROM (
      SELECT ${scopeColumns} FROM call_part
      UNION ALL SELECT ${scopeColumns} FROM call_sum WHERE ${touchedDays}
    ) AS both_groups
    GROUP BY ${scopeColumns} HAVING count(*) > ${mostGroups} LIMIT 1`,
  )
  return (await crowded.get([])) !== undefined
}

/**
 * New members are ordered by cost, then by calls. Members beyond the limit are merged into the
 * others, so that callers with random numbers cannot make the totals grow.
 */
const boundGroups = `UPDATE call_part SET member = '${OTHERS}'
  WHERE (${scopeColumns}, member) IN (
    SELECT ${scopeColumns}, member FROM (
      SELECT ${scopeColumns}, member, max(is_known) AS is_known, row_number() OVER (
        PARTITION BY ${scopeColumns}
        ORDER BY max(is_known) DESC, max(cost_micros) DESC, max(calls) DESC, min(first_id)
      ) AS sources
      FROM (
        SELECT ${scopeColumns}, member, 0 AS is_known, cost_micros, calls, first_id FROM call_part
        UNION ALL
        SELECT ${scopeColumns}, member, 1, 0, 0, 0 FROM call_sum WHERE ${touchedDays}
      ) AS both_groups
      GROUP BY ${scopeColumns}, member
    ) AS placed
    WHERE is_known = 0 AND sources > ${mostGroups}
  )`

const conflicting = figureColumns.map((figure) => {
  const [own, other] = [`call_sum.${figure}`, `excluded.${figure}`]
  if (figure === 'cost_micros') return `${figure} = ${addedMoney(own, other)}`
  if (foldOf[figure] === 'sum') return `${figure} = ${own} + ${other}`
  const isOther = foldOf[figure] === 'min' ? `${other} < ${own}` : `${other} > ${own}`
  return `${figure} = CASE WHEN ${isOther} THEN ${other} ELSE ${own} END`
})

const adding = (groups: string): string =>
  `INSERT INTO call_sum (${groupColumns.join(', ')}, ${figureColumns.join(', ')})
    SELECT ${groups}
    ON CONFLICT (${groupColumns.join(', ')}) DO UPDATE SET ${conflicting.join(', ')}`
const addGroups = adding('* FROM call_part WHERE 1 = 1')
/** Adds the groups of the other dimensions, of which there are many. */
const addFolded = adding(
  `${groupColumns.join(', ')}, ${foldedFigures} FROM call_part GROUP BY 1, 2, 3, 4, 5, 6`,
)

/**
 * Keeps the missing ids that are still missing, and adds those that are missing among the new ones.
 */
async function keepGaps(
  sums: CallSources['sums'],
  known: Watermark,
  { ids, upTo }: Slice,
  now: number,
): Promise<void> {
  const firstId = Math.max(known.upTo, known.gapsAfter) + 1
  const missing = [...known.gaps, { firstId, lastId: upTo, noticedAt: now }]
    .flatMap((gap) => missingIn(gap, ids))
    .filter(({ noticedAt }) => noticedAt >= now - GAP_MS)
    .map((gap) => ({ first_id: gap.firstId, last_id: gap.lastId, noticed_at: gap.noticedAt }))
  await execute(sums, sums.db.deleteFrom('call_sum_gap'))
  if (missing.length > 0) await execute(sums, sums.db.insertInto('call_sum_gap').values(missing))
}

function missingIn({ firstId, lastId, noticedAt }: Gap, ids: readonly number[]): readonly Gap[] {
  const gaps: Gap[] = []
  let next = firstId
  const found = ids.filter((id) => id >= firstId && id <= lastId).toSorted((a, b) => a - b)
  for (const id of [...found, lastId + 1]) {
    if (id > next) gaps.push({ firstId: next, lastId: id - 1, noticedAt })
    next = id + 1
  }
  return gaps
}

/** Totals of another database are deleted first. */
async function beginIfEmpty({ store, sums }: CallSources, known: Watermark): Promise<Watermark> {
  if (known.upTo > 0) return known
  for (const table of ['call_sum', 'margin_sum', 'call_sum_gap', 'call_sum_state'] as const)
    await execute(sums, sums.db.deleteFrom(table))
  const newest = store.db
    .selectFrom('cdr')
    .select(({ fn }) => [fn.max<number | null>('id').as('id')])
  const { id } = (await first(store, newest)) ?? { id: null }
  return { ...known, gapsAfter: Math.max(0, (id ?? 0) - OLD_GAPS) }
}

async function keepWatermark(
  sources: CallSources,
  known: Watermark,
  { upTo, changesUpTo }: Slice,
): Promise<void> {
  const { store, sums } = sources
  const row = {
    records_up_to: upTo,
    last_uuid: (await uuidOf(store, upTo)) ?? known.lastUuid,
    // A server has changes removed instead: their ids are committed out of order, too.
    changes_up_to: isInFile(sources) ? changesUpTo : 0,
    gaps_after: known.gapsAfter,
  }
  const query = sums.db
    .insertInto('call_sum_state')
    .values({ id: 1, ...row })
    .onConflict((conflict) => conflict.column('id').doUpdateSet(row))
  await execute(sums, query)
}

/** Totals have personal data, so they are deleted with their records. */
async function forgetOld({ sums }: CallSources, { retainedFrom }: RollUpRequest): Promise<void> {
  if (retainedFrom === undefined) return
  for (const table of ['call_sum', 'margin_sum'] as const)
    await execute(sums, sums.db.deleteFrom(table).where('day', '<', startOfDay(retainedFrom)))
}

/** About as many records and changes as the sums lack. */
async function waiting(sources: CallSources): Promise<number> {
  const { store, sums } = sources
  const state = await first(sums, sums.db.selectFrom('call_sum_state').select('changes_up_to'))
  // Apart: of both in one SELECT, SQLite would read all changes.
  const changes = store.db.selectNoFrom([
    sql<number | null>`(SELECT max(id) FROM cdr_cost_change)`.as('newest'),
    sql<number | null>`(SELECT min(id) FROM cdr_cost_change)`.as('oldest'),
  ])
  const { newest, oldest } = (await first(store, changes)) ?? { newest: null, oldest: null }
  const since = Math.max(state?.changes_up_to ?? 0, (oldest ?? 1) - 1)
  return (await behind(sources)) + Math.max(0, (newest ?? 0) - since)
}

/** About: ids of deleted records count, too. */
export async function behind(sources: CallSources): Promise<number> {
  const { store, sums } = sources
  const newest = store.db
    .selectFrom('cdr')
    .select(({ fn }) => [fn.max<number | null>('id').as('id')])
  const [row] = await all(store, newest)
  const state = await first(sums, sums.db.selectFrom('call_sum_state').select('records_up_to'))
  return Math.max(0, (row?.id ?? 0) - (state?.records_up_to ?? 0))
}

/**
 * Adds records to the daily totals at intervals, and logs progress when there are many, such as
 * after an upgrade.
 */
export interface RollUpDeps {
  readonly schedule: Schedule
  /** Milliseconds UTC. */
  readonly now: () => number
  /** How long call records are stored; 0: for ever. */
  readonly days: number
  readonly log: Log
  readonly rollUp: (request: RollUpRequest) => Promise<RollUpResult>
}

/** Between two intervals, new records are read directly. */
const INTERVAL_MS = 10_000
/** A group is written once for all records that are added together: with fewer, each costs more. */
const LEAST_RECORDS = 40_000
/**
 * Fewer records per step are added then, too: each record that is not rolled up costs every summary
 * about 3 us.
 */
const LONGEST_WAIT_MS = 600_000
/** Between two steps of many. */
const BUSY_MS = 100
/** Time until the next attempt after a failure. */
const RETRY_MS = 60_000
/** More new records than this are logged as progress. */
const MANY = 200_000

export function scheduleRollUps({ schedule, now, days, log, rollUp }: RollUpDeps): Cancel {
  // Not at once: the thread that does it takes as long to start as much else of a start.
  let cancel = schedule(() => void step(), INTERVAL_MS)
  let isStopped = false
  let isBuilding = false
  let isFailing = false
  /** When all records were in the sums. */
  let wholeAt = -Infinity

  async function step(): Promise<void> {
    const delayMs = await attempt()
    if (!isStopped) cancel = schedule(() => void step(), delayMs)
  }

  async function attempt(): Promise<number> {
    try {
      const retainedFrom = days === 0 ? undefined : now() - days * DAY_MS
      const isDue = now() >= wholeAt + LONGEST_WAIT_MS
      const least = isDue ? undefined : LEAST_RECORDS
      const { added, behind, hasMoreBlocks } = await rollUp({ now: now(), retainedFrom, least })
      if (isDue && behind < LEAST_RECORDS) wholeAt = now()
      isFailing = false
      logProgress(behind)
      return (added > 0 && behind > MANY) || hasMoreBlocks ? BUSY_MS : INTERVAL_MS
    } catch (error) {
      if (!isFailing && !isStopped)
        log('warn', 'call records could not be added to the daily totals', { error: String(error) })
      isFailing = true
      return RETRY_MS
    }
  }

  function logProgress(behind: number): void {
    const isMany = behind > MANY
    if (isMany)
      log('info', 'call records are being added to the daily totals', { records_left: behind })
    else if (isBuilding) log('info', 'all call records are in the daily totals', {})
    isBuilding = isMany
  }

  return () => {
    isStopped = true
    cancel()
  }
}
