/**
 * The records that match, block by block: of the newest blocks first, then those that no block
 * has. A block is read by the columns that its tests need, and then, where some record matches, by
 * those that its reader wants.
 */
import type { CallSources } from '../call-filters.ts'
import { inParts, readAhead } from '../read-ahead.ts'
import {
  columnsOf,
  type RecordParts,
  readBlock,
  type RecordTimes,
  type StoredBlock,
  timesOf,
  TOGETHER,
} from './block-store.ts'
import { type BlockColumn, BlockNumbers, type RecordBlock } from './record-block.ts'
import {
  type BlockTest,
  type RecordScope,
  type TestGroup,
  testsOf,
  testsOfBlock,
} from './record-tests.ts'
import { type PriceReader, SeenPrices } from './seen-prices.ts'

/** Matching rows of the block that `numbers` and `prices` show until the next one. */
export interface BlockMatches {
  readonly block: RecordBlock
  readonly rows: Int32Array
  readonly numbers: BlockNumbers
  readonly prices: SeenPrices
}

export interface ScanRequest {
  readonly scope: RecordScope
  readonly parts: RecordParts
  readonly reader: PriceReader
  /** Columns of the matching records. */
  readonly wanted: readonly BlockColumn[]
  /**
   * False: the block, or a range without a block, is passed over. It is asked shortly before one is
   * read.
   */
  readonly isWanted?: (times: RecordTimes) => boolean
  /** The blocks and ranges with the oldest records first. */
  readonly isOldestFirst?: boolean
}

/** Undefined: nothing yet, so that other work may run. */
export async function* scan(
  sources: CallSources,
  request: ScanRequest,
): AsyncGenerator<BlockMatches | undefined, void, undefined> {
  const { parts, scope, isWanted, isOldestFirst = false } = request
  const groups = testsOf(scope)
  const isInPeriod = (times: RecordTimes): boolean =>
    times.lastStart >= scope.from && times.firstStart < scope.before
  const ordered = parts.blocks
    .filter(isInPeriod)
    .toSorted((one, other) =>
      isOldestFirst ? one.firstStart - other.firstStart : other.lastStart - one.lastStart,
    )
  const work = new BlockWork(request.reader)
  yield* scanBlocks(sources, request, { blocks: ordered, groups, work })
  for (const range of isOldestFirst ? parts.ranges.toReversed() : parts.ranges) {
    if (isWanted !== undefined) {
      const times = await timesOf(sources, range)
      if (times === undefined || !isInPeriod(times) || !isWanted(times)) {
        yield undefined
        continue
      }
    }
    const work2 = readBlock(sources, range, scope)
    let step = await work2.next()
    for (; step.done !== true; step = await work2.next()) yield undefined
    yield* work.matches(step.value, groups)
  }
}

interface Blocks {
  readonly blocks: readonly StoredBlock[]
  readonly groups: readonly TestGroup[]
  readonly work: BlockWork
}

/** Blocks that are read together from a server, while those before them are worked on. */
const AHEAD = 8

async function* scanBlocks(
  sources: CallSources,
  request: ScanRequest,
  { blocks, groups, work }: Blocks,
): AsyncGenerator<BlockMatches | undefined, void, undefined> {
  const { isWanted } = request
  const { isShared } = sources.sums.statements
  const planned = blocks.flatMap((block) => {
    const tests = planOf(groups, block.head)
    return tests === undefined ? [] : [{ block, tests }]
  })
  const reading = new BlockReading(sources, request.wanted)
  const parts = inParts(planned, isShared ? AHEAD : TOGETHER)
  const read = (some: readonly PlannedBlock[]): Promise<ReadBlocks> =>
    reading.read(isWanted === undefined ? some : some.filter(({ block }) => isWanted(block)))
  // Whether later blocks are wanted is known after these.
  const isAhead = isShared && isWanted === undefined
  for await (const current of readAhead(parts, read, isAhead)) {
    yield* scanRead(sources, request, reading, current, { groups, work })
    yield undefined
  }
}

interface PlannedBlock {
  readonly block: StoredBlock
  readonly tests: readonly (readonly BlockTest[])[]
}

interface ReadBlocks {
  readonly planned: readonly PlannedBlock[]
  readonly columns: ReadonlySet<BlockColumn>
  readonly bytes: Awaited<ReturnType<typeof columnsOf>>
}

/** Reads what the tests of blocks need; from a server also the rest, where it will be needed. */
class BlockReading {
  readonly #sources: CallSources
  readonly #wanted: readonly BlockColumn[]
  /** Whether most blocks had some matching record lately. */
  #isDense = false

  constructor(sources: CallSources, wanted: readonly BlockColumn[]) {
    this.#sources = sources
    this.#wanted = wanted
  }

