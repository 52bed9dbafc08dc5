/** The blocks of call records as they are stored, and records that no block has. */
import { sql } from 'kysely'
import { all, first, rawRows } from '../../../schema/sql/query.ts'
import type { Database } from '../../../schema/tables/database.ts'
import { type CallSources, isInFile } from '../call-filters.ts'
import { uuidOf, watermarkOf } from '../roll-up-state.ts'
import {
  BLOCK,
  type BlockColumn,
  type BlockHead,
  blockOf,
  type BlockRow,
  type RecordBlock,
  selectBlockRows,
} from './record-block.ts'

/** Ids from `first` to `last`, both included. */
export interface IdRange {
  readonly first: number
  readonly last: number
}

/** When the first and the last call of some records began. */
export interface RecordTimes {
  readonly firstStart: number
  readonly lastStart: number
}

/** A block without its columns. */
export interface StoredBlock extends RecordTimes {
  readonly first: number
  readonly last: number
  readonly version: number
  readonly head: BlockHead
  /** Ids within it that ranges of their own have. */
  readonly gaps: readonly IdRange[]
}

/** All records: those of the blocks, and those of ranges of ids that are read as they are. */
export interface RecordParts {
  readonly blocks: readonly StoredBlock[]
  /** The newest first, of `BLOCK` ids at most. */
  readonly ranges: readonly IdRange[]
}

/** Changes of costs that are looked at one by one; with more, whole ranges are read. */
const MAX_CHANGES = 10_000

export async function recordParts(sources: CallSources): Promise<RecordParts> {
  const newest = await newestId(sources)
  if (newest === 0) return { blocks: [], ranges: [] }
  // Those that are taken into the sums meanwhile are marked at the blocks then.
  const changed = await changedIds(sources)
  const rows = await blockRows(sources)
  const lastId = rows.at(-1)?.last_id ?? 0
  const isChanged = (first: number, last: number) =>
    changed.some((range) => range.first <= last && range.last >= first)
  const fresh = rows.filter(
    ({ first_id, last_id, is_stale }) => is_stale === 0 && !isChanged(first_id, last_id),
  )
  const known = new Set(fresh)
  const ranges = [
    { first: lastId + 1, last: newest },
    ...rows.filter((row) => !known.has(row)).map((row) => rangeOf(row)),
    ...fresh.flatMap(({ gaps }) => gapsOf(gaps)),
  ]
  return { blocks: await storedBlocks(sources, fresh), ranges: inOrder(ranges) }
}

/** The same for what never changes: a block whose costs are old has the right numbers. */
export async function searchedParts(sources: CallSources): Promise<RecordParts> {
  const rows = await blockRows(sources)
  const rest = { first: (rows.at(-1)?.last_id ?? 0) + 1, last: await newestId(sources) }
  const gaps = rows.flatMap((row) => gapsOf(row.gaps))
  return { blocks: await storedBlocks(sources, rows), ranges: inOrder([rest, ...gaps]) }
}

async function storedBlocks(
  sources: CallSources,
  rows: readonly BlockListRow[],
): Promise<readonly StoredBlock[]> {
  const known = await headsOf(sources, rows)
  return rows.flatMap((row) => {
    const head = known.get(row.first_id)
    if (head === undefined) return []
    const { first_id, last_id, version, first_start: firstStart, last_start: lastStart } = row
    const gaps = gapsOf(row.gaps)
    return [{ first: first_id, last: last_id, version, firstStart, lastStart, head, gaps }]
  })
}

/** The newest first, in parts of some thousand records. */
const inOrder = (ranges: readonly IdRange[]): readonly IdRange[] =>
  ranges.flatMap(split).toSorted((one, two) => two.first - one.first)

const rangeOf = ({ first_id, last_id }: BlockListRow): IdRange => ({
  first: first_id,
  last: last_id,
})

/** Only the builder writes them, in their order. */
export const gapsOf = (json: string): readonly IdRange[] =>
  json === '[]'
    ? []
    : (JSON.parse(json) as readonly (readonly [number, number])[]).map(([from, to]) => ({
        first: from,
        last: to,
      }))

function split({ first, last }: IdRange): readonly IdRange[] {
  const parts = Math.max(0, Math.ceil((last - first + 1) / BLOCK))
  return Array.from({ length: parts }, (_, part) => ({
    first: first + part * BLOCK,
    last: Math.min(first + (part + 1) * BLOCK - 1, last),
  }))
}

