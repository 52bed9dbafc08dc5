/**
 * Sums the calls of a period by group. Whole days come from the daily totals, where these have the
 * groups; the rest, and new records, come from the records, newest first and for a second at most.
 * Where the blocks of records answer sooner, they do.
 */
import { type RawBuilder, sql } from 'kysely'
import { DAY_MS, HOUR_MS } from '../../schema/clock.ts'
import { type Window, windows } from '../../schema/records/record-windows.ts'
import { all, first, transaction } from '../../schema/sql/query.ts'
import { type Zone, zoneOf } from '../../schema/time-zones.ts'
import {
  isInFile,
  ALL,
  type CallFilters,
  conditionsOf,
  type Dimension,
  endOfDay,
  hourOfMinute,
  quarterOfMinute,
  type Grouping,
  groupings,
  isMember,
  type MemberDimension,
  memberFilters,
  memberOf,
  OTHERS,
  paired,
  type CallSources,
  PREFIX_LENGTH,
  startOfDay,
} from './call-filters.ts'
import {
  add,
  type Figures,
  type FiguresOfRow,
  folded,
  type GroupRow,
  noFigures,
  ofCostChange,
  ofRecord,
  ofSum,
} from './figures.ts'
import type { CdrMatch } from './cdr-match.ts'
import { groupRecords } from './columns/group-records.ts'
import { type RecordPlace, placeOf, recordsIn } from './columns/record-place.ts'
import { matchingTimes } from './matching-times.ts'
import { isMarked, markedCurrency, unmarked } from './own-prices.ts'
import { behind, inOneTurn, MAX_TAIL } from './roll-up.ts'
import { newRecords, type Watermark, watermarkOf } from './roll-up-state.ts'

export const summaryOrders = ['cost', 'count', 'asr'] as const

export const summaryGroupings = [...groupings, 'day'] as const
export type SummaryGrouping = (typeof summaryGroupings)[number]

/** Plain data: it is sent to the thread of reports. */
export interface SummaryRequest {
  /** Null for all tenants. */
  readonly tenantId: number | null
  /** Milliseconds UTC of the start of calls; `before` is exclusive. */
  readonly from: number
  readonly before: number
  readonly groupBy: SummaryGrouping
  /** IANA name, of hours and days; absent: UTC. */
  readonly zone?: string | undefined
  readonly filters: CallFilters
  /** Filters that the daily totals do not have. */
  readonly match?: CdrMatch | undefined
  readonly orderBy: (typeof summaryOrders)[number]
  readonly limit: number
  /** Groups before those that are listed; absent: 0. */
  readonly offset?: number
}

/** Sums of all currencies together; `cost` is by currency. */
export interface GroupSum {
  readonly member: string
  readonly figures: Figures
  readonly costs: ReadonlyMap<string, bigint>
}

export interface SummedGroups {
  /** Later than asked for when the records before were not read. */
  readonly from: number
  readonly isComplete: boolean
  /** Whether daily totals were used. */
  readonly isFromTotals: boolean
  readonly groups: readonly GroupSum[]
  /** Calls of merged groups. */
  readonly others: GroupSum | undefined
}

/**
 * How long one question may read records, and how many windows of them it may read however long
 * they take.
 */
const MAX_READ_MS = 1_000
const LEAST_WINDOWS = 10
/** Fewer records of a period are read sooner as they are than by blocks. */
const LEAST_IN_BLOCKS = 20_000

/** How little is read at least, or by blocks. */
interface SummaryLimits {
  readonly leastWindows?: number
  readonly leastInBlocks?: number
}

/** Groups in memory; the calls of further groups are counted as `others`. */
const MAX_GROUPS = 100_000

