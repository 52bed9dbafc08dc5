/**
 * Finds calls by a number, a Call-ID or a uuid, whole or by its beginning. However many records
 * there are, a search reads a bounded part of their indexes.
 */
import { type RawBuilder, sql } from 'kysely'
import type { ActiveCall } from '../../schema/contracts/calls.ts'
import type { CdrTable } from '../../schema/tables/calls.ts'
import { timeToText } from '../../schema/columns.ts'
import type { Store } from '../../schema/storage/store.ts'
import { all } from '../../schema/sql/query.ts'
import { compiled } from '../resources/table-rows.ts'
import { endOf, spellingsOf, uuidStart } from './texts.ts'

export interface FoundCall {
  readonly callUuid: string
  readonly caller: string
  readonly called: string
  readonly state: string
  /** Milliseconds UTC. */
  readonly startedAt: number
  readonly isLive: boolean
  /** The text is the whole number, Call-ID or uuid. */
  readonly isWhole: boolean
}

export interface CallSearch {
  readonly text: string
  readonly tenantId: number | null
  readonly limit: number
}

/** Entries of one number that are looked through for calls of a tenant. */
const MAX_ENTRIES = 2_000
/** Newest records of which all numbers are compared. */
const MAX_NEWEST = 2_000
/** Numbers with the same beginning whose newest calls are looked up. */
const MAX_NUMBERS = 50
/** The same for a tenant, which may have few calls of them. */
const MAX_NUMBERS_OF_ALL = 1_000
/** Shorter texts begin too many Call-IDs. */
const MIN_CALL_ID = 6

type Condition = RawBuilder<boolean>

/** Ended calls, the newest first; those with the whole number, Call-ID or uuid before others. */
export async function endedCalls(store: Store, search: CallSearch): Promise<readonly FoundCall[]> {
  const { limit } = search
  const found = new Map<string, FoundCall>()
  const take = async (ids: RawBuilder<unknown>, isWhole: boolean): Promise<void> => {
    for (const row of await all<EndedRow>(store, compiled(store, recordsOf(ids, search))))
      if (!found.has(row.call_uuid)) found.set(row.call_uuid, endedCall(row, isWhole))
  }
  for (const each of wholes(search)) await take(each, true)
  if (found.size < limit) for (const each of beginnings(search)) await take(each, false)
  return bestFirst([...found.values()]).slice(0, limit)
}

const bestFirst = (calls: readonly FoundCall[]): readonly FoundCall[] =>
  calls.toSorted(
    (one, other) => Number(other.isWhole) - Number(one.isWhole) || other.startedAt - one.startedAt,
  )

type EndedRow = Pick<
  CdrTable,
  'call_uuid' | 'caller_id_number' | 'destination_number' | 'start_stamp' | 'disposition'
>

const endedCall = (row: EndedRow, isWhole: boolean): FoundCall => ({
  callUuid: row.call_uuid,
  caller: row.caller_id_number,
  called: row.destination_number,
  state: row.disposition.toLowerCase(),
  startedAt: row.start_stamp,
  isLive: false,
  isWhole,
})

/** `ids` is limited; the tenant is compared again, whatever it selects. */
const recordsOf = (ids: RawBuilder<unknown>, { tenantId }: CallSearch): RawBuilder<EndedRow> =>
  sql`SELECT call_uuid, caller_id_number, destination_number, start_stamp, disposition
    FROM cdr WHERE id IN (${ids}) AND ${ofTenant(tenantId)}`

const ofTenant = (tenantId: number | null): Condition =>
  tenantId === null ? sql<boolean>`true` : sql<boolean>`tenant_id = ${tenantId}`

const numberColumns = ['caller_id_number', 'destination_number'] as const

/** Most characters of what the indexes of numbers and Call-IDs hold; uuids are all in theirs. */
const mostIndexed = { caller_id_number: 100, destination_number: 100, call_id: 255 } as const

/** An index is used only where a statement says the same as its own condition. */
const isIndexed = (column: keyof typeof mostIndexed | 'call_uuid'): Condition =>
  column === 'call_uuid'
    ? sql<boolean>`true`
    : sql<boolean>`length(${sql.ref(column)}) <= ${sql.lit(mostIndexed[column])}`

function wholes(search: CallSearch): readonly RawBuilder<unknown>[] {
  const { text } = search
  const uuids = [...new Set([text, text.toLowerCase()])]
  return [
    sql`SELECT id FROM cdr WHERE call_uuid IN (${sql.join(uuids)})`,
    newestOf(sql<boolean>`call_id = ${text} AND ${isIndexed('call_id')}`, search, sql`id`),
    ...spellingsOf(text).flatMap((number) =>
      numberColumns.map((column) => {
        const entry = sql<boolean>`${sql.ref(column)} = ${number} AND ${isIndexed(column)}`
        return newestOf(entry, search, sql`start_stamp`)
      }),
    ),
  ]
}

/** Ids of the newest records with an entry of an index, of a bounded number of entries. */
const newestOf = (
  entry: Condition,
  { tenantId, limit }: CallSearch,
  order: RawBuilder<unknown>,
): RawBuilder<unknown> =>
  tenantId === null
    ? sql`SELECT id FROM cdr WHERE ${entry} ORDER BY ${order} DESC LIMIT ${limit}`
    : sql`SELECT id FROM (SELECT id, tenant_id FROM cdr WHERE ${entry}
        ORDER BY ${order} DESC LIMIT ${MAX_ENTRIES}) AS entries
      WHERE tenant_id = ${tenantId} LIMIT ${limit}`

