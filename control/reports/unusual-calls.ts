/**
 * Finds unusual calls of a period, in the thread of reports. In a period of a day or more, the last
 * 24 hours are read from the records and compared with the daily totals of the 14 days (UTC)
 * before; each earlier day of the period is compared likewise. A shorter period is compared with
 * the same hours of the days before, out of the records.
 */
import { sql, type SqlBool } from 'kysely'
import { DAY_MS } from '../../schema/clock.ts'
import type { Window } from '../../schema/records/record-windows.ts'
import { all, first, transaction } from '../../schema/sql/query.ts'
import { ALL, NONE, OTHERS, type CallSources, startOfDay } from './call-filters.ts'
import { behind, MAX_TAIL } from './roll-up.ts'
import { newRecords, type Watermark, watermarkOf } from './roll-up-state.ts'
import { hasOwnPrice, hasOwnSum, unmarked } from './own-prices.ts'
import { type CallSum, callSumColumns, sumsOfWindows } from './call-sums.ts'
import { type CallGroup, groupsOf, type Sample, samplesOf } from './evidence.ts'
import {
  type CarrierFinding,
  Comparison,
  type DayTaker,
  type MoneyFinding,
  PAST_DAYS,
  type RefusalFinding,
  SAMPLED,
  takeCalls,
  withoutSampled,
} from './findings.ts'

/** Plain data: it is sent to the thread of reports. */
export interface UnusualRequest extends Window {
  /** Null for all tenants. */
  readonly tenantId: number | null
  /** Kinds of findings; `trunk` for carriers. */
  readonly kinds: readonly string[]
}

export interface UnusualCalls {
  readonly money: readonly (MoneyFinding & { readonly samples: readonly Sample[] })[]
  readonly refusals: readonly RefusedCallsFinding[]
  readonly carriers: readonly (CarrierFinding & { readonly samples: readonly Sample[] })[]
}

export interface RefusedCallsFinding extends RefusalFinding {
  readonly samples: readonly Sample[]
  readonly groups: readonly CallGroup[]
}

/**
 * The greatest findings of a day in spending, and as many in refusals: each reads thousands of
 * records.
 */
const MAX_OF_DAY = 50
const SAMPLES = 5
/** Records of one statement: about 50 ms of the thread. */
const WINDOW = 20_000
/**
 * More calls in the two days (UTC) of a period are not read one by one: the sums of these days are
 * compared.
 */
const MAX_READ = 1_000_000
/** More calls than this in a period below a day are compared with fewer days. */
const BUSY_CALLS = 50_000
/** Yesterday, the day before, and the same day of the weeks before. */
const daysWhenBusy: ReadonlySet<number> = new Set([1, 2, 7, 14])

/** Yields between statements. */
export async function* unusualCalls(
  sources: CallSources,
  request: UnusualRequest,
): AsyncGenerator<void, UnusualCalls, undefined> {
  const { from, before } = request
  const isWhole = before - from >= DAY_MS && (await behind(sources)) <= MAX_TAIL
  const comparisons = isWhole
    ? yield* comparedByDay(sources, request)
    : yield* comparedByHours(sources, request)
  const findings = { money: [], refusals: [], carriers: [] }
  for (const comparison of comparisons) yield* addFindings(sources, request, comparison, findings)
  return findings
}

/**
 * A part of the period: the last 24 hours, or a day (UTC), that is compared with days before it.
 */
interface Part {
  /** Undefined: it was read from the records. */
  readonly day: number | undefined
  /** The day after the past. */
  readonly pastEnd: number
  readonly comparison: Comparison
}

async function* comparedByDay(
  sources: CallSources,
  request: UnusualRequest,
): AsyncGenerator<void, readonly Comparison[], undefined> {
  const { from, before, tenantId } = request
  const last = { from: before - DAY_MS, before }
  const isBusy = (await countCalls(sources, tenantId, daysOf(last))) > MAX_READ
  const whole = isBusy ? { from, before } : { from, before: last.from }
  const parts: Part[] = daysOf(whole).map((day) => ({
    day,
    pastEnd: day,
    comparison: new Comparison(),
  }))
  if (!isBusy) {
    const comparison = new Comparison()
    yield* takeRecords(sources, request, last, comparison.now)
    parts.push({ day: undefined, pastEnd: startOfDay(last.from), comparison })
  }
  return withDays(sources, tenantId, parts)
}