/** Yields between statements. */
export async function* summarize(
  sources: CallSources,
  request: SummaryRequest,
  { leastWindows = LEAST_WINDOWS, leastInBlocks = LEAST_IN_BLOCKS }: SummaryLimits = {},
): AsyncGenerator<void, SummedGroups, undefined> {
  const parts = partsOf(request)
  const { tenantId, from, before, match, filters } = request
  const totals = await dailyTotalsNow(sources, parts)
  const place = await placeOf(sources, { tenantId, from, before, match, filters })
  const isByBlocks =
    match !== undefined || (await areBlocksSooner(sources, parts, totals, place, leastInBlocks))
  const summed = isByBlocks
    ? yield* summarizeBlocks(sources, parts, place)
    : yield* summarizeParts(sources, parts, totals, leastWindows)
  return { ...summed, groups: inZone(summed.groups, request) }
}

/** The same as it is read: rows have neither days nor the hours of zones. */
type PartsRequest = Omit<SummaryRequest, 'groupBy'> & { readonly groupBy: Grouping }

const partsOf = (request: SummaryRequest): PartsRequest => {
  const { groupBy, zone } = request
  if (groupBy !== 'day' && groupBy !== 'hour') return { ...request, groupBy }
  return { ...request, groupBy: zone === undefined ? 'hour' : 'quarter' }
}

/** Hours or days of the zone, named by their first moment. */
function inZone(
  parts: readonly GroupSum[],
  { groupBy, zone: name }: SummaryRequest,
): readonly GroupSum[] {
  if (groupBy !== 'day' && (groupBy !== 'hour' || name === undefined)) return parts
  const zone = zoneOf(name ?? 'UTC')
  const beginOf = groupBy === 'day' ? dayBegin : hourBegin
  const groups = new Map<string, MutableGroup>()
  for (const part of parts) {
    const member = String(beginOf(Number(part.member), zone))
    const group = groups.get(member) ?? emptyGroup(member)
    groups.set(member, group)
    addGroup(group, part)
  }
  return [...groups.values()]
}

const dayBegin = (at: number, zone: Zone): number => zone.momentOf(zone.dayOf(at))

/**
 * Where clocks are set back, an hour that comes twice is two groups. Where they are set by half an
 * hour, an hour begins in its middle.
 */
function hourBegin(at: number, zone: Zone): number {
  const offset = zone.offsetMs(at)
  const begin = Math.floor((at + offset) / HOUR_MS) * HOUR_MS - offset
  if (zone.offsetMs(begin) === offset) return begin
  return zone.changes(begin, at).at(-1)?.from ?? begin
}

const dailyTotalsNow = async (sources: CallSources, request: PartsRequest) =>
  (await behind(sources)) > MAX_TAIL ? undefined : dailyTotalsFor(request)

/** A record in a block and a row of daily totals take so many microseconds. */
const RECORD_US = 0.15
const TOTAL_US = 3

/** Whether the records of the period are in blocks, and are summed sooner so. */
async function areBlocksSooner(
  sources: CallSources,
  request: PartsRequest,
  totals: DailyTotals | undefined,
  { scope, parts }: RecordPlace,
  least: number,
): Promise<boolean> {
  const { inBlocks, others } = recordsIn(parts, scope)
  if (inBlocks < least || others > inBlocks) return false
  if (totals === undefined) return true
  const days = (scope.before - scope.from) / DAY_MS
  const rows = (await totalsOfDay(sources, totals, request)) * days
  return inBlocks * RECORD_US < rows * TOTAL_US
}

/** Rows of the last whole day. */
async function totalsOfDay(
  { sums }: CallSources,
  totals: DailyTotals,
  { tenantId, before }: PartsRequest,
): Promise<number> {
  const query = sums.db
    .selectFrom('call_sum')
    .select(({ fn }) => [fn.countAll<number>().as('rows')])
    .where('day', '=', startOfDay(before) - DAY_MS)
    .where('dimension', '=', dimensionOf(totals, tenantId))
    .where(sql<boolean>`${customersOf(totals)}`)
  return (await first(sums, query))?.rows ?? 0
}

