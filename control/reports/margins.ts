/**
 * Margins by customer, carrier, destination or day: what calls were sold for, less what carriers
 * took. The greatest losses come first. Read from daily sums, and from records that these do not
 * have yet; in a zone, whose days the sums do not have, from records alone. Amounts of two
 * currencies are never added.
 */
import { type RawBuilder, sql } from 'kysely'
import { z } from 'zod'
import { DAY_MS } from '../../schema/clock.ts'
import { moneyToDecimal, timeToText } from '../../schema/columns.ts'
import { type Window, windows } from '../../schema/records/record-windows.ts'
import { all, first, readApart, transaction } from '../../schema/sql/query.ts'
import type { Store } from '../../schema/storage/store.ts'
import { type Zone, zoneOf } from '../../schema/time-zones.ts'
import type { RequestScope } from '../auth/tenants.ts'
import { type ApiError, badRequest } from '../http/api-error.ts'
import { cursorQuery, pageEnd, queryInteger, skippedBy } from '../http/envelope.ts'
import {
  type Reference,
  reference,
  text,
  timeZone,
  zonedQueryTime,
  zonedTime,
} from '../http/fields.ts'
import { tenantOf } from '../resources/references.ts'
import { ALL, type CallSources, isInFile } from './call-filters.ts'
import { csvCell } from './cdr-text.ts'
import {
  changedMargins,
  hasSumsOfAll,
  type MarginGrouping,
  marginGroupings,
  recordMargins,
  summedMargins,
} from './margin-sums.ts'
import { lengthIn, periodIn, type ZonedPeriod, zoneOfReport } from './report-zones.ts'
import { behind, MAX_TAIL } from './roll-up.ts'
import { newRecords, type Watermark, watermarkOf } from './roll-up-state.ts'
import { refuseForNow, reportZoneText } from './summary.ts'

/** Plain data: it is sent to the thread of reports. */
export interface MarginRequest {
  /** Null for all tenants. */
  readonly tenantId: number | null
  /** Only calls whose carrier and price are the tenant's. */
  readonly isOwn: boolean
  /** Midnights of the zone in milliseconds UTC; `before` is exclusive. */
  readonly from: number
  readonly before: number
  /** IANA name; undefined: UTC. */
  readonly zone?: string | undefined
  readonly groupBy: MarginGrouping
  readonly limit: number
  readonly offset: number
}

const count = z.int().min(0)
const amount = z.string().describe('Exact.')

const figures = {
  calls: count,
  billsec: count,
  losses: count.describe('Calls that cost more than they were sold for.'),
  currency: z.string().nullable().describe('Of what was sold. Null: nobody has paid.'),
  revenue: amount,
  carrier_currency: z.string().nullable().describe('Null: the price of the carrier is not known.'),
  carrier_cost: amount,
  margin: amount.nullable().describe('Null: not known, or in different currencies.'),
  margin_percent: z.number().nullable().describe('Of the revenue.'),
}

export const marginReport = z
  .strictObject({
    start: z.string().meta({ format: 'date-time' }),
    end: z.string().meta({ format: 'date-time' }),
    time_zone: z.string().describe('Of the days.'),
    complete: z.boolean().describe('False: the newest calls are not in it yet.'),
    cursor: z.string().nullable().describe('For the next groups. Null: these are the last.'),
    totals: z
      .array(z.strictObject(figures))
      .describe('All groups, listed or not: one for each pair of currencies.'),
    groups: z
      .array(
        z.strictObject({
          group: z
            .string()
            .nullable()
            .describe(
              'Id of a customer, name of a carrier, first 4 digits of the called number, or day.',
            ),
          name: z.string().nullable().describe('Of a customer.'),
          ...figures,
        }),
      )
      .describe('One for each pair of currencies; the greatest loss first.'),
  })
  .meta({ id: 'MarginReport' })
export type MarginReport = z.output<typeof marginReport>

interface MarginRow {
  readonly member: string
  /** Empty: none. */
  readonly currency: string
  readonly carrier_currency: string
  calls: number
  billsec: number
  losses: number
  sold: bigint
  bought: bigint
}

