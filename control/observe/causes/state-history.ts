/** The state changes of a node, a gateway or a registration, and the time of its present state. */
import type { Selectable } from 'kysely'
import { z } from 'zod'
import { DAY_MS } from '../../../schema/clock.ts'
import { parseTime, timeToText } from '../../../schema/columns.ts'
import type { NodeStatus, SetStatus } from '../../../schema/contracts/engine.ts'
import type { Store } from '../../../schema/storage/store.ts'
import { all, first } from '../../../schema/sql/query.ts'
import { badRequest } from '../../http/api-error.ts'
import { pageEndView } from '../../http/envelope.ts'
import { count, moment } from '../../http/view-fields.ts'
import type { Platform } from '../../http/platform.ts'
import type { StateChangeKind, StateChangeTable } from '../../../schema/tables/changes.ts'

type Row = Selectable<StateChangeTable>

export interface HistoryReader {
  readonly store: Store
  readonly tenantId: number | null
}

/** The states in which a subject is of use. */
const good: ReadonlySet<string> = new Set(['active', 'registered'])
/** The most changes that are read to find when an outage began. */
const MAX_EXAMINED = 200

/** Newest first, and whether there are older ones in the period. */
export async function changesOf(
  reader: HistoryReader,
  kind: StateChangeKind,
  subjectId: number,
  { from, before, limit, offset = 0 }: HistoryQuery,
) {
  const query = changesIn(reader, kind)
    .where('subject_id', '=', subjectId)
    .where('at', '>=', from)
    .where('at', '<', before)
    .limit(limit + 1)
    .offset(offset)
  const rows = await all(reader.store, query)
  const isOwn = await ownActors(reader, rows)
  return {
    changes: rows.slice(0, limit).map((row) => changeView(row, isOwn)),
    hasOlder: rows.length > limit,
  }
}

/** Newest first, of all subjects of a kind. */
export function changesBetween(
  reader: HistoryReader,
  kind: StateChangeKind,
  { from, before, limit }: Period & { readonly limit: number },
): Promise<readonly Row[]> {
  const query = changesIn(reader, kind).where('at', '>=', from).where('at', '<', before)
  return all(reader.store, query.limit(limit))
}

export interface OutageStart {
  /** Milliseconds UTC of the first change of this outage, on any instance. */
  readonly at: number
  readonly reason: string
  readonly cause: Row['cause']
}

/** Since when the subject is not of use, and why; undefined: it is of use, or nothing is known. */
export async function downSince(
  reader: HistoryReader,
  kind: StateChangeKind,
  subjectId: number,
): Promise<OutageStart | undefined> {
  const query = changesIn(reader, kind).where('subject_id', '=', subjectId).limit(MAX_EXAMINED)
  return outageIn(await all(reader.store, query))
}

/** `rows`: newest first. A restart says nothing: a node that was down is found down again. */
function outageIn(rows: readonly Row[]): OutageStart | undefined {
  let since: OutageStart | undefined
  for (const { to_state, at, reason, cause } of rows) {
    if (good.has(to_state)) break
    since = { at, reason, cause }
  }
  return since
}

/** The last time that a gateway of a carrier, or its registration, failed. */
export async function lastFailure(
  { store, tenantId }: HistoryReader,
  gatewayIds: readonly number[],
  carrierId: number,
): Promise<Pick<Row, 'at' | 'kind' | 'name' | 'reason'> | undefined> {
  const query = store.db
    .selectFrom('state_change')
    .select(['at', 'kind', 'name', 'reason'])
    .where((row) =>
      row.or([
        ...(gatewayIds.length === 0
          ? []
          : [row.and([row('kind', '=', 'gateway'), row('subject_id', 'in', gatewayIds)])]),
        row.and([row('kind', '=', 'registration'), row('subject_id', '=', carrierId)]),
      ]),
    )
    .where('to_state', 'not in', [...good])
    .$if(tenantId !== null, (own) => own.where('tenant_id', '=', tenantId))
    .orderBy('at', 'desc')
    .limit(1)
  return first(store, query)
}

function changesIn({ store, tenantId }: HistoryReader, kind: StateChangeKind) {
  const query = store.db.selectFrom('state_change').selectAll().where('kind', '=', kind)
  const own = tenantId === null ? query : query.where('tenant_id', '=', tenantId)
  return own.orderBy('at', 'desc').orderBy('id', 'desc')
}

/**
 * Returns whether a tenant may know who acted: staff and keys of the platform have no names for
 * tenants.
 */
export async function ownActors(
  { store, tenantId }: HistoryReader,
  rows: readonly { readonly actor: string | null }[],
) {
  if (tenantId === null) return () => true
  const uuids = rows.flatMap(({ actor }) => (actor?.startsWith('key:') ? [actor.slice(4)] : []))
  const keys = store.db
    .selectFrom('application_key')
    .select('uuid')
    .where('tenant_id', '=', tenantId)
    .where('uuid', 'in', [...new Set(uuids)])
  const tenants = store.db.selectFrom('tenant').select('slug').where('id', '=', tenantId)
  const own = new Set(uuids.length === 0 ? [] : (await all(store, keys)).map(({ uuid }) => uuid))
  const slugs = (await all(store, tenants)).map(({ slug }) => `user:${slug}/`)
  return (actor: string) =>
    own.has(actor.slice(4)) || slugs.some((start) => actor.startsWith(start))
}

