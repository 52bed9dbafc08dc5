/**
 * Finds records of a period: the newest, or the most expensive. Reads a bounded number of windows
 * of records, at the times of calls that may match.
 */
import { sql, type SqlBool } from 'kysely'
import { all } from '../../schema/sql/query.ts'
import { likePattern } from '../http/envelope.ts'
import { costFor } from './own-prices.ts'
import { matchesLike } from '../http/text-match.ts'
import { type CallFilters, conditionsOf, type CallSources } from './call-filters.ts'
import { matchingTimes } from './matching-times.ts'
import { type Window, windows } from '../../schema/records/record-windows.ts'

/** Plain data: it is sent to the thread of reports. */
export interface SearchRequest {
  /** Null for all tenants. */
  readonly tenantId: number | null
  /** Milliseconds UTC of the start of calls; `before` is exclusive. */
  readonly from: number
  readonly before: number
  readonly filters: CallFilters
  /** Part of the calling or the called number. */
  readonly number?: string | undefined
  readonly order: 'newest' | 'cost'
  readonly limit: number
  /** Where an earlier search stopped: records older than this one. */
  readonly after?: SearchPosition | undefined
}

export interface SearchPosition {
  readonly startStamp: number
  readonly id: number
}

export interface SearchResult {
  /** Ids of the records, in order. */
  readonly ids: readonly number[]
  /** The last record that was read; undefined when the period has no older one. */
  readonly stoppedAt?: SearchPosition | undefined
}

/** Windows of records that one search may read: half a million records. */
const MAX_WINDOWS = 50

interface Match extends SearchPosition {
  readonly costMicros: number
}

/** Yields after each window. */
export async function* search(
  sources: CallSources,
  request: SearchRequest,
  maxWindows = MAX_WINDOWS,
): AsyncGenerator<void, SearchResult, undefined> {
  const { store } = sources
  const { tenantId, from, after, filters, limit, order } = request
  const before = after === undefined ? request.before : after.startStamp + 1
  const scope = { tenantId, customerId: filters.customerId }
  let matches: Match[] = []
  let examined = 0
  let reached: SearchPosition = { startStamp: before, id: 0 }
  for (const time of await matchingTimes(sources, request, { from, before }))
    for await (const part of windows(store, scope, time)) {
      if (examined === maxWindows) return resultOf(matches.slice(0, limit), reached)
      examined += 1
      matches.push(...(await matchesIn(store, request, part)))
      if (order === 'cost') matches = matches.toSorted(byCost).slice(0, limit)
      else if (matches.length > limit) {
        const listed = matches.slice(0, limit)
        return resultOf(listed, listed.at(-1))
      }
      reached = { startStamp: part.from, id: 0 }
      yield
    }
  return resultOf(matches, undefined)
}

const resultOf = (
  matches: readonly Match[],
  stoppedAt: SearchPosition | undefined,
): SearchResult => ({
  ids: matches.map(({ id }) => id),
  ...(stoppedAt && { stoppedAt: { startStamp: stoppedAt.startStamp, id: stoppedAt.id } }),
})

const byCost = (one: Match, other: Match): number =>
  other.costMicros - one.costMicros || other.startStamp - one.startStamp || other.id - one.id

/** One more than asked for, which says that there are more. */
function matchesIn(
  store: CallSources['store'],
  { tenantId, filters, number, order, limit, after }: SearchRequest,
  { from, before }: Window,
): Promise<Match[]> {
  let query = store.db
    .selectFrom('cdr')
    .select(['id', 'start_stamp as startStamp', costFor(tenantId).as('costMicros')])
    .where('start_stamp', '>=', from)
    .where('start_stamp', '<', before)
    .limit(limit + 1)
  if (order === 'cost') query = query.orderBy(costFor(tenantId), 'desc')
  query = query.orderBy('start_stamp', 'desc').orderBy('id', 'desc')
  if (after !== undefined)
    query = query.where(({ eb, refTuple, tuple }) =>
      eb(refTuple('start_stamp', 'id'), '<', tuple(after.startStamp, after.id)),
    )
  if (tenantId !== null)
    query = query.where(
      filters.customerId === undefined
        ? sql<SqlBool>`tenant_id = ${tenantId}`
        : sql<SqlBool>`+tenant_id = ${tenantId}`,
    )
  for (const condition of conditionsOf(filters, tenantId)) query = query.where(condition)
  if (number !== undefined) {
    const columns = [sql.ref<string>('caller_id_number'), sql.ref<string>('destination_number')]
    const each = columns.map((column) => matchesLike(column, number, likePattern))
    query = query.where(sql<SqlBool>`(${sql.join(each, sql` OR `)})`)
  }
  return all(store, query)
}
