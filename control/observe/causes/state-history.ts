/** What changed the state of a node, a gateway or a registration, and since when it is as it is. */
import type { Selectable } from 'kysely'
import { timeToText } from '../../../schema/columns.ts'
import type { Store } from '../../../schema/open.ts'
import { all, first } from '../../../schema/sql/query.ts'
import type { StateChangeKind, StateChangeTable } from '../../../schema/tables/causes.ts'

type Row = Selectable<StateChangeTable>

export interface HistoryReader {
  readonly store: Store
  readonly tenantId: number | null
}

interface Period {
  /** Milliseconds UTC; `before` is exclusive. */
  readonly from: number
  readonly before: number
  readonly limit: number
}

/** The states in which a subject is of use. */
const good: ReadonlySet<string> = new Set(['active', 'registered'])
/** Changes that are looked through for the one since which something is down. */
const MAX_LOOKED = 200

/** Newest first, and whether there are older ones in the period. */
export async function changesOf(
  reader: HistoryReader,
  kind: StateChangeKind,
  subjectId: number,
  { from, before, limit }: Period,
) {
  const query = changesIn(reader, kind)
    .where('subject_id', '=', subjectId)
    .where('at', '>=', from)
    .where('at', '<', before)
    .limit(limit + 1)
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
  { from, before, limit }: Period,
): Promise<readonly Row[]> {
  const query = changesIn(reader, kind).where('at', '>=', from).where('at', '<', before)
  return all(reader.store, query.limit(limit))
}

export interface Since {
  /** Milliseconds UTC of the first change of this outage, on any node of the platform. */
  readonly at: number
  readonly reason: string
  readonly cause: Row['cause']
}

/** Since when the subject is not of use, and why; undefined: it is of use, or nothing is known. */
export async function downSince(
  reader: HistoryReader,
  kind: StateChangeKind,
  subjectId: number,
): Promise<Since | undefined> {
  const query = changesIn(reader, kind).where('subject_id', '=', subjectId).limit(MAX_LOOKED)
  return outageIn(await all(reader.store, query))
}

/** `rows`: newest first. A restart says nothing: a node that was down is found down again. */
function outageIn(rows: readonly Row[]): Since | undefined {
  let since: Since | undefined
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

/** Returns whether a tenant may know who acted: staff and keys of the platform have no names for tenants. */
async function ownActors({ store, tenantId }: HistoryReader, rows: readonly Row[]) {
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