/** Days (UTC) that the period touches. */
function daysOf({ from, before }: Window): readonly number[] {
  if (before <= from) return []
  const start = startOfDay(from)
  const count = Math.ceil((before - start) / DAY_MS)
  return Array.from({ length: count }, (_, index) => start + index * DAY_MS)
}

/** Reads each day once, all as they are at one moment. A server may have it begin again. */
function withDays(
  sources: CallSources,
  tenantId: number | null,
  parts: readonly Part[],
): Promise<readonly Comparison[]> {
  const ends = parts.flatMap(({ day, pastEnd }) => (day === undefined ? pastEnd : day + DAY_MS))
  const starts = parts.map(({ pastEnd }) => pastEnd - PAST_DAYS * DAY_MS)
  const days = daysOf({ from: Math.min(...starts), before: Math.max(...ends) })
  return transaction(sources.sums, async () => {
    const watermark = await watermarkOf(sources)
    const tail = await tailOf(sources, watermark, tenantId, days)
    const take = async (day: number, taker: DayTaker): Promise<void> => {
      const counted = tenantId === null ? withoutSampled(taker) : taker
      if (watermark.upTo > 0) await takeDay(sources, tenantId, day, counted)
      takeTail(tail, day, counted)
      await takeSampled(sources, tenantId, { from: day, before: day + DAY_MS }, taker)
    }
    const started: Part[] = []
    for (const { day, pastEnd, comparison: read } of parts) {
      const comparison = day === undefined ? read : new Comparison()
      if (day !== undefined) await take(day, comparison.now)
      comparison.beginPast(PAST_DAYS)
      started.push({ day, pastEnd, comparison })
    }
    for (const day of days)
      await take(
        day,
        allOf(
          started.flatMap(({ pastEnd, comparison }) => {
            const ago = (pastEnd - day) / DAY_MS
            return ago >= 1 && ago <= PAST_DAYS ? [comparison.past(ago - 1)] : []
          }),
        ),
      )
    return started.map(({ comparison }) => comparison)
  })
}

const allOf = (takers: readonly DayTaker[]): DayTaker => ({
  spent: (sum) => takers.forEach((taker) => taker.spent(sum)),
  refused: (sum) => takers.forEach((taker) => taker.refused(sum)),
  carried: (sum) => takers.forEach((taker) => taker.carried(sum)),
})

/** The period, or each day of it, against the same hours of each day before. */
async function* comparedByHours(
  sources: CallSources,
  request: UnusualRequest,
): AsyncGenerator<void, readonly Comparison[], undefined> {
  const { from, before } = request
  const count = Math.max(1, Math.ceil((before - from) / DAY_MS))
  const lengthMs = count === 1 ? before - from : DAY_MS
  const comparisons = Array.from({ length: count }, () => new Comparison())
  let past: readonly number[] = Array.from({ length: PAST_DAYS }, (_, index) => index + 1)
  for (let ago = 0; ago < count + PAST_DAYS; ago += 1) {
    const takers = comparisons.flatMap((comparison, part) => {
      if (part === ago) return [comparison.now]
      const day = past.indexOf(ago - part)
      return day === -1 ? [] : [comparison.past(day)]
    })
    if (takers.length === 0) continue
    const end = before - ago * DAY_MS
    const period = { from: end - lengthMs, before: end }
    const calls = yield* takeRecords(sources, request, period, allOf(takers))
    if (ago === 0 && count === 1 && calls > BUSY_CALLS)
      past = past.filter((day) => daysWhenBusy.has(day))
    comparisons[ago]?.beginPast(past.length)
  }
  return comparisons
}

/** Returns how many there are. */
async function* takeRecords(
  sources: CallSources,
  { tenantId }: UnusualRequest,
  period: Window,
  taker: DayTaker,
): AsyncGenerator<void, number, undefined> {
  const { store } = sources
  const counted = tenantId === null ? withoutSampled(taker) : taker
  let calls = 0
  for await (const sums of sumsOfWindows({ store, tenantId }, period, WINDOW)) {
    for (const sum of sums) {
      takeCalls(sum, counted)
      calls += sum.calls
    }
    yield
  }
  await takeSampled(sources, tenantId, period, taker)
  return calls
}

