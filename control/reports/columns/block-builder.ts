/**
 * Makes blocks of new records, and those again whose records have changed. One instance of several
 * does it at a time, with the daily totals: a change of a cost that these have taken is marked here
 * in the same transaction.
 */
import {
  all,
  execute,
  first as one,
  lockedTransaction,
  onOneInstance,
} from '../../../schema/sql/query.ts'
import { type CallSources, isInFile } from '../call-filters.ts'
import {
  blockRows,
  type BlockListRow,
  gapsOf,
  headsOf,
  type IdRange,
  newestId,
  readBlock,
} from './block-store.ts'
import { uuidOf } from '../roll-up-state.ts'
import { BLOCK, newestColumn, type RecordBlock } from './record-block.ts'

interface BuildRequest {
  /** Milliseconds UTC. */
  readonly now: number
  readonly retainedFrom: number | undefined
  /** Ids of a new block; undefined: `BLOCK`. */
  readonly size?: number | undefined
}

/** Blocks that one request makes: the thread can be stopped then. */
export const MAX_BUILT = 20
/** Longer than any transaction may take: ids that are missing so long never come. */
const GAP_MS = 3_600_000
/** Ids that lack so far before the newest one are of records that were deleted. */
const OLD_GAPS = 20_000
/** Blocks whose records are counted again by one request, and how often each is. */
const CHECKED = 5
const CHECK_MS = 600_000

/** Returns how many blocks it has made. Yields between statements. */
export async function* buildBlocks(
  sources: CallSources,
  request: BuildRequest,
): AsyncGenerator<void, number, undefined> {
  await forgetOthers(sources, request)
  yield* checkBlocks(sources, request)
  let built = 0
  for (; built < MAX_BUILT; built += 1) {
    const range = await nextRange(sources, request.size ?? BLOCK)
    // Another instance makes them.
    if (range === undefined || !(yield* build(sources, request, range))) break
    yield
  }
  return built
}

/** Blocks of another database, and those of records that are past their retention. */
async function forgetOthers(sources: CallSources, { retainedFrom }: BuildRequest): Promise<void> {
  const { sums } = sources
  const rows = await blockRows(sources)
  const newest = sums.db.selectFrom('record_block').select('first_id').limit(1)
  const isOfAnother = rows.length === 0 && (await all(sums, newest)).length > 0
  if (isOfAnother) {
    await execute(sums, sums.db.deleteFrom('record_column'))
    await execute(sums, sums.db.deleteFrom('record_block'))
    return
  }
  if (retainedFrom === undefined) return
  const old = rows.filter((row) => row.last_start < retainedFrom).map((row) => row.first_id)
  // The newest one says which records have blocks.
  for (const id of old.filter((each) => each !== rows.at(-1)?.first_id)) await forget(sums, id)
}

async function forget(sums: CallSources['sums'], id: number): Promise<void> {
  await execute(sums, sums.db.deleteFrom('record_column').where('first_id', '=', id))
  await execute(sums, sums.db.deleteFrom('record_block').where('first_id', '=', id))
}

/** Records that were deleted, or that came late, are seen by their count. */
async function* checkBlocks(
  { store, sums }: CallSources,
  { now }: BuildRequest,
): AsyncGenerator<void, void, undefined> {
  const due = await all(
    sums,
    sums.db
      .selectFrom('record_block')
      .select(['first_id', 'last_id', 'calls', 'gaps', 'built_at'])
      .where('is_stale', '=', 0)
      .where((eb) => eb.or([eb('checked_at', '<=', now - CHECK_MS), eb('gaps', '<>', '[]')]))
      .orderBy('checked_at')
      .limit(CHECKED),
  )
  for (const row of due) {
    const count = store.db
      .selectFrom('cdr')
      .select(({ fn }) => [fn.countAll<number>().as('calls')])
      .where('id', '>=', row.first_id)
      .where('id', '<=', row.last_id)
    const [{ calls } = { calls: 0 }] = await all(store, count)
    const gaps = row.built_at < now - GAP_MS ? '[]' : row.gaps
    const checked = {
      checked_at: now,
      gaps,
      ...(calls === row.calls ? {} : { is_stale: 1 as const }),
    }
    await execute(
      sums,
      sums.db.updateTable('record_block').set(checked).where('first_id', '=', row.first_id),
    )
    yield
  }
}

interface Due extends IdRange {
  /** The block that is made again. */
  readonly old?: BlockListRow | undefined
}

async function nextRange(sources: CallSources, size: number): Promise<Due | undefined> {
  const rows = await blockRows(sources)
  const stale = rows.find(({ is_stale }) => is_stale === 1)
  if (stale !== undefined) return { first: stale.first_id, last: stale.last_id, old: stale }
  const { store } = sources
  const after = rows.at(-1)?.last_id ?? 0
  const ids = store.db.selectFrom('cdr').select('id')
  // Ids of records that were deleted before are passed over.
  const next = await one(store, ids.where('id', '>', after).orderBy('id').limit(1))
  if (next === undefined || (await newestId(sources)) < next.id + size - 1)
    return ofEarlierVersion(sources, rows)
  const within = ids
    .where('id', '<', next.id + size)
    .orderBy('id', 'desc')
    .limit(1)
  const first = rows.length === 0 ? next.id : after + 1
  return { first, last: (await one(store, within))?.id ?? next.id }
}

