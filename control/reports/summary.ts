/** A summary of calls as the API and the tools show it. */
import { sql } from 'kysely'
import { z } from 'zod'
import { DAY_MS } from '../../schema/clock.ts'
import { moneyToDecimal, timeToText } from '../../schema/columns.ts'
import { directions, dispositions } from '../../schema/contracts/field-values.ts'
import type { Store } from '../../schema/storage/store.ts'
import { all } from '../../schema/sql/query.ts'
import { type Zone, zoneOf } from '../../schema/time-zones.ts'
import type { RequestScope } from '../auth/tenants.ts'
import { ApiError, badRequest } from '../http/api-error.ts'
import { cursorQuery, pageEnd, queryInteger, skippedBy } from '../http/envelope.ts'
import {
  prefix,
  type Reference,
  reference,
  text,
  timeZone,
  zonedQueryTime,
  zonedTime,
} from '../http/fields.ts'
import type { CallFilters, MemberDimension, CallSources } from './call-filters.ts'
import { type CdrMatch, matchOf, matchQuery } from './cdr-match.ts'
import { lengthIn, periodIn, type ZonedPeriod, zoneOfReport } from './report-zones.ts'
import {
  type GroupSum,
  summarize,
  type SummaryGrouping,
  summaryGroupings,
  summaryOrders,
  type SummaryRequest,
  totalOf,
} from './summarize.ts'
import { resolve, tenantOf } from '../resources/references.ts'

const count = z.int().min(0)
const moment = z.string().meta({ format: 'date-time' })

const figures = {
  calls: count,
  answered: count,
  denied: count.describe('Refused by the platform.'),
  failed: count.describe(
    'Failed, and neither refused by the platform, busy, cancelled nor unanswered.',
  ),
  asr_percent: z.number().nullable().describe('Answered of all.'),
  billsec: count,
  cost: z.record(z.string(), z.string()).describe('Exact amount by currency.'),
  mean_pdd_ms: z.number().nullable().describe('Mean post-dial delay.'),
  first_call: moment.nullable(),
  last_call: moment.nullable(),
}

export const summary = z.object({
  start: moment.describe('Later than asked for when not complete.'),
  end: moment,
  complete: z
    .boolean()
    .describe(
      'False: calls before start were not read; with start as asked for, time was up before ' +
        'all records were. Ask for a shorter period.',
    ),
  cursor: z
    .string()
    .nullable()
    .describe('For the next groups, of totals.groups. Null: these are the last.'),
  time_zone: z.string().describe('Of days and hours, and of dates in the question.'),
  source: z.enum(['sums', 'records']).describe('Kept sums of days, or single records.'),
  totals: z.object({ groups: count, ...figures }).describe('Of all groups, listed or not.'),
  other_calls: count.describe(
    'Calls of groups that are too many to be kept apart: only in totals.',
  ),
  groups: z.array(
    z.object({
      group: z.string().nullable().describe('Null: calls without one.'),
      name: z.string().nullable().describe('Of a customer; slug of a tenant.'),
      ...figures,
      call_uuids: z.array(z.string()).describe('The dearest, the first and the last call.'),
    }),
  ),
})
export type Summary = z.output<typeof summary>

/** Yields between statements. */
export async function* summaryOf(
  sources: CallSources,
  request: SummaryRequest,
): AsyncGenerator<void, Summary, undefined> {
  const work = summarize(sources, request)
  let step = await work.next()
  for (; step.done !== true; step = await work.next()) yield
  const summed = step.value
  const { offset = 0, limit } = request
  const ordered = summed.groups.toSorted(orders[request.orderBy])
  const listed = ordered.slice(offset, offset + limit)
  const names = await namesOf(sources, request, listed)
  const uuids = await uuidsOf(sources, listed)
  return {
    start: timeToText(summed.from),
    end: timeToText(request.before),
    complete: summed.isComplete,
    cursor: pageEnd(offset + listed.length, ordered.length).cursor,
    time_zone: request.zone ?? 'UTC',
    source: summed.isFromTotals ? 'sums' : 'records',
    totals: { groups: summed.groups.length, ...figuresOf(totalOf(summed)) },
    other_calls: summed.others?.figures.calls ?? 0,
    groups: listed.map((group) => ({
      group: labelOf(group, request),
      name: names.get(group.member) ?? null,
      ...figuresOf(group),
      call_uuids: examplesOf(group).flatMap((id) => uuids.get(id) ?? []),
    })),
  }
}

type Order = (one: GroupSum, other: GroupSum) => number

const byCalls: Order = (one, other) => other.figures.calls - one.figures.calls

/** Amounts of different currencies are compared as numbers. */
const byCost: Order = ({ figures: one }, { figures: other }) =>
  one.cost_micros === other.cost_micros ? 0 : one.cost_micros > other.cost_micros ? -1 : 1

const asrOf = ({ figures: { answered, calls } }: GroupSum): number => answered / calls

const byName: Order = (one, other) => (one.member < other.member ? -1 : 1)

