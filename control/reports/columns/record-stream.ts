/**
 * The ids of all matching records in the order of their starts, without having all in memory: one
 * part of the period after another, each with some ten thousand records.
 */
import type { CallSources } from '../call-filters.ts'
import { scan } from './block-scan.ts'
import { type RecordParts, type StoredBlock, type TimedRange, timesOf } from './block-store.ts'
import { overlap, placeOf } from './record-place.ts'
import type { RecordScope } from './record-tests.ts'
import { PriceReader } from './seen-prices.ts'

/** Records of one part of the period, matching or not. */
const PART = 100_000
/** The shortest part: it may have more records. */
const SHORTEST_MS = 1_000

interface Timed {
  readonly blocks: readonly StoredBlock[]
  readonly ranges: readonly TimedRange[]
}

type StreamedPart = Pick<RecordScope, 'from' | 'before'>

/** Undefined: nothing yet, so that other work may run. */
export async function* matchingIds(
  sources: CallSources,
  asked: RecordScope,
  isDescending: boolean,
): AsyncGenerator<readonly number[] | undefined, void, undefined> {
  const { scope, parts } = await placeOf(sources, asked)
  const reader = new PriceReader(sources, scope.tenantId)
  const timed = yield* withTimes(sources, parts)
  for (const part of partsOf(timed, scope, isDescending))
    yield* idsOfPart(sources, { ...scope, ...part }, timed, reader, isDescending)
}

async function* idsOfPart(
  sources: CallSources,
  scope: RecordScope,
  timed: Timed,
  reader: PriceReader,
  isDescending: boolean,
): AsyncGenerator<readonly number[] | undefined, void, undefined> {
  const found: { readonly start: number; readonly id: number }[] = []
  const parts: RecordParts = {
    blocks: timed.blocks,
    ranges: timed.ranges.filter((range) => overlap(range, scope) > 0),
  }
  const wanted = ['id', 'start_stamp'] as const
  for await (const match of scan(sources, { scope, parts, reader, wanted })) {
    if (match === undefined) {
      yield undefined
      continue
    }
    const [ids, starts] = [match.numbers.of('id'), match.numbers.of('start_stamp')]
    for (const row of match.rows) found.push({ start: starts[row] ?? 0, id: ids[row] ?? 0 })
  }
  const sign = isDescending ? -1 : 1
  yield found
    .toSorted((one, other) => sign * (one.start - other.start || one.id - other.id))
    .map(({ id }) => id)
}

/** Halves of the period, until each has few records. */
function* partsOf(
  timed: Timed,
  { from, before }: StreamedPart,
  isDescending: boolean,
): Generator<StreamedPart, void> {
  const records = [...timed.blocks.map(withCalls), ...timed.ranges].reduce(
    (sum, each) => sum + each.calls * overlap(each, { from, before }),
    0,
  )
  if (records === 0) return
  if (records <= PART || before - from <= SHORTEST_MS) {
    yield { from, before }
    return
  }
  const middle = Math.floor((from + before) / 2)
  const halves = [
    { from, before: middle },
    { from: middle, before },
  ]
  for (const half of isDescending ? halves.toReversed() : halves)
    yield* partsOf(timed, half, isDescending)
}

const withCalls = (block: StoredBlock) => ({ ...block, calls: block.head.count })

/** Ranges with more records than these have their starts read first. */
const UNTIMED = 4

/** Few ranges are looked through in each part; many are not, when no block has been made yet. */
async function* withTimes(
  sources: CallSources,
  { blocks, ranges }: RecordParts,
): AsyncGenerator<undefined, Timed, undefined> {
  if (ranges.length === 0) return { blocks, ranges: [] }
  const timed: TimedRange[] = []
  for (const range of ranges) {
    const times = await timesOf(sources, range)
    if (times !== undefined) timed.push(times)
    if (timed.length % UNTIMED === 0) yield undefined
  }
  return { blocks, ranges: timed }
}