/** Counts the calls of unknown sources, which belong to no tenant. */
async function takeSampled(
  { store }: CallSources,
  tenantId: number | null,
  { from, before }: Window,
  taker: DayTaker,
): Promise<void> {
  if (tenantId !== null) return
  const query = store.db
    .selectFrom('refused_calls')
    .select([
      sql<number>`CAST(coalesce(sum(calls), 0) AS bigint)`.as('calls'),
      sql<number | null>`min(minute)`.as('firstAt'),
      sql<number | null>`max(minute)`.as('lastAt'),
    ])
    .where('reason', '=', SAMPLED)
    .where('minute', '>=', from)
    .where('minute', '<', before)
  const { calls = 0, firstAt = null, lastAt = null } = (await first(store, query)) ?? {}
  if (firstAt === null || lastAt === null) return
  taker.refused({ code: SAMPLED, customerId: null, calls, firstAt, lastAt })
}

interface Findings {
  readonly money: UnusualCalls['money'][number][]
  readonly refusals: RefusedCallsFinding[]
  readonly carriers: UnusualCalls['carriers'][number][]
}

/** Adds the evidence to each finding, and yields after it. */
async function* addFindings(
  { store }: CallSources,
  { kinds, from, before, tenantId }: UnusualRequest,
  { spending, refusals, carriers }: Comparison,
  findings: Findings,
): AsyncGenerator<void, void, undefined> {
  const reader = { store, tenantId }
  // A day that the period cuts has calls of before.
  const isMeant = ({ kind, lastAt }: { readonly kind: string; readonly lastAt: number }) =>
    kinds.includes(kind) && lastAt >= from
  const money = spending
    .findings()
    .filter(isMeant)
    .toSorted((one, other) => other.costMicros - one.costMicros)
    .slice(0, MAX_OF_DAY)
  for (const finding of money) {
    const { customerId, prefix, firstAt } = finding
    const wanted = { customerId, prefix, isCharged: true }
    const samples = await samplesOf(reader, { from: firstAt, before }, wanted, SAMPLES)
    findings.money.push({ ...finding, samples })
    yield
  }
  const refused = refusals
    .findings()
    .filter(isMeant)
    .toSorted((one, other) => other.calls - one.calls)
    .slice(0, MAX_OF_DAY)
  for (const finding of refused) {
    const { customerId, code, firstAt, lastAt } = finding
    const period = { from: firstAt, before: lastAt + 60_000 }
    const samples = await samplesOf(reader, period, { customerId, denial: code }, SAMPLES)
    const groups = finding.kind === 'wallet' ? [] : await groupsOf(reader, finding)
    findings.refusals.push({ ...finding, samples, groups })
    yield
  }
  for (const finding of carriers.findings()) {
    const { carrier, firstAt, lastAt } = finding
    if (!isMeant({ kind: 'trunk', lastAt })) continue
    const wanted = { customerId: null, carrier, isUnanswered: true }
    const samples = await samplesOf(reader, { from: firstAt, before }, wanted, SAMPLES)
    findings.carriers.push({ ...finding, samples })
    yield
  }
}

/** About how many calls the totals of these days have. */
async function countCalls(
  { sums }: CallSources,
  tenantId: number | null,
  days: readonly number[],
): Promise<number> {
  const query = sums.db
    .selectFrom('call_sum')
    .select(sql<number>`CAST(coalesce(sum(calls), 0) AS bigint)`.as('calls'))
    .where('day', 'in', days)
    .where('dimension', '=', 'denial_code')
    .where('customer_id', '=', ALL)
    .$if(tenantId !== null, (own) => own.where('tenant_id', '=', tenantId ?? NONE))
  return (await first(sums, query))?.calls ?? 0
}