type ReadRow = Omit<MarginRow, 'sold' | 'bought'> & {
  readonly sold: string
  readonly bought: string
}

/** How often sums are read that were added to meanwhile. */
const MAX_ATTEMPTS = 4

/** Yields between statements. */
export async function* margins(
  sources: CallSources,
  request: MarginRequest,
): AsyncGenerator<void, MarginReport, undefined> {
  const { rows, isComplete } =
    request.zone === undefined
      ? yield* readDays(sources, request)
      : { rows: yield* readZone(sources, request, zoneOf(request.zone)), isComplete: true }
  return reportOf(sources, request, { rows, isComplete })
}

interface ReadGroups {
  readonly rows: readonly ReadRow[]
  /** False: the newest calls are not in them. */
  readonly isComplete: boolean
}

/** Reads days UTC. */
async function* readDays(
  sources: CallSources,
  request: MarginRequest,
): AsyncGenerator<void, ReadGroups, undefined> {
  const isWhole = (await behind(sources)) <= MAX_TAIL
  let rows: readonly ReadRow[] = []
  let isSettled = false
  for (let attempt = 0; attempt < MAX_ATTEMPTS && !isSettled; attempt += 1) {
    const read = () => readOnce(sources, request, isWhole)
    const once = isInFile(sources) ? await read() : await transaction(sources.sums, read)
    rows = once.rows
    yield
    // Records that were added meanwhile may be in both, or in neither.
    const { upTo, changesUpTo } = await watermarkOf(sources)
    isSettled =
      !isInFile(sources) ||
      (upTo === once.watermark.upTo && changesUpTo === once.watermark.changesUpTo)
  }
  return { rows, isComplete: isWhole && isSettled }
}

/** Days of a zone, whose midnights are given as if they were UTC, with their 23 to 25 hours. */
function* daysOf(zone: Zone, { from, before }: Window): Generator<[string, Window], void> {
  for (let day = zone.dayOf(from); zone.momentOf(day) < before; day += DAY_MS)
    yield [String(day), { from: zone.momentOf(day), before: zone.momentOf(day + DAY_MS) }]
}

/** Reads the records of each day, and yields after each statement. */
async function* readZone(
  { store }: CallSources,
  { from, before, groupBy, tenantId, isOwn }: MarginRequest,
  zone: Zone,
): AsyncGenerator<void, readonly ReadRow[], undefined> {
  const rows: ReadRow[] = []
  const scope = { tenantId, customerId: undefined }
  for (const [day, ofDay] of daysOf(zone, { from, before }))
    for await (const time of windows(store, scope, ofDay)) {
      const member =
        groupBy === 'day' ? sql<string>`CAST(${day} AS TEXT)` : recordMargins.member[groupBy]
      const query = marginsOfRecords(store, member, isOwn)
        .where('cdr.start_stamp', '>=', time.from)
        .where('cdr.start_stamp', '<', time.before)
        .$if(tenantId !== null, (own) => own.where('cdr.tenant_id', '=', tenantId))
      rows.push(...(await all(store, query.$castTo<ReadRow>())))
      yield
    }
  return rows
}

async function reportOf(
  sources: CallSources,
  request: MarginRequest,
  { rows, isComplete }: ReadGroups,
): Promise<MarginReport> {
  const groups = added(rows, ({ member }) => member).toSorted(worstFirst)
  const { offset, limit } = request
  const listed = groups.slice(offset, offset + limit)
  const names = await namesOf(sources, request, listed)
  return {
    start: timeToText(request.from),
    end: timeToText(request.before),
    time_zone: request.zone ?? 'UTC',
    complete: isComplete,
    cursor: pageEnd(offset + listed.length, groups.length).cursor,
    totals: added(rows, () => '')
      .toSorted(worstFirst)
      .map(figuresOf),
    groups: listed.map((row) => ({
      group: labelOf(row, request),
      name: names.get(row.member) ?? null,
      ...figuresOf(row),
    })),
  }
}

/** A server reads in one transaction; a file may be added to between two statements. */
async function readOnce(sources: CallSources, request: MarginRequest, isWhole: boolean) {
  const watermark = await watermarkOf(sources)
  const rows = [...(await readSums(sources, request))]
  if (isWhole)
    rows.push(
      ...(await readNew(sources, watermark, request)),
      ...(await readChanges(sources, watermark, request)),
    )
  return { watermark, rows }
}