/** Groups that are added to the others together. */
const GROUPS_TOGETHER = 50_000
/** A summary by blocks ends then with what it has. */
const MAX_BLOCKS_MS = 10_000

async function* summarizeBlocks(
  sources: CallSources,
  { tenantId, groupBy, from }: PartsRequest,
  place: RecordPlace,
): AsyncGenerator<void, SummedGroups, undefined> {
  const groups = new Groups(tenantId)
  const until = sources.steadyNow() + MAX_BLOCKS_MS
  const work = groupRecords(sources, { place, groupBy, together: GROUPS_TOGETHER, until })
  let step = await work.next()
  for (; step.done !== true; step = await work.next()) {
    if (step.value !== undefined) groups.add(step.value)
    yield
  }
  return groups.end(from, step.value, false)
}

async function* summarizeParts(
  sources: CallSources,
  request: PartsRequest,
  totals: DailyTotals | undefined,
  leastWindows: number,
): AsyncGenerator<void, SummedGroups, undefined> {
  const groups = new Groups(request.tenantId)
  const days = totals && (await daysOf(sources, request))
  const { from, before, tenantId } = request
  const scope = { tenantId, customerId: request.filters.customerId }
  const startedMs = sources.steadyNow()
  let read = 0
  let reached = before
  async function* records(window: Window): AsyncGenerator<void, boolean, undefined> {
    for (const time of await matchingTimes(sources, request, window))
      for await (const part of windows(sources.store, scope, time)) {
        if (read >= leastWindows && sources.steadyNow() - startedMs > MAX_READ_MS) return false
        read += 1
        groups.add(await readRecords(sources, request, part))
        reached = part.from
        yield
      }
    return true
  }
  let isFromTotals = false
  if (days !== undefined && totals !== undefined) {
    // The newest first, so that the oldest are left out.
    if (!(yield* records({ from: Math.min(days.before, before), before })))
      return groups.end(reached, false, false)
    const parts = yield* readDailyTotals(sources, totals, request, days)
    isFromTotals = parts !== undefined
    groups.add(parts ?? [])
    if (isFromTotals) reached = Math.max(days.from, from)
    yield
  }
  const isComplete = yield* records({ from, before: reached })
  return groups.end(isComplete ? from : reached, isComplete, isFromTotals)
}

/**
 * The whole days of the period. A day that has no call outside the
 * period is whole, such as today. Undefined: there is none.
 */
async function daysOf(
  { store }: CallSources,
  { from, before }: PartsRequest,
): Promise<Window | undefined> {
  const isFree = async (since: number, until: number): Promise<boolean> => {
    if (since >= until) return true
    const query = store.db
      .selectFrom('cdr')
      .select('id')
      .where('start_stamp', '>=', since)
      .where('start_stamp', '<', until)
      .limit(1)
    return (await first(store, query)) === undefined
  }
  const start = (await isFree(startOfDay(from), from)) ? startOfDay(from) : endOfDay(from)
  const end = (await isFree(before, endOfDay(before))) ? endOfDay(before) : startOfDay(before)
  return start < end ? { from: start, before: end } : undefined
}

/** How often sums are read that were added to meanwhile: after that, the records are. */
const MAX_ATTEMPTS = 4

/**
 * The totals at one moment, with new records. Undefined: the totals do not have the groups. A file
 * is read in several turns of the thread, and additions in between are noticed; a server reads in
 * one transaction.
 */
async function* readDailyTotals(
  sources: CallSources,
  totals: DailyTotals,
  request: PartsRequest,
  days: Window,
): AsyncGenerator<void, readonly GroupRow[] | undefined, undefined> {
  const once = () => readOnce(sources, totals, request, days)
  for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt += 1) {
    const parts = isInFile(sources)
      ? yield* once()
      : await transaction(sources.sums, () => inOneTurn(once()))
    if (parts !== 'moved') return parts
  }
  return undefined
}

