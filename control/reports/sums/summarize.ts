/**
 * What calls of a period come to, by group. Whole days are read from the kept sums where they have what is asked; the
 * rest, and what they do not have yet, from the records, newest first and for a second at most.
 */
import { type RawBuilder, sql } from 'kysely'
import { first, rawRows, transaction } from '../../../schema/sql/query.ts'
import { conditionsOf } from './call-filters.ts'
import { endOfDay, memberOf, OTHERS, startOfDay } from './dimensions.ts'
import {
  add,
  type Figures,
  figuresIn,
  type GroupValues,
  noFigures,
  folded,
  ofRecord,
} from './figures.ts'
import { type KeptSums, keptSumsFor, readSums, readTail, stepsOf } from './kept-sums.ts'
import { matchingTimes } from './matching-times.ts'
import type { Place } from './places.ts'
import { type Window, windows } from '../../../schema/record-windows.ts'
import { behind, inOneTurn, MAX_TAIL, watermarkOf } from './roll-up.ts'
import type { SummaryRequest } from './summary-request.ts'

/** Of all currencies together; `cost` is by currency. */
export interface GroupSum {
  readonly member: string
  readonly figures: Figures
  readonly costs: ReadonlyMap<string, bigint>
}

export interface Summed {
  /** Later than asked for when the records before were not read. */
  readonly from: number
  readonly isComplete: boolean
  /** Whether kept sums were used. */
  readonly isKept: boolean
  readonly groups: readonly GroupSum[]
  /** Calls of groups that the sums do not keep apart. */
  readonly others: GroupSum | undefined
}

/** How long one question may read records, and how many windows of them it may read however long they take. */
const MAX_READ_MS = 1_000
const LEAST_WINDOWS = 10
/** Groups in memory; what comes beyond is among the others. */
const MAX_GROUPS = 100_000

/** Yields between statements. */
export async function* summarize(
  place: Place,
  request: SummaryRequest,
  leastWindows = LEAST_WINDOWS,
): AsyncGenerator<void, Summed, undefined> {
  const groups = new Groups()
  const days = await daysOf(place, request)
  const kept = days && keptSumsFor(request)
  const { from, before, tenantId } = request
  const scope = { tenantId, customerId: request.filters.customerId }
  const areSumsBehind = (await behind(place)) > MAX_TAIL
  const begunMs = place.steadyNow()
  let read = 0
  let reached = before
  async function* records(window: Window): AsyncGenerator<void, boolean, undefined> {
    for (const time of await matchingTimes(place, request, window))
      for await (const part of windows(place.store, scope, time)) {
        if (read >= leastWindows && place.steadyNow() - begunMs > MAX_READ_MS) return false
        read += 1
        groups.add(await readRecords(place, request, part))
        reached = part.from
        yield
      }
    return true
  }
  if (days === undefined || kept === undefined || areSumsBehind) {
    const isComplete = yield* records({ from, before })
    return groups.end(isComplete ? from : reached, isComplete, false)
  }
  // The newest first: what is left out is the oldest.
  const [start, end] = days
  if (!(yield* records({ from: Math.min(end, before), before })))
    return groups.end(reached, false, false)
  const parts = yield* readKept(place, kept, request, days)
  if (parts === undefined) {
    const isComplete = yield* records({ from, before: reached })
    return groups.end(isComplete ? from : reached, isComplete, false)
  }
  for (const part of parts) groups.add(part)
  reached = Math.max(start, from)
  yield
  const isComplete = yield* records({ from, before: reached })
  return groups.end(isComplete ? from : reached, isComplete, true)
}

/**
 * The whole days of the period, as their first moment and the one after their last. A day that has no call outside the
 * period is whole, such as today. Undefined: there is none.
 */
async function daysOf(
  { store }: Place,
  { from, before }: SummaryRequest,
): Promise<readonly [number, number] | undefined> {
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
  return start < end ? [start, end] : undefined
}

type Parts = readonly (readonly GroupValues[])[]

/** How often sums are read that were added to meanwhile: after that, the records are. */
const MAX_ATTEMPTS = 4

/**
 * As they are at one moment, with what they lack. Undefined: they cannot tell. A file is read in the turns of the thread,
 * and what is added between two of them is noticed; a server keeps nobody waiting, and shows a transaction one moment.
 */
