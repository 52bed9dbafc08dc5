/** Reads what the kept sums do not have yet: records, and changes of the cost of others, in one statement. */
import { sql } from 'kysely'
import { all, first, rawRows } from '../../../schema/sql/query.ts'
import { memberOf } from './dimensions.ts'
import type { Place } from './places.ts'
import type { Counted } from './tally.ts'

/** The sums have the records up to `upTo`, but for those in `gaps`. */
export interface Watermark {
  readonly upTo: number
  readonly lastUuid: string
  readonly changesUpTo: number
  readonly gapsAfter: number
  readonly gaps: readonly Gap[]
}

export interface Gap {
  readonly firstId: number
  readonly lastId: number
}

export interface Slice {
  readonly records: readonly Counted[]
  /** Ids of the records, ascending. */
  readonly ids: readonly number[]
  /** Changes of records that the sums have already. */
  readonly changes: readonly Counted[]
  /** Of all changes that were read. */
  readonly changeIds: readonly number[]
  /** The last record that was looked for. */
  readonly upTo: number
}

/** At a time. */
const MAX_CHANGES = 5_000

export async function watermarkOf({ store, sums }: Place): Promise<Watermark> {
  const state = await first(sums, sums.db.selectFrom('call_sum_state').selectAll())
  if (state === undefined) return empty
  if (!(await isOfThisDatabase(store, state.records_up_to, state.last_uuid))) return empty
  const gaps = await all(
    sums,
    sums.db
      .selectFrom('call_sum_gap')
      .select(['first_id as firstId', 'last_id as lastId'])
      .orderBy('first_id'),
  )
  return {
    ...{ upTo: state.records_up_to, lastUuid: state.last_uuid, gaps },
    ...{ changesUpTo: state.changes_up_to, gapsAfter: state.gaps_after },
  }
}

const empty: Watermark = {
  ...{ upTo: 0, lastUuid: '', changesUpTo: 0, gapsAfter: 0, gaps: [] },
}

/** A file of sums may lie beside a database that was restored: the ids of its records are of other calls. */
async function isOfThisDatabase(store: Place['store'], id: number, uuid: string): Promise<boolean> {
  if (store.statements.isShared || id === 0) return true
  return (await uuidOf(store, id)) === uuid
}

export async function uuidOf(store: Place['store'], id: number): Promise<string | undefined> {
  const query = store.db.selectFrom('cdr').select('call_uuid').where('id', '=', id)
  return (await first(store, query))?.call_uuid
}

/** The id of the `count`-th record that the sums do not have, or of the last one. */
export async function endOfSlice(store: Place['store'], upTo: number, count: number) {
  const next = store.db.selectFrom('cdr').select('id').where('id', '>', upTo).orderBy('id')
  const query = store.db
    .selectFrom(next.limit(count).as('next'))
    .select(({ fn }) => [fn.max<number | null>('id').as('last')])
  return (await first(store, query))?.last ?? upTo
}

/**
 * Records, and changes of the costs of others. While more changes wait than are read at a time, they come first: a record
 * that is read with all changes of its cost must not leave one of them for later, which would count twice.
 */
export async function readSlice(place: Place, known: Watermark, upTo: number): Promise<Slice> {
  const slice = await read(place, known, upTo)
  return slice.changeIds.length < MAX_CHANGES ? slice : read(place, known, undefined)
}