/** The worst ratio first; then the group with most calls. */
const orders: Readonly<Record<SummaryRequest['orderBy'], Order>> = {
  cost: (one, other) => byCost(one, other) || byCalls(one, other) || byName(one, other),
  count: (one, other) => byCalls(one, other) || byCost(one, other) || byName(one, other),
  asr: (one, other) => asrOf(one) - asrOf(other) || byCalls(one, other) || byName(one, other),
}

function figuresOf({ figures: sum, costs }: GroupSum) {
  const { calls, answered, denied, failed, billsec } = sum
  const paid = [...costs]
    .filter(([currency]) => currency !== '')
    .toSorted(([one], [other]) => (one < other ? -1 : 1))
  return {
    calls,
    answered,
    denied,
    failed,
    billsec,
    asr_percent: calls === 0 ? null : Math.round((answered / calls) * 1_000) / 10,
    cost: Object.fromEntries(paid.map(([currency, cost]) => [currency, moneyToDecimal(cost)])),
    mean_pdd_ms: sum.pdd_calls === 0 ? null : Math.round(sum.pdd_ms / sum.pdd_calls),
    first_call: calls === 0 ? null : timeToText(sum.first_at),
    last_call: calls === 0 ? null : timeToText(sum.last_at),
  }
}

function labelOf({ member }: GroupSum, { groupBy, zone }: SummaryRequest): string | null {
  if (member === '') return null
  if (groupBy === 'day') return dateIn(zoneOf(zone ?? 'UTC'), Number(member))
  return groupBy === 'minute' || groupBy === 'hour' ? timeToText(Number(member)) : member
}

const dateIn = (zone: Zone, at: number): string => timeToText(zone.dayOf(at)).slice(0, 10)

/** Ids of records. */
function examplesOf({
  figures: { dearest, first_id: firstId, last_id: lastId },
}: GroupSum): readonly number[] {
  const ids = [...(dearest === '' ? [] : [Number(dearest.split('-')[1])]), firstId, lastId]
  return [...new Set(ids)]
}

/** Records past their retention have none. */
async function uuidsOf(
  { store }: CallSources,
  groups: readonly GroupSum[],
): Promise<ReadonlyMap<number, string>> {
  const ids = [...new Set(groups.flatMap(examplesOf))]
  if (ids.length === 0) return new Map()
  const query = store.db.selectFrom('cdr').select(['id', 'call_uuid']).where('id', 'in', ids)
  return new Map((await all(store, query)).map(({ id, call_uuid: uuid }) => [id, uuid]))
}

async function namesOf(
  { store: { db }, store }: CallSources,
  { groupBy, tenantId }: SummaryRequest,
  groups: readonly GroupSum[],
): Promise<ReadonlyMap<string, string>> {
  const ids = groups.flatMap(({ member }) => (member === '' ? [] : [Number(member)]))
  if ((groupBy !== 'customer' && groupBy !== 'tenant') || ids.length === 0) return new Map()
  const query =
    groupBy === 'customer'
      ? db
          .selectFrom('customer')
          .select(['id', 'name'])
          .where('id', 'in', ids)
          // The platform may pay calls of a tenant.
          .$if(tenantId !== null, (own) => own.where('tenant_id', '=', tenantId))
      : db
          .selectFrom('tenant')
          .select(['id', sql<string>`slug`.as('name')])
          .where('id', 'in', ids)
  return new Map((await all(store, query)).map(({ id, name }) => [String(id), name]))
}

/** The arguments of a summary, in a query and in a tool. */
const wanted = text(255).min(1)
const callFilters = {
  tenant: reference.optional().describe('Id or slug.'),
  caller: wanted.optional().describe("The caller's number."),
  callee_prefix: prefix.optional().describe('First digits of the called number.'),
  node: wanted.optional().describe('Host, `host:port` or SIP URI.'),
  carrier: wanted.optional().describe('Name.'),
  denial_code: wanted.optional(),
  direction: z.enum(directions).optional(),
  disposition: z.enum(dispositions).optional(),
}

/** Names of filters, as input of tools and in queries. */
export const callFilterInput = {
  customer: reference.optional().describe('Id or exact name.'),
  ...callFilters,
}

const MAX_GROUPS = 200
/** More days would keep the thread of reports busy for long. */
const MAX_DAYS = 100

const order = z.enum(summaryOrders).describe('`asr`: the worst first.')

export const summaryInput = z.strictObject({
  start: zonedTime.describe('RFC 3339, or a date in the zone.'),
  end: zonedTime.describe('Exclusive.'),
  group_by: z.enum(summaryGroupings),
  time_zone: timeZone.optional(),
  ...callFilterInput,
  order_by: order.default('count'),
  limit: z.int().min(1).max(MAX_GROUPS).default(20),
  cursor: cursorQuery,
})

export const reportZoneText =
  "IANA name. Absent: that of the customer that is asked for, else of the credential's tenant, " +
  'else UTC. A date without a time is its first moment there.'

export const queryReference = wanted.transform((value): Reference =>
  /^[1-9]\d{0,14}$/.test(value) ? Number(value) : value,
)