/** Yields after each step. */
async function* readOnce(
  sources: CallSources,
  totals: DailyTotals,
  request: PartsRequest,
  days: Window,
): AsyncGenerator<void, readonly GroupRow[] | 'moved' | undefined, undefined> {
  const watermark = await watermarkOf(sources)
  let rows: readonly GroupRow[] = []
  for (const step of watermark.upTo === 0 ? [] : stepsOf(days)) {
    const part = await readSums(sources, totals, request, step)
    if (part === undefined) return undefined
    rows = rows.concat(part)
    yield
  }
  return transaction(sources.sums, async () => {
    const { upTo, changesUpTo } = await watermarkOf(sources)
    if (upTo !== watermark.upTo || changesUpTo !== watermark.changesUpTo) return 'moved'
    return [...rows, ...(await readTail(sources, watermark, request, days))]
  })
}

function readRecords(
  { store }: CallSources,
  { tenantId, groupBy, filters }: PartsRequest,
  { from, before }: Window,
): Promise<readonly GroupRow[]> {
  const ofTenant: RawBuilder<number> =
    filters.customerId === undefined ? sql`cdr.tenant_id` : sql`+cdr.tenant_id`
  let query = store.db
    .selectFrom('cdr')
    .select(groupColumns(groupBy, ofRecord, currencyFor(tenantId, sql`cdr.currency`)))
    .where('cdr.start_stamp', '>=', from)
    .where('cdr.start_stamp', '<', before)
    .groupBy(sql`1`)
    .groupBy(sql`2`)
  if (tenantId !== null) query = query.where(sql<boolean>`${ofTenant} = ${tenantId}`)
  for (const condition of conditionsOf(filters, tenantId)) query = query.where(condition)
  return all(store, query.$castTo<GroupRow>())
}

/** The sums of one dimension, of all customers, of each, or of one. */
interface DailyTotals {
  readonly dimension: Dimension
  readonly customer: 'all' | 'each' | number
  readonly member: { readonly dimension: MemberDimension; readonly value: string } | undefined
}

/** Undefined: only the records have these groups. */
function dailyTotalsFor({ groupBy, filters }: PartsRequest): DailyTotals | undefined {
  const { customerId, members, direction, disposition, minCostMicros } = filters
  if (direction !== undefined || disposition !== undefined || minCostMicros !== undefined)
    return undefined
  const [filter, ...more] = memberFilters(members)
  if (more.length > 0) return undefined
  if (filter?.[0] === 'callee_prefix' && filter[1].length > PREFIX_LENGTH) return undefined
  if (groupBy === 'minute' || groupBy === 'quarter' || groupBy === 'hour')
    return filter === undefined && customerId === undefined
      ? { dimension: 'minute', customer: 'all', member: undefined }
      : undefined
  const member = filter && { dimension: filter[0], value: filter[1] }
  const own = groupBy === 'customer' || groupBy === 'tenant' ? undefined : groupBy
  if (own !== undefined && member !== undefined && own !== member.dimension) return undefined
  const dimension = own ?? member?.dimension
  // Few groups, each with its tenant.
  if (dimension === undefined)
    return groupBy === 'tenant' && customerId === undefined
      ? { dimension: 'denial_code', customer: 'all', member }
      : { dimension: 'customer', customer: customerId ?? 'all', member }
  const customer = customerId ?? (groupBy === 'customer' ? 'each' : 'all')
  return customer === 'all' || paired.has(dimension) ? { dimension, customer, member } : undefined
}

/** Days of one statement: about 0.1 s. */
const DAYS = 16

/** Whole days, in periods of one statement each. */
function* stepsOf({ from, before }: Window): Generator<Window, void, undefined> {
  for (let day = from; day < before; day += DAYS * DAY_MS)
    yield { from: day, before: Math.min(before, day + DAYS * DAY_MS) }
}

