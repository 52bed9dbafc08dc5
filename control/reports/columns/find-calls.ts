/**
 * Finds calls by a number or a Call-ID, whole or by its beginning: among the records that no block
 * has, and in the blocks by their columns, the newest first.
 */
import { type RawBuilder, sql } from 'kysely'
import { all, first, inSlices, startsWith } from '../../../schema/sql/query.ts'
import type { CallSources } from '../call-filters.ts'
import { inParts, readAhead } from '../read-ahead.ts'
import { BestRows, rowOrder } from './best-rows.ts'
import {
  columnsOf,
  type IdRange,
  searchedParts,
  type StoredBlock,
  TOGETHER,
} from './block-store.ts'
import { callIdStart, MIN_CALL_ID } from './call-id-start.ts'
import { BLOCK, type BlockColumn, type BlockHead, BlockNumbers } from './record-block.ts'
import {
  type BlockTest,
  phoneStart,
  range,
  type TestGroup,
  testsOfBlock,
  wholePhone,
} from './record-tests.ts'
import { SearchTime } from './search-time.ts'
import { textHash } from './text-hash.ts'

/** Plain data: it is sent to the thread of reports. */
export interface TextSearch {
  readonly text: string
  /** Spellings of the text as a telephone number; empty: it is none. */
  readonly numbers: readonly string[]
  /** Null for all tenants. */
  readonly tenantId: number | null
  readonly limit: number
}

/** Ids of records, the newest first. */
export interface CallsByText {
  readonly whole: readonly number[]
  /** Others whose number or Call-ID begins so. */
  readonly beginning: readonly number[]
}

/** A search ends then with what it has: after so much work of its own, and in all. */
const MAX_MS = 1_000
const MAX_WHOLE_MS = 5_000
/** Call-IDs that may begin so are compared: of the newest records. */
const MAX_COMPARED = 2_000

/** Yields between statements. */
export async function* findCalls(
  sources: CallSources,
  search: TextSearch,
): AsyncGenerator<void, CallsByText, undefined> {
  const found = new FoundCalls(search)
  if (search.numbers.length === 0 && search.text.length < MIN_CALL_ID) return found.result
  const time = new SearchTime(sources.steadyNow, MAX_MS, MAX_WHOLE_MS)
  const { blocks, ranges } = await searchedParts(sources)
  for (const each of ranges) {
    if (time.isUp) break
    found.add(await inRange(sources, search, each))
    yield* time.pause()
  }
  const oldest = await oldestStart(sources)
  const searched = blocks
    .filter(({ lastStart }) => lastStart >= oldest)
    .toSorted((one, other) => other.lastStart - one.lastStart)
  const work = new BlockSearch(search)
  const parts = inParts(searched, TOGETHER)
  const isOver = (at: number): boolean =>
    time.isUp || found.isFullBefore(parts[at]?.[0]?.lastStart ?? -Infinity)
  const read = (some: readonly StoredBlock[]) => work.read(sources, some, found)
  let at = 0
  if (!isOver(at))
    for await (const some of readAhead(parts, read, sources.sums.statements.isShared)) {
      for await (const rows of work.matches(sources, some)) found.add(rows)
      yield* time.pause()
      at += 1
      if (isOver(at)) break
    }
  yield* compareCallIds(sources, search, found)
  return found.result
}

/** Records that are past their retention are gone, while their blocks are not. */
async function oldestStart({ store }: CallSources): Promise<number> {
  const query = store.db.selectFrom('cdr').select('start_stamp').orderBy('start_stamp').limit(1)
  return (await first(store, query))?.start_stamp ?? 0
}

interface FoundRow {
  readonly id: number
  readonly start: number
  /** `maybe`: its Call-ID is to be compared. `likely`: that, before those of any others. */
  readonly match: 'whole' | 'beginning' | 'likely' | 'maybe'
}

const newestFirst = rowOrder(true)