function readSums({ sums }: CallSources, request: MarginRequest): Promise<readonly ReadRow[]> {
  const { from, before, groupBy, tenantId, isOwn } = request
  const days = Array.from({ length: (before - from) / DAY_MS }, (_, index) => from + index * DAY_MS)
  if (days.length === 0) return Promise.resolve([])
  const member = groupBy === 'day' ? sql<string>`CAST(day AS TEXT)` : sql.ref<string>('member')
  const query = sums.db
    .selectFrom('margin_sum')
    .where('day', 'in', days)
    .where('dimension', '=', groupBy === 'day' ? 'carrier' : groupBy)
    .$if(tenantId !== null, (own) => own.where('tenant_id', '=', tenantId ?? 0))
    .$if(tenantId === null && hasSumsOfAll(groupBy), (whole) => whole.where('tenant_id', '=', ALL))
    .$if(isOwn, (own) => own.where('is_own', '=', 1))
    .select([member.as('member'), 'currency', 'carrier_currency', ...summedMargins])
    .groupBy([sql`1`, sql`2`, sql`3`])
  return all(sums, query.$castTo<ReadRow>())
}

function readNew(
  { store }: CallSources,
  watermark: Watermark,
  { from, before, groupBy, tenantId, isOwn }: MarginRequest,
): Promise<readonly ReadRow[]> {
  const query = marginsOfRecords(store, recordMargins.member[groupBy], isOwn)
    .where(newRecords(watermark))
    // The plus keeps SQLite from other indexes: new records are at the end of the ids.
    .where(sql<boolean>`+cdr.start_stamp >= ${from} AND +cdr.start_stamp < ${before}`)
    .$if(tenantId !== null, (own) => own.where(sql<boolean>`+cdr.tenant_id = ${tenantId}`))
  return all(store, query.$castTo<ReadRow>())
}

const marginsOfRecords = (
  { db }: CallSources['store'],
  member: RawBuilder<string>,
  isOwn: boolean,
) =>
  db
    .selectFrom('cdr')
    .where(recordMargins.isBought)
    .$if(isOwn, (own) => own.where(recordMargins.isOwn))
    .select([
      member.as('member'),
      sql<string>`coalesce(cdr.currency, '')`.as('currency'),
      sql<string>`coalesce(cdr.carrier_currency, '')`.as('carrier_currency'),
      ...recordMargins.sums,
    ])
    .groupBy([sql`1`, sql`2`, sql`3`])

/** Reads changes of records that the sums have, and that these do not have yet. */
function readChanges(
  { store }: CallSources,
  watermark: Watermark,
  { from, before, groupBy, tenantId, isOwn }: MarginRequest,
): Promise<readonly ReadRow[]> {
  const query = store.db
    .selectFrom('cdr_cost_change as change')
    .innerJoin('cdr', 'cdr.id', 'change.cdr_id')
    .where('change.id', '>', watermark.changesUpTo)
    .where(sql<boolean>`NOT ${newRecords(watermark)}`)
    .where(sql<boolean>`+cdr.start_stamp >= ${from} AND +cdr.start_stamp < ${before}`)
    .where(changedMargins.isBought)
    .$if(tenantId !== null, (own) => own.where(sql<boolean>`+cdr.tenant_id = ${tenantId}`))
    .$if(isOwn, (own) => own.where(changedMargins.isOwn))
    .select([
      recordMargins.member[groupBy].as('member'),
      sql<string>`coalesce(change.currency, '')`.as('currency'),
      sql<string>`coalesce(change.carrier_currency, '')`.as('carrier_currency'),
      ...changedMargins.sums,
    ])
    .groupBy([sql`1`, sql`2`, sql`3`])
  return all(store, query.$castTo<ReadRow>())
}