/** The totals of the days of one step. Undefined: some of the calls are in merged groups. */
async function readSums(
  { sums }: CallSources,
  totals: DailyTotals,
  { groupBy, tenantId }: PartsRequest,
  { from, before }: Window,
): Promise<readonly GroupRow[] | undefined> {
  const { member } = totals
  const column = sql.ref<string>('member')
  const days = Array.from({ length: (before - from) / DAY_MS }, (_, index) => from + index * DAY_MS)
  let rows = sums.db
    .selectFrom('call_sum')
    .where('day', 'in', days)
    .where('dimension', '=', dimensionOf(totals, tenantId))
    .where(sql<boolean>`${customersOf(totals)}`)
  if (tenantId !== null) rows = rows.where('tenant_id', '=', tenantId)
  if (member !== undefined) {
    const others = rows.select('member').where('member', '=', OTHERS).limit(1)
    if ((await first(sums, others)) !== undefined) return undefined
    rows = rows.where(isMember(member.dimension, member.value, column))
  }
  const query = rows
    .select([groupOf(totals, groupBy).as('member'), 'currency', ...folded(ofSum)])
    .groupBy(sql`1`)
    .groupBy(sql`2`)
  return all(sums, query.$castTo<GroupRow>())
}

/** Minutes of all tenants have one total. */
const dimensionOf = ({ dimension }: DailyTotals, tenantId: number | null): Dimension =>
  dimension === 'minute' && tenantId !== null ? 'tenant_minute' : dimension

function customersOf({ dimension, customer }: DailyTotals): RawBuilder<unknown> {
  if (dimension === 'customer' && typeof customer === 'number')
    return sql`customer_id = ${ALL} AND member = ${String(customer)}`
  if (customer === 'each') return sql`customer_id > ${ALL}`
  return sql`customer_id = ${customer === 'all' ? ALL : customer}`
}

function groupOf({ dimension }: DailyTotals, groupBy: Grouping): RawBuilder<string> {
  if (groupBy === 'tenant') return idOf('tenant_id')
  if (groupBy === 'hour') return hourOfMinute
  if (groupBy === 'quarter') return quarterOfMinute
  if (groupBy === 'customer' && dimension !== 'customer') return idOf('customer_id')
  return sql.ref<string>('member')
}

const idOf = (column: string): RawBuilder<string> =>
  sql`coalesce(CAST(nullif(${sql.ref(column)}, 0) AS TEXT), '')`

/** The same of records that the sums do not have yet, and of costs that were changed since. */
async function readTail(
  { store }: CallSources,
  watermark: Watermark,
  request: PartsRequest,
  { from, before }: Window,
): Promise<readonly GroupRow[]> {
  const { db } = store
  const currencyOf = (column: RawBuilder<unknown>) => currencyFor(request.tenantId, column)
  const isNew = newRecords(watermark)
  const conditions = [
    // The plus keeps SQLite from other indexes: the few new records are at the end of the ids.
    sql<boolean>`+cdr.start_stamp >= ${from} AND +cdr.start_stamp < ${before}`,
    ...conditionsOf(request.filters, request.tenantId, sql`+cdr.customer_id`),
    ...(request.tenantId === null ? [] : [sql<boolean>`+cdr.tenant_id = ${request.tenantId}`]),
  ]
  let records = db
    .selectFrom('cdr')
    .select(groupColumns(request.groupBy, ofRecord, currencyOf(sql`cdr.currency`)))
    .where(isNew)
    .groupBy(sql`1`)
    .groupBy(sql`2`)
  let changes = db
    .selectFrom('cdr_cost_change as change')
    .innerJoin('cdr', 'cdr.id', 'change.cdr_id')
    .select(groupColumns(request.groupBy, ofCostChange, currencyOf(sql`change.currency`)))
    .where('change.id', '>', watermark.changesUpTo)
    .where(sql<boolean>`NOT ${isNew}`)
    .groupBy(sql`1`)
    .groupBy(sql`2`)
  for (const condition of conditions) {
    records = records.where(condition)
    changes = changes.where(condition)
  }
  return [
    ...(await all(store, records.$castTo<GroupRow>())),
    ...(await all(store, changes.$castTo<GroupRow>())),
  ]
}

