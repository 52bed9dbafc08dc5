/** When there were calls that match: the kept sums know it by day, so that other records need not be read. */
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
  type Place,
  PREFIX_LENGTH,
  startOfDay,
} from './call-filters.ts'
import { behind, MAX_TAIL, newRecords, type Watermark, watermarkOf } from './roll-up.ts'
import type { Window } from '../../schema/call-record.ts'

interface Asked {
  /** Null for all tenants. */
  readonly tenantId: number | null
  readonly filters: CallFilters
}

/** Parts of the period outside of which no call matches, the newest first. */
export async function matchingTimes(
  place: Place,
  asked: Asked,
  period: Window,
): Promise<readonly Window[]> {
  if (period.before <= period.from) return []
  const filters = memberFilters(asked.filters.members)
  if (filters.length === 0 || (await behind(place)) > MAX_TAIL) return [period]
  return transaction(place.sums, async () => {
    const watermark = await watermarkOf(place)
    if (watermark.upTo === 0) return [period]
    let days: ReadonlyMap<number, Window> | undefined
    for (const filter of filters) days = common(days, await daysWith(place, asked, filter, period))
    const times = [...(days?.values() ?? []), ...(await timesOfNew(place, watermark))]
    return joined(times.flatMap((time) => within(time, period)))
  })
}

/** The first and the last call of each day that may match. */
async function daysWith(
  { sums }: Place,
  { tenantId }: Asked,
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
    // Its group may be one of many that are not kept apart.
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

/** Of records that the sums do not have yet. */
async function timesOfNew({ store }: Place, watermark: Watermark): Promise<readonly Window[]> {
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