export const summaryQuery = z.strictObject({
  start_date: zonedQueryTime,
  end_date: zonedQueryTime,
  group_by: z
    .enum(summaryGroupings)
    .describe('`hour` and `day` by the clock of the zone; an hour is named by its moment in UTC.'),
  time_zone: timeZone.optional().describe(reportZoneText),
  callee_prefix: callFilters.callee_prefix,
  denial_code: callFilters.denial_code,
  ...matchQuery,
  customer: queryReference.optional().describe('Id or exact name.'),
  tenant: queryReference.optional().describe('Id or slug.'),
  order_by: order.default('count').meta({ default: 'count' }),
  limit: queryInteger(/^[1-9]\d{0,8}$/, 'Expected an integer of at least 1', 1)
    .transform((limit) => Math.min(limit, MAX_GROUPS))
    .default(20)
    .meta({ default: 20, description: `More than ${MAX_GROUPS} are never given.` }),
  cursor: cursorQuery,
})

/** The daily totals may have the first ones; only records have the others. */
export function splitFilters(query: z.output<typeof summaryQuery>) {
  const { caller, node, carrier, direction, disposition, customer_id: customers } = query
  const isBeginning = caller?.endsWith('*') === true
  const { customer = only(customers) } = query
  const simple = {
    caller: isBeginning ? undefined : caller,
    callee_prefix: query.callee_prefix,
    node: only(node),
    carrier: only(carrier),
    denial_code: query.denial_code,
    direction: only(direction),
    disposition: only(disposition),
    customer,
    tenant: query.tenant,
  }
  const match = matchOf({
    ...query,
    ...(!isBeginning && { caller: undefined }),
    ...(simple.node !== undefined && { node: undefined }),
    ...(simple.carrier !== undefined && { carrier: undefined }),
    ...(simple.direction !== undefined && { direction: undefined }),
    ...(simple.disposition !== undefined && { disposition: undefined }),
    ...(query.customer === undefined && customer !== undefined && { customer_id: undefined }),
  })
  return { simple, match }
}

const only = <T>(values: readonly T[] | undefined): T | undefined =>
  values?.length === 1 ? values[0] : undefined

type Filters = Partial<Record<MemberDimension, string | undefined>> & {
  readonly customer?: Reference | undefined
  readonly tenant?: Reference | undefined
  readonly direction?: CallFilters['direction']
  readonly disposition?: CallFilters['disposition']
}

/**
 * The filters, and the tenant whose calls are meant. Throws 400 for a name that the reader cannot
 * see.
 */
export async function filtersOf(
  given: Filters,
  store: Store,
  scope: RequestScope,
): Promise<{ readonly tenantId: number | null; readonly filters: CallFilters }> {
  const { customer, tenant, direction, disposition } = given
  const { caller, callee_prefix, node, carrier, denial_code } = given
  const named = Object.entries({ caller, callee_prefix, node, carrier, denial_code })
  // Another OCS has the customers of its ids; the tenant limits what is seen of them.
  const customerId =
    typeof customer === 'string'
      ? await resolve(store, 'customer', customer, { tenantId: 'any', scope })
      : customer
  return {
    tenantId: await tenantOf(store, tenant, scope),
    filters: {
      ...(customerId != null && { customerId }),
      direction,
      disposition,
      members: Object.fromEntries(named.filter(([, value]) => value !== undefined && value !== '')),
    },
  }
}

interface SummaryQuery extends Filters, ZonedPeriod {
  readonly group_by: SummaryGrouping
  readonly time_zone?: string | undefined
  readonly match?: CdrMatch | undefined
  readonly order_by: (typeof summaryOrders)[number]
  readonly limit: number
  readonly cursor?: string | undefined
}

interface Summarizer {
  /** Undefined when too many reports are open. */
  summarize(request: SummaryRequest): Promise<Summary | undefined>
}

export async function askSummary(
  query: SummaryQuery,
  { store, reports }: { readonly store: Store; readonly reports: Summarizer },
  scope: RequestScope,
): Promise<Summary> {
  const { group_by: groupBy, order_by: orderBy, limit, cursor, time_zone: asked, match } = query
  const filtered = await filtersOf(query, store, scope)
  const { tenantId } = scope
  const zone = await zoneOfReport(store, {
    asked,
    customerId: filtered.filters.customerId,
    tenantId,
  })
  const { from, before } = periodIn(zone, query)
  if (before < from) throw badRequest('The period ends before it begins')
  if (lengthIn(zone, { from, before }) > MAX_DAYS * DAY_MS)
    throw badRequest(`The period is longer than ${MAX_DAYS} days`)
  const found = await reports.summarize({
    ...filtered,
    from,
    before,
    groupBy,
    match,
    ...(zone.name !== 'UTC' && { zone: zone.name }),
    orderBy,
    limit,
    offset: skippedBy(cursor),
  })
  return found ?? refuseForNow()
}

export function refuseForNow(): never {
  throw new ApiError(503, 'too_many_reports', 'Too many reports are in progress', {
    headers: { 'Retry-After': '10' },
  })
}