/** Marks hidden costs; a reader of all tenants sees every cost. */
const currencyFor = (tenantId: number | null, column: RawBuilder<unknown>): RawBuilder<unknown> =>
  tenantId === null ? column : markedCurrency(column)

const groupColumns = (groupBy: Grouping, figures: FiguresOfRow, currency: RawBuilder<unknown>) => [
  memberOf[groupBy].as('member'),
  sql<string>`coalesce(${currency}, '')`.as('currency'),
  ...folded(figures),
]

interface MutableGroup extends GroupSum {
  readonly costs: Map<string, bigint>
}

const emptyGroup = (member: string): MutableGroup => ({
  member,
  figures: noFigures(),
  costs: new Map(),
})

function addGroup(sum: MutableGroup, { figures, costs }: GroupSum): void {
  add(sum.figures, figures)
  for (const [currency, cost] of costs)
    sum.costs.set(currency, (sum.costs.get(currency) ?? 0n) + cost)
}

class Groups {
  readonly #groups = new Map<string, MutableGroup>()
  /** A tenant does not see what calls cost that the platform's customers pay. */
  readonly #isOfTenant: boolean

  constructor(tenantId: number | null) {
    this.#isOfTenant = tenantId !== null
  }

  add(rows: Iterable<GroupRow>): void {
    for (const { member, currency: marked, cost_micros: cost, ...row } of rows) {
      const isHidden = this.#isOfTenant && isMarked(marked)
      const currency = isHidden ? '' : unmarked(marked)
      const figures = isHidden
        ? { ...row, cost_micros: 0n, dearest: '' }
        : { ...row, cost_micros: BigInt(cost) }
      const group = this.#groupOf(member)
      add(group.figures, figures)
      if (figures.cost_micros !== 0n || currency !== '')
        group.costs.set(currency, (group.costs.get(currency) ?? 0n) + figures.cost_micros)
    }
  }

  end(from: number, isComplete: boolean, isFromTotals: boolean): SummedGroups {
    const others = this.#groups.get(OTHERS)
    this.#groups.delete(OTHERS)
    // A cost that was changed to another currency leaves nothing in its old one.
    const groups = [...this.#groups.values()].filter(({ figures }) => figures.calls > 0)
    return { from, isComplete, isFromTotals, groups, others }
  }

  #groupOf(member: string): MutableGroup {
    const known = this.#groups.get(member)
    if (known !== undefined) return known
    if (this.#groups.size >= MAX_GROUPS && member !== OTHERS) this.#forgetLightest()
    const group = emptyGroup(member)
    this.#groups.set(member, group)
    return group
  }

  /** Half of the groups, those that cost least and have fewest calls, are others from now on. */
  #forgetLightest(): void {
    const others = this.#groupOf(OTHERS)
    const light = [...this.#groups.values()].toSorted(byWeight).slice(MAX_GROUPS / 2)
    for (const group of light) {
      if (group.member === OTHERS) continue
      this.#groups.delete(group.member)
      addGroup(others, group)
    }
  }
}

function byWeight({ figures: one }: GroupSum, { figures: other }: GroupSum): number {
  if (one.cost_micros !== other.cost_micros) return one.cost_micros > other.cost_micros ? -1 : 1
  return other.calls - one.calls
}

/** Totals over all groups, listed or not. */
export function totalOf({ groups, others }: SummedGroups): GroupSum {
  const total = emptyGroup('')
  for (const group of others === undefined ? groups : [...groups, others]) addGroup(total, group)
  return total
}