/** Gives `taker` the groups of a day that cost something, were refused or were carried. */
async function takeDay(
  { sums }: CallSources,
  tenantId: number | null,
  day: number,
  taker: DayTaker,
): Promise<void> {
  const { db } = sums
  const rows = db
    .selectFrom('call_sum')
    .select(['member', 'first_at as firstAt', 'last_at as lastAt'])
    .where('day', '=', day)
    .$if(tenantId !== null, (own) => own.where('tenant_id', '=', tenantId ?? NONE))
  const spent = rows
    .select(['customer_id as customerId', 'currency', 'answered'])
    .select(sql<number>`CAST(cost_micros AS double precision)`.as('costMicros'))
    .where('dimension', '=', 'rate_prefix')
    .$if(tenantId !== null, (own) => own.where(hasOwnSum))
    .where(sql<SqlBool>`cost_micros <> 0`)
  for (const { member, currency, answered, ...sum } of await all(sums, spent)) {
    const prefix = member === '' || member === OTHERS ? null : member
    taker.spent({ ...sum, prefix, currency: unmarked(currency) || null, calls: answered })
  }
  const refused = rows
    .select(['customer_id as customerId', sql<number>`calls - answered`.as('calls')])
    .where('dimension', '=', 'denial_code')
    .where('customer_id', '>', ALL)
    .where('member', '<>', '')
    .where(sql<SqlBool>`calls > answered`)
  for (const { member, customerId, ...sum } of await all(sums, refused))
    taker.refused({ ...sum, code: member, customerId: customerId === NONE ? null : customerId })
  const carried = rows
    .select(['answered', sql<number>`calls - denied`.as('calls')])
    .where('dimension', '=', 'carrier')
    .where('customer_id', '=', ALL)
    .where('member', 'not in', ['', OTHERS])
    .where(sql<SqlBool>`calls > denied`)
  for (const { member, ...sum } of await all(sums, carried))
    taker.carried({ ...sum, carrier: member })
}

/** Calls by day, in milliseconds UTC. */
export type Tail = ReadonlyMap<number, readonly CallSum[]>

const changedPrefix = sql<string | null>`CASE change.records WHEN 0 THEN cdr.rate_prefix
  ELSE change.rate_prefix END`

/** Records of days that the sums do not have yet, and costs that were changed since. */
async function tailOf(
  { store }: CallSources,
  watermark: Watermark,
  tenantId: number | null,
  days: readonly number[],
): Promise<Tail> {
  const { db } = store
  const isNew = newRecords(watermark)
  const start = Math.min(...days)
  const end = Math.max(...days) + DAY_MS
  const conditions = [
    // The plus keeps SQLite from other indexes: the few new records are at the end of the ids.
    sql<SqlBool>`+cdr.start_stamp >= ${start} AND +cdr.start_stamp < ${end}`,
    ...(tenantId === null ? [] : [sql<SqlBool>`+cdr.tenant_id = ${tenantId}`]),
  ]
  const day = sql<number>`cdr.start_stamp - cdr.start_stamp % ${sql.lit(DAY_MS)}`.as('day')
  let records = db
    .selectFrom('cdr')
    .select([day, 'customer_id as customerId', 'carrier', 'rate_prefix as prefix'])
    .select(['denial_code as denial', 'currency', ...callSumColumns(tenantId)])
    .where(isNew)
    .groupBy(sql`1`)
    .groupBy(['customer_id', 'carrier', 'rate_prefix', 'denial_code', 'currency'])
  const shownCost =
    tenantId === null
      ? sql`change.cost_micros`
      : sql`CASE WHEN ${hasOwnPrice} THEN change.cost_micros ELSE 0 END`
  let changes = db
    .selectFrom('cdr_cost_change as change')
    .innerJoin('cdr', 'cdr.id', 'change.cdr_id')
    .select([day, 'cdr.customer_id as customerId', changedPrefix.as('prefix'), 'change.currency'])
    .select([
      sql<number>`sum(change.records)`.as('calls'),
      sql<number>`sum(CAST(${shownCost} AS double precision))`.as('costMicros'),
      sql<number>`min(cdr.start_stamp)`.as('firstAt'),
      sql<number>`max(cdr.start_stamp)`.as('lastAt'),
    ])
    .where('change.id', '>', watermark.changesUpTo)
    .where(sql<SqlBool>`NOT ${isNew}`)
    .groupBy(sql`1`)
    .groupBy(['cdr.customer_id', changedPrefix, 'change.currency'])
  for (const condition of conditions) {
    records = records.where(condition)
    changes = changes.where(condition)
  }
  const tail = new Map<number, CallSum[]>()
  const add = ({ day: at, ...sum }: CallSum & { readonly day: number }): void => {
    const known = tail.get(at)
    if (known === undefined) tail.set(at, [sum])
    else known.push(sum)
  }
  for (const row of await all(store, records)) add(row)
  for (const row of await all(store, changes))
    add({ ...row, carrier: null, denial: null, answered: row.calls })
  return tail
}

function takeTail(tail: Tail, day: number, taker: DayTaker): void {
  for (const sum of tail.get(day) ?? []) takeCalls(sum, taker)
}