/** The rows by their group and currencies. Calls that were priced anew leave groups without any. */
function added(rows: readonly ReadRow[], memberOf: (row: ReadRow) => string): readonly MarginRow[] {
  const sums = new Map<string, MarginRow>()
  for (const row of rows) {
    const member = memberOf(row)
    const { currency, carrier_currency } = row
    const name = JSON.stringify([member, currency, carrier_currency])
    const none = { calls: 0, billsec: 0, losses: 0, sold: 0n, bought: 0n }
    const sum = sums.get(name) ?? { member, currency, carrier_currency, ...none }
    sums.set(name, sum)
    sum.calls += row.calls
    sum.billsec += row.billsec
    sum.losses += row.losses
    sum.sold += BigInt(row.sold)
    sum.bought += BigInt(row.bought)
  }
  return [...sums.values()].filter(({ calls }) => calls > 0)
}

/** Undefined: one of both prices is not known, or they are in different currencies. */
const marginOf = ({ currency, carrier_currency, sold, bought }: MarginRow): bigint | undefined =>
  currency !== '' && currency === carrier_currency ? sold - bought : undefined

/** Amounts of different currencies are compared as numbers; one that is not known counts as 0. */
function worstFirst(one: MarginRow, other: MarginRow): number {
  const difference = (marginOf(one) ?? 0n) - (marginOf(other) ?? 0n) || other.bought - one.bought
  if (difference !== 0n) return difference < 0n ? -1 : 1
  return other.calls - one.calls || (one.member < other.member ? -1 : 1)
}

function figuresOf(row: MarginRow) {
  const { calls, billsec, losses, currency, carrier_currency, sold, bought } = row
  const margin = marginOf(row)
  return {
    calls,
    billsec,
    losses,
    currency: currency === '' ? null : currency,
    revenue: moneyToDecimal(sold),
    carrier_currency: carrier_currency === '' ? null : carrier_currency,
    carrier_cost: moneyToDecimal(bought),
    margin: margin === undefined ? null : moneyToDecimal(margin),
    margin_percent:
      margin === undefined || sold === 0n
        ? null
        : Math.round((Number(margin) / Number(sold)) * 1_000) / 10,
  }
}

function labelOf({ member }: MarginRow, { groupBy }: MarginRequest): string | null {
  if (member === '') return null
  return groupBy === 'day' ? timeToText(Number(member)).slice(0, 10) : member
}

async function namesOf(
  { store }: CallSources,
  { groupBy }: MarginRequest,
  rows: readonly MarginRow[],
): Promise<ReadonlyMap<string, string>> {
  const ids = rows.flatMap(({ member }) => (member === '' ? [] : [Number(member)]))
  if (groupBy !== 'customer' || ids.length === 0) return new Map()
  const query = store.db.selectFrom('customer').select(['id', 'name']).where('id', 'in', ids)
  return new Map((await all(store, query)).map(({ id, name }) => [String(id), name]))
}

const MAX_GROUPS = 200
/** Each record of a report in a zone is read: a million takes some seconds of their thread. */
const MAX_ZONE_RECORDS = 1_000_000
/** A CSV has all groups up to so many. */
const MAX_CSV_GROUPS = 20_000
const MAX_DAYS = 100

const grouping = z
  .enum(marginGroupings)
  .describe('`destination`: the first 4 digits of the called number.')

export const marginInput = z.strictObject({
  start: zonedTime,
  end: zonedTime.describe('Exclusive.'),
  group_by: grouping,
  time_zone: timeZone.optional(),
  tenant: reference.optional(),
  limit: z.int().min(1).max(MAX_GROUPS).default(20),
  cursor: cursorQuery,
})

export const marginQuery = z.strictObject({
  start_date: zonedQueryTime,
  end_date: zonedQueryTime,
  group_by: grouping,
  time_zone: timeZone
    .optional()
    .describe(
      `${reportZoneText} A zone that is not asked for gives way to UTC beyond ` +
        `${MAX_ZONE_RECORDS} calls: the answer says which it is.`,
    ),
  tenant: text(100)
    .transform((value): Reference => (/^[1-9]\d{0,14}$/.test(value) ? Number(value) : value))
    .optional()
    .describe('Id or slug.'),
  format: z.enum(['json', 'csv']).default('json').meta({ default: 'json' }),
  limit: queryInteger(/^[1-9]\d{0,8}$/, 'Expected an integer of at least 1', 1)
    .transform((limit) => Math.min(limit, MAX_GROUPS))
    .default(20)
    .meta({ default: 20, description: `More than ${MAX_GROUPS} are never given.` }),
  cursor: cursorQuery,
})

