/** A summary of calls as the API and the tools show it. */
import { sql } from 'kysely'
import { z } from 'zod'
import { moneyToDecimal, timeToText } from '../../../schema/columns.ts'
import { all } from '../../../schema/sql/query.ts'
import type { Place } from './places.ts'
import { type GroupSum, summarize, type SummaryRequest, totalOf } from './summarize.ts'

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
    .describe('False: calls before start were not read. Ask for a shorter period.'),
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
  place: Place,
  request: SummaryRequest,
): AsyncGenerator<void, Summary, undefined> {
  const work = summarize(place, request)
  let step = await work.next()
  for (; step.done !== true; step = await work.next()) yield
  const summed = step.value
  const listed = summed.groups.toSorted(orders[request.orderBy]).slice(0, request.limit)
  const names = await namesOf(place, request, listed)
  const uuids = await uuidsOf(place, listed)
  return {
    start: timeToText(summed.from),
    end: timeToText(request.before),
    complete: summed.isComplete,
    source: summed.isKept ? 'sums' : 'records',
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

function labelOf({ member }: GroupSum, { groupBy }: SummaryRequest): string | null {
  if (member === '') return null
  return groupBy === 'minute' ? timeToText(Number(member)) : member
}

/** Ids of records. */
function examplesOf({
  figures: { dearest, first_id: firstId, last_id: lastId },
}: GroupSum): readonly number[] {
  const ids = [...(dearest === '' ? [] : [Number(dearest.split('-')[1])]), firstId, lastId]
  return [...new Set(ids)]
}

/** Records past their retention have none. */
async function uuidsOf(
  { store }: Place,
  groups: readonly GroupSum[],
): Promise<ReadonlyMap<number, string>> {
  const ids = [...new Set(groups.flatMap(examplesOf))]
  if (ids.length === 0) return new Map()
  const query = store.db.selectFrom('cdr').select(['id', 'call_uuid']).where('id', 'in', ids)
  return new Map((await all(store, query)).map(({ id, call_uuid: uuid }) => [id, uuid]))
}

async function namesOf(
  { store: { db }, store }: Place,
  { groupBy }: SummaryRequest,
  groups: readonly GroupSum[],
): Promise<ReadonlyMap<string, string>> {
  const ids = groups.flatMap(({ member }) => (member === '' ? [] : [Number(member)]))
  if ((groupBy !== 'customer' && groupBy !== 'tenant') || ids.length === 0) return new Map()
  const query =
    groupBy === 'customer'
      ? db.selectFrom('customer').select(['id', 'name']).where('id', 'in', ids)
      : db
          .selectFrom('tenant')
          .select(['id', sql<string>`slug`.as('name')])
          .where('id', 'in', ids)
  return new Map((await all(store, query)).map(({ id, name }) => [String(id), name]))
}