  async read(planned: readonly PlannedBlock[]): Promise<ReadBlocks> {
    const tested = planned.flatMap(({ tests }) => tests.flat().flatMap((each) => each.columns))
    const areAll = planned.every(({ tests }) => tests.length === 0)
    const columns = new Set([...tested, ...(areAll || this.#isDense ? this.#wanted : [])])
    const bytes = await columnsOf(
      this.#sources,
      planned.map(({ block }) => block),
      [...columns],
    )
    return { planned, columns, bytes }
  }

  /** How many of the blocks that were tested have a matching record. */
  matched(count: number, tested: number): void {
    if (tested > 0 && this.#sources.sums.statements.isShared) this.#isDense = 2 * count >= tested
  }
}

async function* scanRead(
  sources: CallSources,
  { wanted, scope }: ScanRequest,
  reading: BlockReading,
  { planned, columns, bytes: read }: ReadBlocks,
  { groups, work }: Omit<Blocks, 'blocks'>,
): AsyncGenerator<BlockMatches | undefined, void, undefined> {
  const matching: { readonly block: StoredBlock; readonly rows: Int32Array }[] = []
  for (const { block, tests } of planned) {
    const bytes = read.get(block.first)
    if (bytes === undefined) yield* readAgain(sources, scope, block, groups, work)
    else {
      if (tests.flat().some(({ price }) => price !== undefined))
        await work.learn({ head: block.head, bytes })
      const rows = work.rowsOf({ head: block.head, bytes }, tests)
      if (rows.length > 0) matching.push({ block, rows })
    }
  }
  reading.matched(matching.length, planned.length)
  const more = wanted.filter((name) => !columns.has(name))
  const rest = await columnsOf(
    sources,
    matching.map(({ block }) => block),
    more,
  )
  for (const { block, rows } of matching) {
    const bytes = rest.get(block.first)
    if (bytes === undefined) yield* readAgain(sources, scope, block, groups, work)
    else {
      const both = new Map([...(read.get(block.first) ?? []), ...bytes])
      await work.learn({ head: block.head, bytes: both }, rows)
      yield work.shown({ head: block.head, bytes: both }, rows)
    }
  }
}

/**
 * The block was made again meanwhile: its records are read as they are. Late ones that it has now
 * are those of its gaps.
 */
async function* readAgain(
  sources: CallSources,
  scope: RecordScope,
  block: StoredBlock,
  groups: readonly TestGroup[],
  work: BlockWork,
): AsyncGenerator<BlockMatches | undefined, void, undefined> {
  const reading = readBlock(sources, block, scope)
  let step = await reading.next()
  for (; step.done !== true; step = await reading.next()) yield undefined
  yield* work.matches(step.value, groups)
}

/** The tests that some record may fail; undefined: none passes all. */
function planOf(
  groups: readonly TestGroup[],
  head: RecordBlock['head'],
): readonly (readonly BlockTest[])[] | undefined {
  const plan: (readonly BlockTest[])[] = []
  for (const group of groups) {
    const tests = testsOfBlock(group, head)
    if (tests === 'all') continue
    if (tests.length === 0) return undefined
    plan.push(tests)
  }
  return plan
}

class BlockWork {
  readonly #reader: PriceReader
  readonly #numbers = new BlockNumbers()
  readonly #prices: SeenPrices

  constructor(reader: PriceReader) {
    this.#reader = reader
    this.#prices = new SeenPrices(reader, this.#numbers)
  }

  /** The customers of the block or of rows of it, where its reader does not see all prices. */
  async learn(block: RecordBlock, rows?: Int32Array): Promise<void> {
    const { width = 0 } = block.head.columns['customer_id'] ?? {}
    if (this.#reader.tenantId === null || (width > 0 && !block.bytes.has('customer_id'))) return
    this.#numbers.show(block, rows)
    const customers = this.#numbers.of('customer_id')
    await this.#reader.learn(
      rows === undefined
        ? customers.subarray(0, block.head.count)
        : Float64Array.from(rows, (row) => customers[row] ?? NaN),
    )
  }

  shown(block: RecordBlock, rows: Int32Array): BlockMatches {
    this.#numbers.show(block, rows)
    this.#prices.show(block.head, rows)
    return { block, rows, numbers: this.#numbers, prices: this.#prices }
  }

  async *matches(
    block: RecordBlock,
    groups: readonly TestGroup[],
  ): AsyncGenerator<BlockMatches, void, undefined> {
    const plan = planOf(groups, block.head)
    if (plan === undefined) return
    await this.learn(block)
    const rows = this.rowsOf(block, plan)
    if (rows.length > 0) yield this.shown(block, rows)
  }

  rowsOf(block: RecordBlock, plan: readonly (readonly BlockTest[])[]): Int32Array {
    this.#numbers.show(block)
    this.#prices.show(block.head)
    const { count } = block.head
    const rows = rowsUpTo(count).slice()
    let left = count
    for (const group of plan) {
      const passes = group.map((test) => this.#passing(test, block.head))
      const [only] = passes
      const passed =
        passes.length === 1 && only !== undefined
          ? only
          : (row: number) => passes.some((isPassed) => isPassed(row))
      let kept = 0
      for (let index = 0; index < left; index += 1) {
        const row = rows[index] ?? 0
        if (passed(row)) rows[kept++] = row
      }
      left = kept
      if (left === 0) break
    }
    return rows.subarray(0, left)
  }

  #passing(
    { columns, price, tag, isPassed }: BlockTest,
    { tags }: RecordBlock['head'],
  ): (row: number) => boolean {
    if (tag !== undefined) return this.#tagged(tag, tags)
    const [column] = columns
    const values =
      price !== undefined
        ? this.#prices.of(price)
        : column === undefined
          ? new Float64Array(0)
          : this.#numbers.of(column)
    return (row) => isPassed(values, row)
  }

  #tagged(wanted: number, tags: number): (row: number) => boolean {
    const [rows, hashes] = [this.#numbers.of('tag_row'), this.#numbers.of('tag_hash')]
    const tagged = new Set<number>()
    for (let index = 0; index < tags; index += 1)
      if (hashes[index] === wanted) tagged.add(rows[index] ?? NaN)
    return (row) => tagged.has(row)
  }
}

let counted = new Int32Array(0)

/** 0, 1, 2 … */
function rowsUpTo(count: number): Int32Array {
  if (counted.length < count) {
    counted = new Int32Array(count)
    for (let row = 0; row < count; row += 1) counted[row] = row
  }
  return counted.subarray(0, count)
}