/** Sums whose blocks have all columns, as each new one has. */
const wholeSums = new WeakSet<CallSources['sums']>()

/** A block that an earlier version of the program has made, without a column of today. */
async function ofEarlierVersion(
  sources: CallSources,
  rows: readonly BlockListRow[],
): Promise<Due | undefined> {
  if (wholeSums.has(sources.sums)) return undefined
  const heads = await headsOf(sources, rows)
  const old = rows.find((row) => heads.get(row.first_id)?.columns[newestColumn] === undefined)
  if (old !== undefined) return { first: old.first_id, last: old.last_id, old }
  wholeSums.add(sources.sums)
  return undefined
}

/**
 * Returns whether this instance is the one that makes blocks. SQLite has one builder: its records
 * are read in several turns before.
 */
async function* build(
  sources: CallSources,
  request: BuildRequest,
  range: Due,
): AsyncGenerator<void, boolean, undefined> {
  const { sums } = sources
  const inFile = isInFile(sources)
  const read = inFile ? yield* readBlock(sources, range) : undefined
  const write = async (): Promise<void> => {
    if (!inFile && !(await isStill(sources, range))) return
    const block = read ?? (await whole(readBlock(sources, range)))
    await keep(sources, request, range, block)
  }
  const done = await onOneInstance(sums, 'callSums', write, lockedTransaction)
  return done.kind !== 'elsewhere'
}

async function whole<T>(work: AsyncGenerator<void, T, undefined>): Promise<T> {
  let step = await work.next()
  while (step.done !== true) step = await work.next()
  return step.value
}

/** Another instance may have made it meanwhile. */
async function isStill(sources: CallSources, { first, old }: Due): Promise<boolean> {
  const rows = await blockRows(sources)
  if (old === undefined) return (rows.at(-1)?.last_id ?? 0) < first
  return rows.some((row) => row.first_id === first && row.version === old.version)
}

async function keep(
  sources: CallSources,
  { now }: BuildRequest,
  { first, last, old }: Due,
  block: RecordBlock,
): Promise<void> {
  const { sums } = sources
  const { head, bytes } = block
  const starts = head.columns['start_stamp']
  const row = {
    first_id: first,
    last_id: last,
    last_uuid: (await uuidOf(sources.store, last)) ?? '',
    first_start: starts?.min ?? 0,
    last_start: starts?.max ?? 0,
    calls: head.count,
    version: (old?.version ?? 0) + 1,
    is_stale: 0 as const,
    gaps: JSON.stringify(await gapsIn(sources, now, { first, last, old }, block)),
    built_at: old?.built_at ?? now,
    checked_at: now,
    head: JSON.stringify(head),
  }
  await forget(sums, first)
  await execute(sums, sums.db.insertInto('record_block').values(row))
  const { version } = row
  const columns = [...bytes].map(([name, data]) => ({ first_id: first, name, version, data }))
  if (columns.length > 0) await execute(sums, sums.db.insertInto('record_column').values(columns))
}

/** Ids that a transaction under way may bring yet. */
async function gapsIn(
  sources: CallSources,
  now: number,
  { first, last, old }: Due,
  { head }: RecordBlock,
): Promise<readonly (readonly [number, number])[]> {
  // SQLite gives ids in the order of commits.
  if (isInFile(sources) || head.count === last - first + 1) return []
  if (old !== undefined && (old.built_at < now - GAP_MS || gapsOf(old.gaps).length === 0)) return []
  const { store } = sources
  const since = Math.max(first, (await newestId(sources)) - OLD_GAPS)
  const ids = await all(
    store,
    store.db
      .selectFrom('cdr')
      .select('id')
      .where('id', '>=', since)
      .where('id', '<=', last)
      .orderBy('id'),
  )
  const gaps: [number, number][] = []
  let next = since
  for (const id of [...ids.map((each) => each.id), last + 1]) {
    if (id > next) gaps.push([next, id - 1])
    next = id + 1
  }
  return gaps
}

/** The blocks of these records are made again. */
export async function markChanged({ sums }: CallSources, ids: readonly number[]): Promise<void> {
  if (ids.length === 0) return
  const rows = await all(
    sums,
    sums.db
      .selectFrom('record_block')
      .select(['first_id', 'last_id'])
      .where('is_stale', '=', 0)
      .where('last_id', '>=', Math.min(...ids))
      .where('first_id', '<=', Math.max(...ids)),
  )
  const sorted = Float64Array.from(ids).toSorted()
  const changed = rows
    .filter(({ first_id, last_id }) => hasOneWithin(sorted, first_id, last_id))
    .map(({ first_id: id }) => id)
  if (changed.length > 0)
    await execute(
      sums,
      sums.db.updateTable('record_block').set({ is_stale: 1 }).where('first_id', 'in', changed),
    )
}

function hasOneWithin(sorted: Float64Array, first: number, last: number): boolean {
  let [low, high] = [0, sorted.length]
  while (low < high) {
    const middle = (low + high) >>> 1
    if ((sorted[middle] ?? Infinity) < first) low = middle + 1
    else high = middle
  }
  return (sorted[low] ?? Infinity) <= last
}
