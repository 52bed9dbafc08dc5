/**
 * Adds records to the kept sums, slice by slice, each with the watermark in one transaction: after a crash it goes on
 * where the last slice ended. `keepWatermark` is the write that makes a slice safe to repeat: without it nothing of the
 * slice is there, and with it none of its records is read again. One node of several does it at a time. On a server, ids may
 * be committed out of order: those that are missing among others are looked for again until no transaction can bring them
 * any more.
 */
import { sql } from 'kysely'
import { all, execute, first } from '../../../schema/sql/query.ts'
import { onOneNodeLocked } from '../../../schema/sql/one-node.ts'
import { startOfDay } from './dimensions.ts'
import type { Place } from './places.ts'
import {
  type Gap,
  readSlice,
  type Slice,
  type SliceSize,
  uuidOf,
  type Watermark,
  watermarkOf,
} from './slice.ts'
import { SumWriter } from './sum-writer.ts'

export interface RollUpRequest {
  /** Milliseconds UTC. */
  readonly now: number
  /** Sums of days that ended before are removed, as the records of these days are; undefined: none is. */
  readonly keptFrom: number | undefined
  /** Fewer records than these are left for later; undefined: none is. */
  readonly least?: number | undefined
}

/** Records that have been added, and those that the sums lack. */
export interface RolledUp {
  readonly added: number
  readonly behind: number
}

/**
 * Of a file: pages of about 10 ms. Groups are written once for a slice, so that a large one has less to write for each of
 * its records.
 */
const ofFile: SliceSize = { page: 2_000, pages: 24 }
/** Of a server: in one statement, inside the transaction. */
const ofServer: SliceSize = { page: 40_000, pages: 1 }
/** Then the request ends, so that the thread can be stopped and progress is told. */
const MAX_SLICES = 20
/** With more records that the sums lack, the records are read instead. */
export const MAX_TAIL = 200_000
/** Longer than any transaction may take. */
const GAP_MS = 3_600_000
/** Ids that lack so far before the newest one are of records that were deleted. */
const OLD_GAPS = 10_000

/** Yields after each page and each slice. */
export async function* rollUp(
  place: Place,
  request: RollUpRequest,
): AsyncGenerator<void, RolledUp, undefined> {
  const writer = new SumWriter(place.sums)
  let added = 0
  for (let slice = 0; slice < MAX_SLICES; slice += 1) {
    if (request.least !== undefined && (await waiting(place)) < request.least) break
    const count = yield* addSlice(place, writer, request)
    if (count === 0) break
    added += count
    yield
  }
  await forgetOld(place, request)
  return { added, behind: await behind(place) }
}

/** Returns how many records and changes it has added. */
async function* addSlice(
  place: Place,
  writer: SumWriter,
  { now }: RollUpRequest,
): AsyncGenerator<void, number, undefined> {
  const { isShared } = place.sums.statements
  // A transaction on a file ends in one turn of the event loop. Its records are read before, in several turns.
  const read = isShared ? undefined : yield* readSlice(place, await watermarkOf(place), ofFile)
  const done = await onOneNodeLocked(place.sums, 'callSums', async () => {
    const known = await begun(place, await watermarkOf(place))
    const slice = read ?? (await whole(readSlice(place, known, ofServer)))
    // The thread of another process has added them, such as during an upgrade.
    const isOld = slice.since.upTo !== known.upTo || slice.since.changesUpTo !== known.changesUpTo
    if (isOld || slice.count === 0) return 0
    await writer.add([...slice.tally.scopes()])
    if (isShared) {
      await keepGaps(place, known, slice, now)
      await forgetChanges(place, slice)
    }
    await keepWatermark(place, known, slice)
    return slice.count
  })
  return done.kind === 'elsewhere' ? 0 : done.result
}

/** In one turn. */
export async function whole<T>(work: AsyncGenerator<void, T, undefined>): Promise<T> {
  let step = await work.next()
  while (step.done !== true) step = await work.next()
  return step.value
}

/** Sums that are of another database, or of none yet, begin with nothing. */
async function begun({ store, sums }: Place, known: Watermark): Promise<Watermark> {
  if (known.upTo > 0) return known
  for (const table of ['call_sum', 'call_sum_gap', 'call_sum_state'] as const)
    await execute(sums, sums.db.deleteFrom(table))
  const newest = store.db
    .selectFrom('cdr')
    .select(({ fn }) => [fn.max<number | null>('id').as('id')])
  const { id } = (await first(store, newest)) ?? { id: null }
  return { ...known, gapsAfter: Math.max(0, (id ?? 0) - OLD_GAPS) }
}