const changeView = (
  { at, from_state, to_state, cause, reason, actor, observer }: Row,
  isOwn: (actor: string) => boolean,
) => ({
  at: timeToText(at),
  from: from_state,
  to: to_state,
  cause,
  reason,
  by: actor === null || isOwn(actor) ? actor : 'platform',
  seen_by: observer,
})

/**
 * The history of a node of a dispatcher set: causes of its state changes, the operators behind
 * them, and since when it is out.
 */
export const nodeHistoryOf = z.strictObject({
  node: z.strictObject({
    id: z.int(),
    set_id: z.int(),
    destination: z.string(),
    state: z.enum(['active', 'probing', 'inactive']),
    active_calls: count,
  }),
  down_since: moment
    .nullable()
    .describe(
      'When it went out of service first, on any node of the platform. Null: it is active.',
    ),
  down_because: z.string().nullable(),
  last_probe: z
    .strictObject({ at: moment, status: z.int(), reason: z.string() })
    .nullable()
    .describe('Status 0: no answer.'),
  changes: z
    .array(
      z.strictObject({
        at: moment,
        from: z.string(),
        to: z.string(),
        cause: z.enum(['probe', 'call', 'operator', 'reload', 'register']),
        reason: z.string(),
        by: z.string().nullable().describe('The operator, as in the audit log.'),
        seen_by: z.string().describe('The instance of Tollgate.'),
      }),
    )
    .describe('Newest first.'),
  has_older: z.boolean().describe('The period has older changes.'),
  ...pageEndView,
})

export async function nodeHistory(
  reader: HistoryReader,
  { setId, node }: { readonly setId: number; readonly node: NodeStatus },
  period: HistoryQuery,
): Promise<z.output<typeof nodeHistoryOf>> {
  const { nodeId: id, destination, state, activeCalls, lastProbe } = node
  const since = state === 'active' ? undefined : await downSince(reader, 'node', id)
  const { changes, hasOlder } = await changesOf(reader, 'node', id, period)
  return {
    node: { id, set_id: setId, destination, state, active_calls: activeCalls },
    down_since: since === undefined ? null : timeToText(since.at),
    down_because: since?.reason ?? null,
    last_probe: lastProbe && { ...lastProbe, at: timeToText(lastProbe.at) },
    changes,
    has_older: hasOlder,
    complete: !hasOlder,
    cursor: hasOlder ? String((period.offset ?? 0) + changes.length) : null,
  }
}

/** The period of a question. */
const date = /^\d{4}-\d{2}-\d{2}$/

/** RFC 3339, or a date: its first moment in UTC. */
const momentInput = z
  .string()
  .transform((text, context) => {
    const at = parseTime(date.test(text) ? `${text}T00:00:00Z` : text)
    if (at !== undefined) return at
    context.addIssue({ code: 'custom', message: 'must be a date or an RFC 3339 date-time' })
    return z.NEVER
  })
  .meta({ format: 'date-time' })

/** The period in the input of tools. */
export const periodInput = {
  start: momentInput.optional().describe('Date or RFC 3339. Defaults to 24 hours before end.'),
  end: momentInput.optional().describe('Date or RFC 3339, exclusive. Defaults to now.'),
}

export interface Period {
  /** Milliseconds UTC; `before` is exclusive. */
  readonly from: number
  readonly before: number
}

/** @param days the longest period, and how much of it is meant without `start`. */
export function periodOf(
  { start, end }: { readonly start?: number | undefined; readonly end?: number | undefined },
  now: number,
  { longestDays, usualDays = 1 }: { readonly longestDays: number; readonly usualDays?: number },
): Period {
  const before = end ?? now + 1
  const from = start ?? before - usualDays * DAY_MS
  if (before <= from)
    throw badRequest('The period ends before it begins: end must be after start', [
      { path: 'end', message: 'must be after start' },
    ])
  if (before - from > longestDays * DAY_MS + 1)
    throw badRequest(`The period is too long: ask for at most ${longestDays} days`, [
      { path: 'start', message: `must be at most ${longestDays} days before end` },
    ])
  return { from, before }
}

/** Bounds of a question and of its answer. */
export interface HistoryQuery {
  /** Milliseconds UTC; `before` is exclusive. */
  readonly from: number
  readonly before: number
  /** Greatest length of each list in the answer. */
  readonly limit: number
  /** Rows before those that are asked for; absent: 0. */
  readonly offset?: number
}

/** The dispatcher sets that a credential sees, as the engine knows them: a tenant sees its own. */
export async function visibleSets(
  { engine, store }: Pick<Platform, 'engine' | 'store'>,
  tenantId: number | null,
): Promise<readonly SetStatus[]> {
  if (tenantId === null) return engine.dispatcher.status()
  const query = store.db
    .selectFrom('dispatcher_set')
    .select('set_id')
    .where('tenant_id', '=', tenantId)
  const own = new Set((await all(store, query)).map(({ set_id }) => set_id))
  return engine.dispatcher.status().filter((set) => own.has(set.setId))
}
