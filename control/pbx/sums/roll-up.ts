/**
 * Adds records to the kept sums, slice by slice, each with the watermark in one transaction: after a crash it goes on
 * where the last slice ended. One node of several does it at a time. On a server, ids may be committed out of order: those that
 * are missing among others are looked for again until no transaction can bring them any more.
 */
import { all, execute, first } from '../../../schema/sql/query.ts'
import { onOneNodeLocked } from '../../../schema/sql/one-node.ts'
import { startOfDay } from './dimensions.ts'
import type { Place } from './places.ts'
import {
  endOfSlice,
  type Gap,
  readSlice,
  type Slice,
  uuidOf,
  type Watermark,
  watermarkOf,
} from './slice.ts'
import { SumWriter } from './sum-writer.ts'
import { Tally } from './tally.ts'

export interface RollUpRequest {
  /** Milliseconds UTC. */
  readonly now: number
  /** Sums of days that ended before are removed, as the records of these days are; undefined: none is. */
  readonly keptFrom: number | undefined
}

/** Records that have been added, and those that the sums lack. */
export interface RolledUp {
  readonly added: number
  readonly behind: number
}

/** Records at once: about 0.1 s of the thread of reports. */
const SLICE = 5_000
/** Then the request ends, so that the thread can be stopped and progress is told. */
const MAX_SLICES = 100
/** Longer than any transaction may take. */
const GAP_MS = 3_600_000
/** Ids that lack so far before the newest one are of records that were deleted. */
const OLD_GAPS = 10_000

/** Yields after each slice. */
export async function* rollUp(
  place: Place,
  request: RollUpRequest,
): AsyncGenerator<void, RolledUp, undefined> {
  const writer = new SumWriter(place.sums)
  let added = 0
  for (let slice = 0; slice < MAX_SLICES; slice += 1) {
    const done = await onOneNodeLocked(place.sums, 'callSums', () =>
      addSlice(place, writer, request),
    )
    if (done.kind === 'elsewhere' || done.result === 0) break
    added += done.result
    yield
  }
  await forgetOld(place, request)
  return { added, behind: await behind(place) }
}

/** Returns how many records and changes it has read. */
async function addSlice(place: Place, writer: SumWriter, { now }: RollUpRequest): Promise<number> {
  const known = await begun(place, await watermarkOf(place))
  const upTo = await endOfSlice(place.store, known.upTo, SLICE)
  const slice = await readSlice(place, known, upTo)
  if (slice.ids.length + slice.changeIds.length === 0) return 0
  const tally = new Tally()
  for (const counted of slice.records) tally.add(counted)
  for (const counted of slice.changes) tally.add(counted)
  await writer.add([...tally.scopes()])
  if (place.sums.statements.isShared) {
    await keepGaps(place, known, slice, now)
    await forgetChanges(place, slice)
  }
  await keepWatermark(place, known, slice)
  return slice.ids.length + slice.changeIds.length
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
  { upTo, changeIds }: Slice,
): Promise<void> {
  const row = {
    records_up_to: upTo,
    last_uuid: (await uuidOf(store, upTo)) ?? known.lastUuid,
    // On a server, changes are removed instead: their ids are committed out of order, too.
    changes_up_to: sums.statements.isShared
      ? 0
      : Math.max(known.changesUpTo, ...changeIds.slice(-1)),
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