async function keepWatermark(
  { store, sums }: Place,
  known: Watermark,
  { upTo, changesUpTo }: Slice,
): Promise<void> {
  const row = {
    records_up_to: upTo,
    last_uuid: (await uuidOf(store, upTo)) ?? known.lastUuid,
    // On a server, changes are removed instead: their ids are committed out of order, too.
    changes_up_to: sums.statements.isShared ? 0 : changesUpTo,
    gaps_after: known.gapsAfter,
  }
  const query = sums.db
    .insertInto('call_sum_state')
    .values({ id: 1, ...row })
    .onConflict((conflict) => conflict.column('id').doUpdateSet(row))
  await execute(sums, query)
}

async function forgetChanges({ store }: Place, { changeIds }: Slice): Promise<void> {
  if (changeIds.length === 0) return
  await execute(store, store.db.deleteFrom('cdr_cost_change').where('id', 'in', changeIds))
}

async function keepGaps(
  { sums }: Place,
  known: Watermark,
  slice: Slice,
  now: number,
): Promise<void> {
  const { db } = sums
  for (const gap of known.gaps) {
    const found = slice.ids.filter((id) => id >= gap.firstId && id <= gap.lastId)
    if (found.length === 0) continue
    await execute(sums, db.deleteFrom('call_sum_gap').where('first_id', '=', gap.firstId))
    await insertGaps(sums, gapsBetween(found, gap.firstId, gap.lastId), now)
  }
  const from = Math.max(known.upTo, known.gapsAfter) + 1
  const ids = slice.ids.filter((id) => id >= from)
  if (slice.upTo >= from) await insertGaps(sums, gapsBetween(ids, from, slice.upTo), now)
  await execute(sums, db.deleteFrom('call_sum_gap').where('noticed_at', '<', now - GAP_MS))
}

async function insertGaps(sums: Place['sums'], gaps: readonly Gap[], now: number): Promise<void> {
  for (const { firstId, lastId } of gaps) {
    const row = { first_id: firstId, last_id: lastId, noticed_at: now }
    const query = sums.db.insertInto('call_sum_gap').values(row)
    await execute(
      sums,
      query.onConflict((conflict) => conflict.column('first_id').doNothing()),
    )
  }
}

/** What `ids`, which ascend, lack from `firstId` to `lastId`. */
function gapsBetween(ids: readonly number[], firstId: number, lastId: number): readonly Gap[] {
  const gaps: Gap[] = []
  let next = firstId
  for (const id of [...ids, lastId + 1]) {
    if (id > next) gaps.push({ firstId: next, lastId: id - 1 })
    next = id + 1
  }
  return gaps
}

/** Personal data is not kept longer than the records that it came from. */
async function forgetOld({ sums }: Place, { keptFrom }: RollUpRequest): Promise<void> {
  if (keptFrom === undefined) return
  await execute(sums, sums.db.deleteFrom('call_sum').where('day', '<', startOfDay(keptFrom)))
}

/** About as many records and changes as the sums lack. */
async function waiting(place: Place): Promise<number> {
  const { store, sums } = place
  const state = await first(sums, sums.db.selectFrom('call_sum_state').select('changes_up_to'))
  // Apart: of both in one SELECT, SQLite would read all changes.
  const changes = store.db.selectNoFrom([
    sql<number | null>`(SELECT max(id) FROM cdr_cost_change)`.as('newest'),
    sql<number | null>`(SELECT min(id) FROM cdr_cost_change)`.as('oldest'),
  ])
  const { newest, oldest } = (await first(store, changes)) ?? { newest: null, oldest: null }
  const since = Math.max(state?.changes_up_to ?? 0, (oldest ?? 1) - 1)
  return (await behind(place)) + Math.max(0, (newest ?? 0) - since)
}

/** About: ids of deleted records count, too. */
export async function behind(place: Place): Promise<number> {
  const { store, sums } = place
  const newest = store.db
    .selectFrom('cdr')
    .select(({ fn }) => [fn.max<number | null>('id').as('id')])
  const [row] = await all(store, newest)
  const state = await first(sums, sums.db.selectFrom('call_sum_state').select('records_up_to'))
  return Math.max(0, (row?.id ?? 0) - (state?.records_up_to ?? 0))
}