async function* readKept(
  place: Place,
  kept: KeptSums,
  request: SummaryRequest,
  days: readonly [number, number],
): AsyncGenerator<void, Parts | undefined, undefined> {
  const once = () => readOnce(place, kept, request, days)
  const { isShared } = place.sums.statements
  for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt += 1) {
    const parts = isShared ? await transaction(place.sums, () => inOneTurn(once())) : yield* once()
    if (parts !== 'moved') return parts
  }
  return undefined
}

/** Yields after each step. */
async function* readOnce(
  place: Place,
  kept: KeptSums,
  request: SummaryRequest,
  days: readonly [number, number],
): AsyncGenerator<void, Parts | 'moved' | undefined, undefined> {
  const watermark = await watermarkOf(place)
  const parts: (readonly GroupValues[])[] = []
  for (const step of watermark.upTo === 0 ? [] : stepsOf(days)) {
    const part = await readSums(place, kept, request, step)
    if (part === undefined) return undefined
    parts.push(part)
    yield
  }
  return transaction(place.sums, async () => {
    const { upTo, changesUpTo } = await watermarkOf(place)
    if (upTo !== watermark.upTo || changesUpTo !== watermark.changesUpTo) return 'moved'
    return [...parts, ...(await readTail(place, watermark, request, days))]
  })
}

function readRecords(
  { store }: Place,
  { tenantId, groupBy, filters }: SummaryRequest,
  { from, before }: Window,
): Promise<readonly GroupValues[]> {
  const ofTenant: RawBuilder<number> =
    filters.customerId === undefined ? sql`cdr.tenant_id` : sql`+cdr.tenant_id`
  let query = store.db
    .selectFrom('cdr')
    .select([
      memberOf[groupBy].as('member'),
      sql<string>`coalesce(cdr.currency, '')`.as('currency'),
      ...folded(ofRecord),
    ])
    .where('cdr.start_stamp', '>=', from)
    .where('cdr.start_stamp', '<', before)
    .groupBy(sql`1`)
    .groupBy(sql`2`)
  if (tenantId !== null) query = query.where(sql<boolean>`${ofTenant} = ${tenantId}`)
  for (const condition of conditionsOf(filters)) query = query.where(condition)
  return rawRows<GroupValues>(store, query)
}

interface MutableGroup extends GroupSum {
  readonly costs: Map<string, bigint>
}

class Groups {
  readonly #groups = new Map<string, MutableGroup>()

  add(rows: readonly GroupValues[]): void {
    for (const values of rows) {
      const [member, currency] = values
      const figures = figuresIn(values)
      const group = this.#groupOf(member)
      add(group.figures, figures)
      if (figures.cost !== 0n || currency !== '')
        group.costs.set(currency, (group.costs.get(currency) ?? 0n) + figures.cost)
    }
  }

  end(from: number, isComplete: boolean, isKept: boolean): Summed {
    const others = this.#groups.get(OTHERS)
    this.#groups.delete(OTHERS)
    // A cost that was changed to another currency leaves nothing in its old one.
    const groups = [...this.#groups.values()].filter(({ figures }) => figures.calls > 0)
    return { from, isComplete, isKept, groups, others }
  }

  #groupOf(member: string): MutableGroup {
    const known = this.#groups.get(member)
    if (known !== undefined) return known
    if (this.#groups.size >= MAX_GROUPS && member !== OTHERS) this.#forgetLightest()
    const group = { member, figures: noFigures(), costs: new Map<string, bigint>() }
    this.#groups.set(member, group)
    return group
  }

  /** Half of the groups, those that cost least and have fewest calls, are others from now on. */
  #forgetLightest(): void {
    const others = this.#groupOf(OTHERS)
    const light = [...this.#groups.values()].toSorted(byWeight).slice(MAX_GROUPS / 2)
    for (const { member, figures, costs } of light) {
      if (member === OTHERS) continue
      this.#groups.delete(member)
      add(others.figures, figures)
      for (const [currency, cost] of costs)
        others.costs.set(currency, (others.costs.get(currency) ?? 0n) + cost)
    }
  }
}

function byWeight({ figures: one }: GroupSum, { figures: other }: GroupSum): number {
  if (one.cost !== other.cost) return one.cost > other.cost ? -1 : 1
  return other.calls - one.calls
}

/** Over all groups, listed or not. */
export function totalOf({ groups, others }: Summed): GroupSum {
  const figures = noFigures()
  const costs = new Map<string, bigint>()
  for (const group of others === undefined ? groups : [...groups, others]) {
    add(figures, group.figures)
    for (const [currency, cost] of group.costs)
      costs.set(currency, (costs.get(currency) ?? 0n) + cost)
  }
  return { member: '', figures, costs }
}