class FoundCalls {
  readonly #whole: BestRows
  readonly #beginning: BestRows
  readonly #maybe = new BestRows(newestFirst, MAX_COMPARED)
  readonly #limit: number

  constructor({ limit }: TextSearch) {
    this.#limit = limit
    // A record may be met twice: by its number and its Call-ID, or while its block is made.
    this.#whole = new BestRows(newestFirst, 2 * limit)
    this.#beginning = new BestRows(newestFirst, 2 * limit)
  }

  add(rows: Iterable<FoundRow>): void {
    for (const { id, start, match } of rows) {
      const list =
        match === 'whole' ? this.#whole : match === 'beginning' ? this.#beginning : this.#maybe
      list.add({ key: match === 'likely' ? Infinity : start, start, id })
    }
  }

  /** Whether no record that started by then would be shown. */
  isFullBefore(start: number): boolean {
    return (this.#whole.rows[2 * this.#limit - 1]?.start ?? -Infinity) > start
  }

  /** The same of records that only begin so. */
  hasBeginningsBefore(start: number): boolean {
    return (this.#beginning.rows[2 * this.#limit - 1]?.start ?? -Infinity) > start
  }

  /** Those whose Call-IDs are to be compared. */
  get maybes(): readonly { readonly id: number; readonly start: number }[] {
    return this.#maybe.rows
  }

  get result(): CallsByText {
    const whole = new Set(this.#whole.rows.map(({ id }) => id))
    const beginning = new Set(this.#beginning.rows.map(({ id }) => id))
    return {
      whole: [...whole].slice(0, this.#limit),
      beginning: [...beginning].filter((id) => !whole.has(id)).slice(0, this.#limit),
    }
  }
}

// ---- records that no block has ------------------------------------------------------------

interface ReadRow {
  readonly id: number
  readonly start: number
  readonly is_whole: number
}

/** The newest matching records of a range of ids. */
async function inRange(
  { store }: CallSources,
  { text, numbers, tenantId, limit }: TextSearch,
  { first: from, last }: IdRange,
): Promise<readonly FoundRow[]> {
  const columns = (['caller_id_number', 'destination_number'] as const).map((each) =>
    sql.ref<string>(each),
  )
  const callId = sql.ref<string>('call_id')
  const anyOf = (conditions: readonly RawBuilder<boolean>[]): RawBuilder<boolean> =>
    sql`(${sql.join([sql`1 = 0`, ...conditions], sql` OR `)})`
  const isCallId = text.length >= MIN_CALL_ID
  const isWhole = anyOf([
    ...(isCallId ? [sql<boolean>`${callId} = ${text}`] : []),
    ...(numbers.length === 0
      ? []
      : columns.map((column) => sql<boolean>`${column} IN (${sql.join(numbers)})`)),
  ])
  const begins = anyOf([
    ...(isCallId ? [startsWith(callId, text)] : []),
    ...columns.flatMap((column) => numbers.map((number) => startsWith(column, number))),
  ])
  const query = store.db
    .selectFrom('cdr')
    .select(['id', 'start_stamp as start'])
    .select(sql<number>`CASE WHEN ${isWhole} THEN 1 ELSE 0 END`.as('is_whole'))
    .where('id', '>=', from)
    .where('id', '<=', last)
    .where(sql<boolean>`(${isWhole} OR ${begins})`)
    .$if(tenantId !== null, (own) => own.where(sql<boolean>`+tenant_id = ${tenantId}`))
    .orderBy(sql`3`, 'desc')
    .orderBy('start_stamp', 'desc')
    .orderBy('id', 'desc')
    .limit(2 * limit)
  return (await all<ReadRow>(store, query)).map(({ id, start, is_whole: whole }) => ({
    id,
    start,
    match: whole === 1 ? 'whole' : 'beginning',
  }))
}

// ---- blocks -------------------------------------------------------------------------------

/** A bit for each: of two numbers one may only begin so, and the Call-ID is compared apart. */
const [MAYBE, BEGINNING, WHOLE] = [1, 2, 4] as const

interface PlannedTests {
  readonly match: typeof MAYBE | typeof BEGINNING | typeof WHOLE
  readonly tests: readonly BlockTest[] | 'all'
}

interface ReadPlans {
  readonly planned: readonly {
    readonly block: StoredBlock
    readonly plan: readonly PlannedTests[]
  }[]
  readonly bytes: Awaited<ReturnType<typeof columnsOf>>
}

/** Which records of blocks match. */
class BlockSearch {
  readonly #numbers = new BlockNumbers()
  readonly #marks = new Uint8Array(BLOCK)
  readonly #search: TextSearch
  readonly #whole: TestGroup
  readonly #beginning: TestGroup
  readonly #callIdStart: TestGroup
  readonly #callId: TestGroup
  readonly #hash: number
  readonly #tenant: TestGroup

  constructor(search: TextSearch) {
    const { text, numbers, tenantId } = search
    const hash = textHash(text)
    const start = callIdStart(text)
    this.#search = search
    this.#hash = hash
    this.#whole = numbers.flatMap((number) =>
      phoneColumns.map((column) => wholePhone(column, number)),
    )
    this.#beginning = numbers.flatMap((number) =>
      phoneColumns.map((column) => phoneStart(column, number)),
    )
    this.#callId = start === undefined ? [] : [range('call_id', [hash, hash])]
    this.#callIdStart = start === undefined ? [] : [range('call_id_start', [start, start])]
    this.#tenant = tenantId === null ? [] : [range('tenant_id', [tenantId, tenantId])]
  }

  async read(
    sources: CallSources,
    blocks: readonly StoredBlock[],
    found: FoundCalls,
  ): Promise<ReadPlans> {
    const planned = blocks.map((block) => ({ block, plan: this.#planOf(block, found) }))
    const tested = planned.flatMap(({ plan }) => plan.flatMap(columnsIn))
    return { planned, bytes: await columnsOf(sources, blocks, [...new Set(tested)]) }
  }

  async *matches(
    sources: CallSources,
    { planned, bytes: read }: ReadPlans,
  ): AsyncGenerator<readonly FoundRow[], void, undefined> {
    const matching: MarkedBlock[] = []
    for (const { block, plan } of planned) {
      const bytes = read.get(block.first)
      if (bytes === undefined) yield await inRange(sources, this.#search, block)
      else {
        this.#numbers.show({ head: block.head, bytes })
        const found = this.#mark(block, plan)
        if (found > 0)
          matching.push({ block, found, marks: this.#marks.slice(0, block.head.count) })
      }
    }
    const shown = await columnsOf(sources, matching.map(blockOf), shownColumns)
    const compared = matching.filter(({ found }) => (found & MAYBE) > 0)
    const hashes = await columnsOf(sources, compared.map(blockOf), ['call_id'])
    for (const each of matching) {
      const { block } = each
      const bytes = shown.get(block.first)
      const more = compared.includes(each) ? hashes.get(block.first) : noBytes
      if (bytes === undefined || more === undefined)
        yield await inRange(sources, this.#search, block)
      else {
        this.#numbers.show({ head: block.head, bytes: new Map([...bytes, ...more]) })
        yield this.#shown(each)
      }
    }
  }

  #planOf({ head, lastStart }: StoredBlock, found: FoundCalls): readonly PlannedTests[] {
    if (this.#isOfOthers(head)) return []
    const hasStarts = head.columns['call_id_start'] !== undefined
    const plan: readonly (readonly [PlannedTests['match'], TestGroup])[] = [
      // A block of an earlier version has whole Call-IDs alone.
      hasStarts ? [MAYBE, this.#callIdStart] : [WHOLE, this.#callId],
      ...(found.hasBeginningsBefore(lastStart) ? [] : ([[BEGINNING, this.#beginning]] as const)),
      [WHOLE, this.#whole],
    ]
    return plan.flatMap(([match, group]) => {
      const tests = testsOfBlock(group, head)
      return tests.length === 0 ? [] : [{ match, tests }]
    })
  }

  #isOfOthers(head: BlockHead): boolean {
    return this.#tenant.length > 0 && testsOfBlock(this.#tenant, head).length === 0
  }

  /** Returns the marks of all rows together. */
  #mark({ head: { count } }: StoredBlock, plan: readonly PlannedTests[]): number {
    const marks = this.#marks
    marks.fill(0, 0, count)
    let found = 0
    for (const { match, tests } of plan) {
      if (tests === 'all') {
        for (let row = 0; row < count; row += 1) marks[row] = (marks[row] ?? 0) | match
        if (count > 0) found |= match
        continue
      }
      for (const { columns, isPassed } of tests) {
        const [column = 'id'] = columns
        const values = this.#numbers.of(column)
        for (let row = 0; row < count; row += 1)
          if (isPassed(values, row)) {
            marks[row] = (marks[row] ?? 0) | match
            found |= match
          }
      }
    }
    return found
  }

  #shown({ block: { head }, found: all, marks }: MarkedBlock): readonly FoundRow[] {
    const { count } = head
    const { tenantId } = this.#search
    const [ids, starts] = [this.#numbers.of('id'), this.#numbers.of('start_stamp')]
    const tenants = this.#numbers.of('tenant_id')
    const hashes = (all & MAYBE) > 0 ? this.#numbers.of('call_id') : noHashes
    const rows: FoundRow[] = []
    for (let row = 0; row < count; row += 1) {
      const mark = marks[row] ?? 0
      if (mark === 0 || (tenantId !== null && tenants[row] !== tenantId)) continue
      const found = { id: ids[row] ?? 0, start: starts[row] ?? 0 }
      if ((mark & WHOLE) > 0) rows.push({ ...found, match: 'whole' })
      else {
        if ((mark & BEGINNING) > 0) rows.push({ ...found, match: 'beginning' })
        if ((mark & MAYBE) > 0)
          rows.push({ ...found, match: hashes[row] === this.#hash ? 'likely' : 'maybe' })
      }
    }
    return rows
  }
}

interface MarkedBlock {
  readonly block: StoredBlock
  /** A mark for each row. */
  readonly marks: Uint8Array
  /** The marks of all rows together. */
  readonly found: number
}

const blockOf = ({ block }: MarkedBlock): StoredBlock => block

const noBytes: ReadonlyMap<string, Buffer> = new Map()
const noHashes = new Float64Array(0)

const phoneColumns = ['caller_id_number', 'destination_number'] as const
const shownColumns = ['id', 'start_stamp', 'tenant_id'] as const

const columnsIn = ({ tests }: PlannedTests): readonly BlockColumn[] =>
  tests === 'all' ? [] : tests.flatMap(({ columns }) => columns)

// ---- Call-IDs -----------------------------------------------------------------------------

/** Compares the Call-IDs themselves. */
async function* compareCallIds(
  { store }: CallSources,
  { text }: TextSearch,
  found: FoundCalls,
): AsyncGenerator<void, void, undefined> {
  const starts = new Map(found.maybes.map(({ id, start }) => [id, start]))
  for await (const ids of inSlices([...starts.keys()])) {
    const query = store.db
      .selectFrom('cdr')
      .select(['id', 'call_id'])
      .where('id', 'in', [...ids])
    const rows = await all(store, query)
    found.add(
      rows.flatMap(({ id, call_id: callId }): readonly FoundRow[] => {
        if (!callId.startsWith(text)) return []
        const match = callId === text ? 'whole' : 'beginning'
        return [{ id, start: starts.get(id) ?? 0, match }]
      }),
    )
    yield
  }
}