export interface MarginQuery extends ZonedPeriod {
  readonly group_by: MarginGrouping
  readonly time_zone?: string | undefined
  readonly tenant?: Reference | undefined
  readonly limit: number
  readonly cursor?: string | undefined
}

export interface MarginReporter {
  /** Undefined when too many reports are open. */
  margins(request: MarginRequest): Promise<MarginReport | undefined>
}

interface MarginDeps {
  readonly store: Store
  readonly reports: MarginReporter
  /** Calls that a report in a zone reads. */
  readonly most?: number | undefined
}

/** Days are whole: the sums have no hours. */
export async function askMargins(
  query: MarginQuery,
  { store, reports, most = MAX_ZONE_RECORDS }: MarginDeps,
  scope: RequestScope,
): Promise<MarginReport> {
  const { group_by: groupBy, time_zone: asked, tenant, limit, cursor } = query
  const tenantId = await tenantOf(store, tenant, scope)
  let zone = await zoneOfReport(store, { asked, tenantId: scope.tenantId })
  let period = wholeDays(query, zone)
  const next = zone.name === 'UTC' ? undefined : await callBeyond(store, tenantId, period, most)
  if (next !== undefined) {
    if (asked !== undefined) throw tooManyCalls(next, most)
    // Nobody has asked for this zone: it is a setting elsewhere.
    zone = zoneOf('UTC')
    period = wholeDays(query, zone)
  }
  const found = await reports.margins({
    tenantId,
    isOwn: scope.tenantId !== null,
    ...period,
    zone: zone.name === 'UTC' ? undefined : zone.name,
    groupBy,
    limit,
    offset: skippedBy(cursor),
  })
  return found ?? refuseForNow()
}

function wholeDays(query: ZonedPeriod, zone: Zone): Window {
  const { from, before } = periodIn(zone, query)
  if (before < from) throw badRequest('The period ends before it begins')
  if (lengthIn(zone, { from, before }) > MAX_DAYS * DAY_MS)
    throw badRequest(`The period is longer than ${MAX_DAYS} days`)
  return {
    from: zone.momentOf(zone.dayOf(from)),
    before: zone.momentOf(zone.dayOf(before - 1) + DAY_MS),
  }
}

/** When the first call beyond `most` of the period began. Each of a zone is read. */
async function callBeyond(
  store: Store,
  tenantId: number | null,
  { from, before }: Window,
  most: number,
): Promise<number | undefined> {
  const query = store.db
    .selectFrom('cdr')
    .select('start_stamp')
    .where('start_stamp', '>=', from)
    .where('start_stamp', '<', before)
    .$if(tenantId !== null, (own) => own.where('tenant_id', '=', tenantId))
    .orderBy('start_stamp')
    .limit(1)
    .offset(most)
  return (await readApart(store, tenantId, () => first(store, query)))?.start_stamp
}

const tooManyCalls = (next: number, most: number): ApiError =>
  badRequest(`A report in a time zone has at most ${most} calls`, [
    {
      path: 'end_date',
      message: `must be ${timeToText(next)} or before; days in UTC have no limit`,
    },
  ])

export const allMargins = (query: MarginQuery): MarginQuery => ({
  ...query,
  limit: MAX_CSV_GROUPS,
  cursor: undefined,
})

const columns = [
  'group',
  'name',
  'calls',
  'billsec',
  'losses',
  'currency',
  'revenue',
  'carrier_currency',
  'carrier_cost',
  'margin',
  'margin_percent',
] as const satisfies readonly (keyof MarginReport['groups'][number])[]

/** Only names may need escaping. */
export const marginCsv = ({ groups }: MarginReport): string =>
  [columns, ...groups.map((group) => columns.map((name) => cellOf(name, group[name])))]
    .map((cells) => `${cells.join(',')}\r\n`)
    .join('')

const cellOf = (name: string, value: string | number | null): string =>
  name === 'group' || name === 'name' ? csvCell(`${value ?? ''}`) : `${value ?? ''}`