export async function newestId({ store }: Pick<CallSources, 'store'>): Promise<number> {
  const newest = store.db
    .selectFrom('cdr')
    .select(({ fn }) => [fn.max<number | null>('id').as('id')])
  return (await first(store, newest))?.id ?? 0
}

const listed = [
  'first_id',
  'last_id',
  'last_uuid',
  'first_start',
  'last_start',
  'calls',
  'version',
  'is_stale',
  'gaps',
  'built_at',
] as const

export type BlockListRow = Awaited<ReturnType<typeof blockRows>>[number]

/** In the order of their ids. None when they are of another database. */
export async function blockRows(sources: CallSources) {
  const { sums } = sources
  const rows = await all(
    sums,
    sums.db.selectFrom('record_block').select(listed).orderBy('first_id'),
  )
  const newest = rows.at(-1)
  if (newest === undefined || !isInFile(sources)) return rows
  const uuid = await uuidOf(sources.store, newest.last_id)
  // The record may be gone, but ids are not left out otherwise.
  if (uuid === undefined) return (await newestId(sources)) > newest.last_id ? rows : []
  return uuid === newest.last_uuid ? rows : []
}

/** Records whose cost has changed, and whose blocks do not say so yet. */
async function changedIds(sources: CallSources): Promise<readonly IdRange[]> {
  const { store } = sources
  const { changesUpTo } = await watermarkOf(sources)
  const changes = await all(
    store,
    store.db
      .selectFrom('cdr_cost_change')
      .select('cdr_id')
      .distinct()
      .where('id', '>', changesUpTo)
      .limit(MAX_CHANGES + 1),
  )
  if (changes.length <= MAX_CHANGES)
    return changes.map(({ cdr_id: id }) => ({ first: id, last: id }))
  const span = await first(
    store,
    store.db
      .selectFrom('cdr_cost_change')
      .select(({ fn }) => [fn.min('cdr_id').as('first'), fn.max('cdr_id').as('last')])
      .where('id', '>', changesUpTo),
  )
  return span === undefined ? [] : [span]
}

/** Heads of blocks in memory: each takes some kilobytes. */
const MAX_HEADS = 2_000

interface KnownHead {
  readonly version: number
  readonly uuid: string
  readonly head: BlockHead
}

const heads = new WeakMap<CallSources['sums'], Map<number, KnownHead>>()

export async function headsOf(
  { sums }: CallSources,
  rows: readonly BlockListRow[],
): Promise<ReadonlyMap<number, BlockHead>> {
  const known = heads.get(sums) ?? new Map<number, KnownHead>()
  heads.set(sums, known)
  const found = new Map<number, BlockHead>()
  const missing: BlockListRow[] = []
  for (const row of rows) {
    const head = known.get(row.first_id)
    if (head?.version === row.version && head.uuid === row.last_uuid)
      found.set(row.first_id, head.head)
    else missing.push(row)
  }
  for (let from = 0; from < missing.length; from += HEADS) {
    const some = new Map(missing.slice(from, from + HEADS).map((row) => [row.first_id, row]))
    const texts = await all(
      sums,
      sums.db
        .selectFrom('record_block')
        .select(['first_id', 'version', 'head'])
        .where('first_id', 'in', [...some.keys()]),
    )
    for (const { first_id: id, version, head: text } of texts) {
      const row = some.get(id)
      // It was made again meanwhile: its records are the same.
      if (row === undefined) continue
      // Only the builder writes it.
      const head = JSON.parse(text) as BlockHead
      found.set(id, head)
      if (known.size >= MAX_HEADS) known.clear()
      known.set(id, { version, uuid: row.last_uuid, head })
    }
  }
  return found
}

const HEADS = 100

/** Blocks whose columns one statement reads. */
export const TOGETHER = 32

/**
 * Columns of some blocks, by the first id of the block: without blocks that were made again or
 * removed since their heads were read.
 */
