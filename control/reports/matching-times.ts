/** Finds the times of matching calls by the daily totals, so that other records are not read. */
import { DAY_MS } from '../../schema/clock.ts'
import { sql } from 'kysely'
import { all, first, transaction } from '../../schema/sql/query.ts'
import {
  ALL,
  type CallFilters,
  isMember,
  memberFilters,
  NONE,
  OTHERS,
  type CallSources,
  PREFIX_LENGTH,
  startOfDay,
} from './call-filters.ts'
import { behind, MAX_TAIL } from './roll-up.ts'
import { newRecords, type Watermark, watermarkOf } from './roll-up-state.ts'
import type { Window } from '../../schema/records/record-windows.ts'

interface MatchRequest {
  /** Null for all tenants. */
  readonly tenantId: number | null
  readonly filters: CallFilters
}

/** Parts of the period outside of which no call matches, the newest first. */
export async function matchingTimes(
  sources: CallSources,
  request: MatchRequest,
  period: Window,
): Promise<readonly Window[]> {
  if (period.before <= period.from) return []
  const filters = memberFilters(request.filters.members)
  if (filters.length === 0 || (await behind(sources)) > MAX_TAIL) return [period]
  return transaction(sources.sums, async () => {
    const watermark = await watermarkOf(sources)
    if (watermark.upTo === 0) return [period]
    let days: ReadonlyMap<number, Window> | undefined
    for (const filter of filters)
      days = common(days, await daysWith(sources, request, filter, period))
    const times = [...(days?.values() ?? []), ...(await timesOfNew(sources, watermark))]
    return joined(times.flatMap((time) => within(time, period)))
  })
}

/** The first and the last call of each day that may match. */
async function daysWith(
  { sums }: CallSources,
  { tenantId }: MatchRequest,
  [dimension, value]: ReturnType<typeof memberFilters>[number],
  { from, before }: Window,
): Promise<ReadonlyMap<number, Window>> {
  const start = dimension === 'callee_prefix' ? value.slice(0, PREFIX_LENGTH) : value
  const column = sql.ref<string>('member')
  const firstDay = startOfDay(from)
  const days = Array.from(
    { length: Math.ceil((before - firstDay) / DAY_MS) },
    (_, index) => firstDay + index * DAY_MS,
  )
  const query = sums.db
    .selectFrom('call_sum')
    .select(['day'])
    .select(({ fn }) => [fn.min('first_at').as('from'), fn.max('last_at').as('last')])
    .where('day', 'in', days)
    .where('dimension', '=', dimension)
    .where('customer_id', '=', ALL)
    .$if(tenantId !== null, (own) => own.where('tenant_id', '=', tenantId ?? NONE))
    // The group may be merged into others.
    .where(sql<boolean>`(member = ${OTHERS} OR ${isMember(dimension, start, column)})`)
    .groupBy('day')
  const rows = await all(sums, query)
  return new Map(rows.map(({ day, from: since, last }) => [day, { from: since, before: last + 1 }]))
}

/** Days of both, when both have calls. */
function common(
  one: ReadonlyMap<number, Window> | undefined,
  other: ReadonlyMap<number, Window>,
): ReadonlyMap<number, Window> {
  if (one === undefined) return other
  return new Map(
    [...one].flatMap(([day, time]) => {
      const also = other.get(day)
      const [part] = also === undefined ? [] : within(time, also)
      return part === undefined ? [] : [[day, part] as const]
    }),
  )
}

function within(time: Window, period: Window): readonly Window[] {
  const from = Math.max(time.from, period.from)
  const before = Math.min(time.before, period.before)
  return from < before ? [{ from, before }] : []
}

/** Times of records that the sums do not have yet. */
async function timesOfNew(
  { store }: CallSources,
  watermark: Watermark,
): Promise<readonly Window[]> {
  const query = store.db
    .selectFrom('cdr')
    .select(({ fn }) => [
      fn.min<number | null>('start_stamp').as('from'),
      fn.max<number | null>('start_stamp').as('last'),
    ])
    .where(newRecords(watermark))
  const { from = null, last = null } = (await first(store, query)) ?? {}
  return from === null || last === null ? [] : [{ from, before: last + 1 }]
}

/** The newest first, without what overlaps. */
function joined(times: readonly Window[]): readonly Window[] {
  const parts: Window[] = []
  for (const time of times.toSorted((one, other) => other.before - one.before)) {
    const later = parts.at(-1)
    if (later === undefined || time.before < later.from) parts.push(time)
    else parts[parts.length - 1] = { ...later, from: Math.min(later.from, time.from) }
  }
  return parts
}
