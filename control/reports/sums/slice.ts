/** Reads what the kept sums do not have yet, and adds it up: records, and changes of the cost of others. */
import { sql } from 'kysely'
import { all, first, rawRows } from '../../../schema/sql/query.ts'
import { memberOf } from './dimensions.ts'
import type { Place } from './places.ts'
import type { Counted } from './sum.ts'
import { Tally } from './tally.ts'

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
  /** What the sums had when it was read: it may be added to these alone. */
  readonly since: Watermark
  readonly tally: Tally
  /** Of records and changes that were read. */
  readonly count: number
  /** Ids of the records, ascending, on a server, where some may be missing. */
  readonly ids: readonly number[]
  /** Of all changes that were read. */
  readonly changeIds: readonly number[]
  /** The last record, and the last change, that the sums have with it. */
  readonly upTo: number
  readonly changesUpTo: number
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
    upTo: state.records_up_to,
    lastUuid: state.last_uuid,
    gaps,
    changesUpTo: state.changes_up_to,
    gapsAfter: state.gaps_after,
  }
}

const empty: Watermark = { upTo: 0, lastUuid: '', changesUpTo: 0, gapsAfter: 0, gaps: [] }

/** A file of sums may lie beside a database that was restored: the ids of its records are of other calls. */
async function isOfThisDatabase(store: Place['store'], id: number, uuid: string): Promise<boolean> {
  if (store.statements.isShared || id === 0) return true
  return (await uuidOf(store, id)) === uuid
}

export async function uuidOf(store: Place['store'], id: number): Promise<string | undefined> {
  const query = store.db.selectFrom('cdr').select('call_uuid').where('id', '=', id)
  return (await first(store, query))?.call_uuid
}

/** How much is read: so many records at a time, which are garbage before the next ones come, and so many times. */
export interface SliceSize {
  readonly page: number
  /** Only without gaps: those are read with each page. */
  readonly pages: number
}

/**
 * Each page is one statement, so that a record and the changes of its cost are seen as they were at one moment. Yields
 * after each.
 */
export async function* readSlice(
  place: Place,
  since: Watermark,
  { page, pages }: SliceSize,
): AsyncGenerator<void, Slice, undefined> {
  const slice = {
    since,
    tally: new Tally(),
    count: 0,
    upTo: since.upTo,
    changesUpTo: since.changesUpTo,
    ids: [] as number[],
    changeIds: [] as number[],
  }
  for (let read = 0; read < pages; read += 1) {
    const { upTo, changesUpTo } = slice
    const known = { ...since, upTo, changesUpTo }
    const rows = await readPage(place, known, page)
    const isShared = place.sums.statements.isShared
    for (const row of rows) {
      const [changeId, id] = row
      if (changeId === 0) {
        slice.tally.add(counted(row))
        if (id > slice.upTo) slice.upTo = id
        if (isShared) slice.ids.push(id)
        continue
      }
      if (changeId > slice.changesUpTo) slice.changesUpTo = changeId
      if (isShared) slice.changeIds.push(changeId)
      // A record that is not in the sums yet is read as it is then.
      if (has(known, id)) slice.tally.add(counted(row))
    }
    slice.count += rows.length
    if (rows.length === 0) break
    yield
  }
  slice.ids.sort((one, other) => one - other)
  return slice
}

/**
 * Records, and changes of the costs of others. While more changes wait than are read at a time, they come first: a record
 * that is read with all changes of its cost must not leave one of them for later, which would count twice.
 */
async function readPage(place: Place, known: Watermark, records: number): Promise<readonly Row[]> {
  const rows = await read(place, known, records)
  const changes = rows.reduce((count, [changeId]) => (changeId === 0 ? count : count + 1), 0)
  return changes < MAX_CHANGES ? rows : read(place, known, 0)
}

function read({ store }: Place, known: Watermark, records: number): Promise<readonly Row[]> {
  const whole = { cost: sql<number>`cdr.cost_micros`, currency: sql<string>`cdr.currency` }
  const changed = { cost: sql<number>`change.cost_micros`, currency: sql<string>`change.currency` }
  const { db } = store
  const next = db
    .selectFrom('cdr')
    .select([sql<number>`0`.as('change_id'), ...columns(whole)])
    .where('cdr.id', '>', known.upTo)
    .orderBy('cdr.id')
    .limit(records)
  let query = db.selectFrom(next.as('next')).selectAll()
  if (known.gaps.length > 0 && records > 0)
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
  return rawRows<Row>(store, query)
}

const columns = (of: {
  cost: ReturnType<typeof sql<number>>
  currency: ReturnType<typeof sql<string>>
}) =>
  [
    sql<number>`cdr.id`.as('id'),
    sql<number>`cdr.start_stamp`.as('start_stamp'),
    sql<number>`coalesce(cdr.tenant_id, 0)`.as('tenant_id'),
    sql<number>`coalesce(cdr.customer_id, 0)`.as('customer_id'),
    memberOf.caller.as('caller'),
    memberOf.callee_prefix.as('callee_prefix'),
    sql<string>`coalesce(cdr.rate_prefix, '')`.as('rate_prefix'),
    memberOf.node.as('node'),
    memberOf.carrier.as('carrier'),
    memberOf.denial_code.as('denial_code'),
    sql<number>`CASE cdr.disposition WHEN 'ANSWERED' THEN 2
      WHEN 'FAILED' THEN 1 WHEN 'CONGESTION' THEN 1 ELSE 0 END`.as('ending'),
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
  tenantId: number,
  customerId: number,
  caller: string,
  calleePrefix: string,
  ratePrefix: string,
  node: string,
  carrier: string,
  denialCode: string,
  /** 2: answered, 1: failed. */
  ending: number,
  billsec: number,
  pddMs: number | null,
  cost: number,
  currency: string,
  wholeCost: number,
]

/** Whether the sums have the record with this id. */
const has = ({ upTo, gaps }: Watermark, id: number): boolean =>
  id <= upTo && !gaps.some(({ firstId, lastId }) => id >= firstId && id <= lastId)

function counted(row: Row): Counted {
  const isCall = row[0] === 0
  const denialCode = row[10]
  const isAnswered = row[11] === 2
  const pddMs = row[13]
  // An empty code is none.
  const isDenied = !isAnswered && denialCode !== ''
  return {
    calls: isCall ? 1 : 0,
    id: row[1],
    startedAt: row[2],
    tenantId: row[3],
    customerId: row[4],
    caller: row[5],
    calleePrefix: row[6],
    ratePrefix: row[7],
    node: row[8],
    carrier: row[9],
    denialCode,
    answered: isCall && isAnswered ? 1 : 0,
    denied: isCall && isDenied ? 1 : 0,
    failed: isCall && row[11] === 1 && denialCode === '' ? 1 : 0,
    billsec: isCall ? row[12] : 0,
    pddMs: isCall && pddMs !== null ? pddMs : 0,
    pddCalls: isCall && pddMs !== null ? 1 : 0,
    costMicros: row[14],
    currency: row[15],
    wholeCostMicros: row[16],
  }
}