function beginnings(search: CallSearch): readonly RawBuilder<unknown>[] {
  const { text } = search
  const uuid = uuidStart(text)
  const numbers = spellingsOf(text)
  return [
    ...(uuid === undefined ? [] : [someWith('call_uuid', uuid, search)]),
    ...(text.length < MIN_CALL_ID ? [] : [someWith('call_id', text, search)]),
    ...(numbers.length === 0 ? [] : [amongNewest(numbers, search)]),
    ...numbers.flatMap((number) => numberColumns.map((column) => byNumber(column, number, search))),
  ]
}

/** Identifiers that begin so are few, unless a program counts them. */
const someWith = (
  column: 'call_uuid' | 'call_id',
  start: string,
  { tenantId, limit }: CallSearch,
): RawBuilder<unknown> =>
  sql`SELECT id FROM (SELECT id, tenant_id FROM cdr
      WHERE ${begins(column, start)} AND ${isIndexed(column)} LIMIT ${MAX_ENTRIES}) AS entries
    WHERE ${ofTenant(tenantId)} ORDER BY id DESC LIMIT ${limit}`

const begins = (column: string, start: string): Condition =>
  sql`${sql.ref(column)} >= ${start} AND ${sql.ref(column)} < ${endOf(start)}`

/** Among the newest records, whatever their numbers are. */
function amongNewest(
  numbers: readonly string[],
  { tenantId, limit }: CallSearch,
): RawBuilder<unknown> {
  const starts = numbers.flatMap((number) =>
    numberColumns.map((column) => sql`(${begins(column, number)})`),
  )
  return sql`SELECT id FROM (SELECT id, start_stamp, caller_id_number, destination_number FROM cdr
      WHERE ${ofTenant(tenantId)} ORDER BY start_stamp DESC LIMIT ${MAX_NEWEST}) AS newest
    WHERE ${sql.join(starts, sql` OR `)} ORDER BY start_stamp DESC LIMIT ${limit}`
}

/**
 * The newest call of each number that begins so: goes from one number to the next in the index, and
 * not through its entries.
 */
function byNumber(
  column: (typeof numberColumns)[number],
  start: string,
  { tenantId, limit }: CallSearch,
): RawBuilder<unknown> {
  const name = sql.ref(column)
  const isIn = isIndexed(column)
  const most = tenantId === null ? MAX_NUMBERS : MAX_NUMBERS_OF_ALL
  const ofNumber =
    tenantId === null
      ? sql`SELECT id FROM cdr WHERE ${name} = numbers.number AND ${isIn}
          ORDER BY start_stamp DESC LIMIT 1`
      : sql`SELECT id FROM (SELECT id, tenant_id FROM cdr WHERE ${name} = numbers.number AND ${isIn}
          ORDER BY start_stamp DESC LIMIT ${MAX_NUMBERS}) AS entries
        WHERE tenant_id = ${tenantId} LIMIT 1`
  return sql`WITH RECURSIVE numbers (number, step) AS (
      SELECT min(${name}), 1 FROM cdr WHERE ${begins(column, start)} AND ${isIn}
      UNION ALL
      SELECT (SELECT min(${name}) FROM cdr
        WHERE ${name} > numbers.number AND ${name} < ${endOf(start)} AND ${isIn}), step + 1
      FROM numbers WHERE numbers.number IS NOT NULL AND step < ${most})
    SELECT id FROM (SELECT (${ofNumber}) AS id FROM numbers WHERE number IS NOT NULL) AS found
    WHERE id IS NOT NULL ORDER BY id DESC LIMIT ${limit}`
}

/** Live calls of this instance. */
export function liveCalls(
  calls: { list(): readonly ActiveCall[]; uuidOf(callId: string): string | undefined },
  isVisible: (call: ActiveCall) => boolean,
  { text, limit }: CallSearch,
): readonly FoundCall[] {
  const numbers = spellingsOf(text)
  const uuid = uuidStart(text)
  const byCallId = calls.uuidOf(text)
  const found: FoundCall[] = []
  for (const call of calls.list()) {
    const match = matchOf(call)
    if (match === undefined || !isVisible(call)) continue
    found.push({
      callUuid: call.callUuid,
      caller: call.callerNumber,
      called: call.calledNumber,
      state: call.state.toLowerCase(),
      startedAt: call.startedAt + call.stampOffsetMs,
      isLive: true,
      isWhole: match === 'whole',
    })
  }
  return bestFirst(found).slice(0, limit)

  function matchOf({ callUuid, callerNumber, calledNumber }: ActiveCall) {
    if (callUuid === byCallId || callUuid === text) return 'whole'
    if (numbers.includes(callerNumber) || numbers.includes(calledNumber)) return 'whole'
    if (uuid !== undefined && callUuid.startsWith(uuid)) return 'beginning'
    const starts = numbers.some(
      (number) => callerNumber.startsWith(number) || calledNumber.startsWith(number),
    )
    return starts ? 'beginning' : undefined
  }
}

/** As an answer has it. */
export const callHit = (call: FoundCall) => ({
  kind: 'call',
  id: call.callUuid,
  title: `${call.caller || 'anonymous'} → ${call.called}`,
  detail: call.isLive ? `live, ${call.state}` : call.state,
  at: timeToText(call.startedAt),
  path: `/console/calls/${encodeURIComponent(call.callUuid)}`,
})