export async function columnsOf(
  { sums }: Pick<CallSources, 'sums'>,
  blocks: readonly StoredBlock[],
  columns: readonly BlockColumn[],
): Promise<ReadonlyMap<number, ReadonlyMap<string, Buffer>>> {
  // A column that is the same throughout has no row.
  const namesOf = ({ head }: StoredBlock) =>
    columns.filter((name) => (head.columns[name]?.width ?? 0) > 0)
  const names = [...new Set(blocks.flatMap(namesOf))]
  const found = new Map(blocks.map(({ first: id }) => [id, new Map<string, Buffer>()]))
  if (names.length === 0) return found
  const ids = [...found.keys()]
  const read = (await copiedColumns(sums, ids, names)) ?? (await selectedColumns(sums, ids, names))
  const versions = new Map(blocks.map(({ first: id, version }) => [id, version]))
  for (const { first_id: id, name, version, data } of read)
    if (versions.get(id) === version) found.get(id)?.set(name, data)
  for (const block of blocks)
    if (namesOf(block).some((name) => found.get(block.first)?.has(name) !== true))
      found.delete(block.first)
  return found
}

type ColumnRow = Database['record_column']

const selectedColumns = (
  sums: CallSources['sums'],
  ids: readonly number[],
  names: readonly BlockColumn[],
): Promise<readonly ColumnRow[]> =>
  all(
    sums,
    sums.db
      .selectFrom('record_column')
      .select(['first_id', 'name', 'version', 'data'])
      .where('first_id', 'in', ids)
      .where('name', 'in', names),
  )

/** Undefined: SQLite has the bytes as they are. Their query has no parameters. */
async function copiedColumns(
  { statements }: CallSources['sums'],
  ids: readonly number[],
  names: readonly BlockColumn[],
): Promise<readonly ColumnRow[] | undefined> {
  const rows = await statements.copied?.(
    `SELECT first_id::text, name, version::text, data FROM record_column
      WHERE first_id IN (${ids.map(Number).join()})
        AND name IN (${names.map((name) => `'${name}'`).join()})`,
  )
  return rows?.map(([id, name, version, data]) => ({
    first_id: Number(id),
    name: String(name),
    version: Number(version),
    data: data ?? Buffer.alloc(0),
  }))
}

/** Records of one statement: they block the thread for some ten milliseconds. */
const READ = 2_048

/**
 * The records of a range that started in the period, without those of the gaps. Yields between
 * statements.
 */
export async function* readBlock(
  { store }: Pick<CallSources, 'store'>,
  { first, last, gaps = [] }: IdRange & Partial<Pick<StoredBlock, 'gaps'>>,
  period?: { readonly from: number; readonly before: number },
): AsyncGenerator<void, RecordBlock, undefined> {
  const rows: BlockRow[] = []
  for (let from = first; from <= last;) {
    let query = selectBlockRows(store.db.selectFrom('cdr'))
      .where('id', '>=', from)
      .where('id', '<=', last)
      .orderBy('id')
      .limit(READ)
    // The plus keeps the database from seeking by time.
    if (period !== undefined)
      query = query
        .where(sql<number>`+start_stamp`, '>=', period.from)
        .where(sql<number>`+start_stamp`, '<', period.before)
    const some = await rawRows<BlockRow>(store, query)
    rows.push(...outside(gaps, some))
    if (some.length < READ) break
    from = Number(some.at(-1)?.[0]) + 1
    yield
  }
  return blockOf(rows)
}

/** Both are in the order of ids. */
function outside(gaps: readonly IdRange[], rows: readonly BlockRow[]): readonly BlockRow[] {
  let at = 0
  return rows.filter(([value = null]) => {
    const id = Number(value)
    while ((gaps[at]?.last ?? Infinity) < id) at += 1
    return (gaps[at]?.first ?? Infinity) > id
  })
}

/** A range of ids that is read as it is, with the starts of its records. */
export interface TimedRange extends IdRange, RecordTimes {
  readonly calls: number
}

/** Takes a tenth of the time that reading the records takes. Undefined: there are none. */
export async function timesOf(
  { store }: Pick<CallSources, 'store'>,
  { first: from, last }: IdRange,
): Promise<TimedRange | undefined> {
  const query = store.db
    .selectFrom('cdr')
    .select(({ fn }) => [
      fn.min<number | null>('start_stamp').as('firstStart'),
      fn.max<number | null>('start_stamp').as('lastStart'),
      fn.countAll<number>().as('calls'),
    ])
    .where('id', '>=', from)
    .where('id', '<=', last)
  const { firstStart = null, lastStart = null, calls = 0 } = (await first(store, query)) ?? {}
  return firstStart === null || lastStart === null
    ? undefined
    : { first: from, last, firstStart, lastStart, calls }
}