/** One statement, so that a record and the changes of its cost are seen as they were at one moment. */
async function read(
  { store }: Place,
  known: Watermark,
  /** Undefined: changes alone. */
  upTo: number | undefined,
): Promise<Slice> {
  const whole = { cost: sql<number>`cdr.cost_micros`, currency: sql<string>`cdr.currency` }
  const changed = { cost: sql<number>`change.cost_micros`, currency: sql<string>`change.currency` }
  const { db } = store
  let query = db
    .selectFrom('cdr')
    .where('cdr.id', '>', known.upTo)
    .where('cdr.id', '<=', upTo ?? known.upTo)
    .select([sql<number>`0`.as('change_id'), ...columns(whole)])
  if (known.gaps.length > 0 && upTo !== undefined)
    query = query.unionAll(
      db
        .selectFrom('cdr')
        .innerJoin('call_sum_gap as gap', (join) =>
          join.onRef('cdr.id', '>=', 'gap.first_id').onRef('cdr.id', '<=', 'gap.last_id'),
        )
        .select([sql<number>`0`.as('change_id'), ...columns(whole)]),
    )
  const changes = db
    .selectFrom('cdr_cost_change')
    .selectAll()
    .where('id', '>', known.changesUpTo)
    .orderBy('id')
    .limit(MAX_CHANGES)
  query = query.unionAll(
    db
      .selectFrom(changes.as('change'))
      .innerJoin('cdr', 'cdr.id', 'change.cdr_id')
      .select([sql<number>`change.id`.as('change_id'), ...columns(changed)]),
  )
  return sorted(await rawRows<Row>(store, query), known, upTo ?? known.upTo)
}

const columns = (of: {
  cost: ReturnType<typeof sql<number>>
  currency: ReturnType<typeof sql<string>>
}) =>
  [
    sql<number>`cdr.id`.as('id'),
    sql<number>`cdr.start_stamp`.as('start_stamp'),
    sql<number | null>`cdr.tenant_id`.as('tenant_id'),
    sql<number | null>`cdr.customer_id`.as('customer_id'),
    memberOf.caller.as('caller'),
    memberOf.callee_prefix.as('callee_prefix'),
    memberOf.node.as('node'),
    memberOf.carrier.as('carrier'),
    memberOf.denial_code.as('denial_code'),
    sql<string>`cdr.disposition`.as('disposition'),
    sql<number>`cdr.billsec`.as('billsec'),
    sql<number | null>`cdr.post_dial_delay_ms`.as('post_dial_delay_ms'),
    of.cost.as('cost'),
    sql<string>`coalesce(${of.currency}, '')`.as('currency'),
    sql<number>`cdr.cost_micros`.as('whole_cost'),
  ] as const

/** In this order. */
type Row = readonly [
  changeId: number,
  id: number,
  startStamp: number,
  tenantId: number | null,
  customerId: number | null,
  caller: string,
  calleePrefix: string,
  node: string,
  carrier: string,
  denialCode: string,
  disposition: string,
  billsec: number,
  pddMs: number | null,
  cost: number,
  currency: string,
  wholeCost: number,
]

function sorted(rows: readonly Row[], known: Watermark, upTo: number): Slice {
  const records: Counted[] = []
  const changes: Counted[] = []
  const changeIds: number[] = []
  for (const row of rows) {
    const [changeId, id] = row
    if (changeId === 0) records.push(counted(row))
    else {
      changeIds.push(changeId)
      // A record that is not in the sums yet is read as it is then.
      if (has(known, id)) changes.push(counted(row))
    }
  }
  const ids = records.map(({ id }) => id).toSorted((one, other) => one - other)
  return { records, ids, changes, changeIds, upTo }
}

/** Whether the sums have the record with this id. */
const has = ({ upTo, gaps }: Watermark, id: number): boolean =>
  id <= upTo && !gaps.some(({ firstId, lastId }) => id >= firstId && id <= lastId)

function counted(row: Row): Counted {
  const [changeId, id, startedAt, tenantId, customerId, caller, prefix, node, carrier] = row
  const [denial, disposition, billsec, pddMs, costMicros, currency, wholeCostMicros] = [
    ...([row[9], row[10], row[11], row[12], row[13], row[14], row[15]] as const),
  ] as const
  const isAnswered = disposition === 'ANSWERED'
  return {
    isCall: changeId === 0,
    ...{ id, startedAt, tenantId, customerId, isAnswered },
    members: { caller, callee_prefix: prefix, node, carrier, denial_code: denial },
    // An empty code is none.
    isDenied: !isAnswered && denial !== '',
    isFailed: denial === '' && (disposition === 'FAILED' || disposition === 'CONGESTION'),
    ...{ billsec, pddMs, costMicros, currency, wholeCostMicros },
  }
}
