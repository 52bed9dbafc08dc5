/**
 * Finds calls by a number, a Call-ID or a uuid, whole or by its beginning: ended ones by the
 * columns of their records, and by the index of uuids.
 */
import { type RawBuilder, sql } from 'kysely'
import type { ActiveCall } from '../../schema/contracts/calls.ts'
import type { CdrTable } from '../../schema/tables/calls.ts'
import { timeToText } from '../../schema/columns.ts'
import type { Store } from '../../schema/storage/store.ts'
import { all } from '../../schema/sql/query.ts'
import type { WithReports } from '../reports/reports.ts'
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

/** Uuids that begin so are few, unless a program counts them. */
const MAX_UUIDS = 2_000

/** Ended calls, the newest first; those with the whole number, Call-ID or uuid before others. */
export async function endedCalls(
  { store, reports }: { readonly store: Store } & WithReports,
  search: CallSearch,
): Promise<readonly FoundCall[]> {
  const { text, tenantId, limit } = search
  const numbers = spellingsOf(text)
  const byColumns = await reports.findCalls({ text, numbers, tenantId, limit })
  const uuid = uuidStart(text)
  const wholeUuid = sql`SELECT id FROM cdr
    WHERE call_uuid IN (${sql.join([...new Set([text, text.toLowerCase()])])})`
  const found = new Map<string, FoundCall>()
  const take = async (ids: RawBuilder<unknown>, isWhole: boolean): Promise<void> => {
    for (const row of await all<EndedRow>(store, compiled(store, recordsOf(ids, search))))
      if (!found.has(row.call_uuid)) found.set(row.call_uuid, endedCall(row, isWhole))
  }
  await take(wholeUuid, true)
  if (byColumns.whole.length > 0) await take(sql.join(byColumns.whole), true)
  if (found.size < limit && byColumns.beginning.length > 0)
    await take(sql.join(byColumns.beginning), false)
  if (found.size < limit && uuid !== undefined) await take(withUuid(uuid, search), false)
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

const ofTenant = (tenantId: number | null): RawBuilder<boolean> =>
  tenantId === null ? sql<boolean>`true` : sql<boolean>`tenant_id = ${tenantId}`

const withUuid = (start: string, { tenantId, limit }: CallSearch): RawBuilder<unknown> =>
  sql`SELECT id FROM (SELECT id, tenant_id FROM cdr
      WHERE call_uuid >= ${start} AND call_uuid < ${endOf(start)} LIMIT ${MAX_UUIDS}) AS entries
    WHERE ${ofTenant(tenantId)} ORDER BY id DESC LIMIT ${limit}`

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
