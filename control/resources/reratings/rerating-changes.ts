/**
 * Gives records another price, with what their sums need to follow, and keeps what each was before,
 * so that it can be undone: as compressed lists.
 */
import { deflateRawSync, inflateRawSync } from 'node:zlib'
import { type Tables, all, execute, first } from '../../../schema/sql/query.ts'
import type { JsonRow } from '../../../schema/sql/statements.ts'
import type { ReratingKind } from '../../../schema/tables/reratings.ts'
import { same } from '../../http/rows.ts'

/** One side of a call's price: what it was sold, or bought for. */
export interface CallPrice {
  readonly micros: number
  readonly prefix: string | null
  readonly currency: string | null
}

export interface ChangedCall {
  readonly id: number
  /** 0: nobody pays. */
  readonly customerId: number
  readonly before: CallPrice
  readonly after: CallPrice
}

/** A record in the open transaction, which nothing else changes. */
export interface LockedRecord {
  readonly id: number
  readonly customer_id: number | null
  readonly denial_code: string | null
  readonly rate_prefix: string | null
  readonly cost_micros: number
  readonly currency: string | null
  readonly carrier_prefix: string | null
  readonly carrier_cost_micros: number | null
  readonly carrier_currency: string | null
  readonly carrier_tenant_id: number | null
}

export function priceIn(record: LockedRecord, kind: ReratingKind): CallPrice {
  const { rate_prefix: prefix, cost_micros: micros, currency } = record
  if (kind === 'sold') return { micros, prefix, currency }
  const { carrier_prefix, carrier_cost_micros, carrier_currency } = record
  return { micros: carrier_cost_micros ?? 0, prefix: carrier_prefix, currency: carrier_currency }
}

const lockedColumns = [
  'id',
  'customer_id',
  'denial_code',
  'rate_prefix',
  'cost_micros',
  'currency',
  'carrier_prefix',
  'carrier_cost_micros',
  'carrier_currency',
  'carrier_tenant_id',
]

const soldColumns = ['id', 'cost_micros', 'rate_prefix', 'currency']
const boughtColumns = ['id', 'carrier_cost_micros', 'carrier_prefix', 'carrier_currency']

const changeColumns = [
  'cdr_id',
  'cost_micros',
  'currency',
  'records',
  'rate_prefix',
  'carrier_cost_micros',
  'carrier_currency',
  'carrier_tenant_id',
]

export function recordStatements({ statements }: Pick<Tables, 'statements'>) {
  const update = (columns: readonly string[]) =>
    statements.prepareRows({
      table: 'cdr',
      columns,
      sql: `UPDATE cdr SET ${columns
        .slice(1)
        .map((column) => `${column} = given.${column}`)
        .join(', ')} FROM given WHERE cdr.id = given.id`,
    })
  return {
    lock: statements.prepareRows<LockedRecord>({
      table: 'cdr',
      columns: ['id'],
      sql: `SELECT ${lockedColumns.join()} FROM cdr WHERE id IN (SELECT id FROM given) ORDER BY id`,
      locks: true,
    }),
    update: { sold: update(soldColumns), bought: update(boughtColumns) },
    note: statements.prepareRows({
      table: 'cdr_cost_change',
      columns: changeColumns,
      sql: `INSERT INTO cdr_cost_change (${changeColumns.join()})
        SELECT ${changeColumns.join()} FROM given WHERE true`,
    }),
  }
}

export type RecordStatements = ReturnType<typeof recordStatements>

export interface NewPriceOfRecord {
  readonly record: LockedRecord
  readonly price: CallPrice
}

/** In the open transaction, which has locked the records. */
export async function setPrices(
  { update, note }: RecordStatements,
  kind: ReratingKind,
  prices: readonly NewPriceOfRecord[],
): Promise<void> {
  const changed = prices.map(({ record, price: { micros, prefix, currency } }) =>
    kind === 'sold'
      ? { ...record, cost_micros: micros, rate_prefix: prefix, currency }
      : {
          ...record,
          carrier_cost_micros: micros,
          carrier_prefix: prefix,
          carrier_currency: currency,
        },
  )
  await update[kind](changed)
  await note(prices.flatMap(({ record }, index) => [noteOf(record, -1), noteOf(changed[index], 1)]))
}

function noteOf(record: LockedRecord | undefined, records: -1 | 1): JsonRow {
  if (record === undefined) throw new Error('a record has no other price')
  const { carrier_cost_micros: bought } = record
  return {
    cdr_id: record.id,
    cost_micros: records * record.cost_micros,
    currency: record.currency,
    records,
    rate_prefix: record.rate_prefix,
    carrier_cost_micros: bought === null ? null : records * bought,
    carrier_currency: record.carrier_currency,
    carrier_tenant_id: record.carrier_tenant_id,
  }
}

type PriceList = readonly [micros: number, prefix: string | null, currency: string | null]
type CallList = readonly [id: number, customerId: number, before: PriceList, after: PriceList]

const listOf = ({ micros, prefix, currency }: CallPrice): PriceList => [micros, prefix, currency]
const priceOf = ([micros, prefix, currency]: PriceList): CallPrice => ({ micros, prefix, currency })

export async function keepPart(
  store: Tables,
  { ratingId, part }: { readonly ratingId: number; readonly part: number },
  changed: readonly ChangedCall[],
): Promise<void> {
  const lists = changed.map(({ id, customerId, before, after }): CallList => [
    id,
    customerId,
    listOf(before),
    listOf(after),
  ])
  const changes = deflateRawSync(JSON.stringify(lists), { level: 1 })
  const query = store.db.insertInto('rerating_part')
  await execute(store, query.values({ rerating_id: ratingId, part, changes }))
}

/** A part has a few hundred calls. */
const MAX_PART_BYTES = 4_194_304

/** Undefined: it is no longer kept. */
export async function partOf(
  store: Tables,
  ratingId: number,
  part: number,
): Promise<readonly ChangedCall[] | undefined> {
  const query = store.db
    .selectFrom('rerating_part')
    .select('changes')
    .where('rerating_id', '=', ratingId)
    .where('part', '=', part)
  const row = await first(store, query)
  if (row === undefined) return undefined
  const text = inflateRawSync(row.changes, { maxOutputLength: MAX_PART_BYTES }).toString()
  return (JSON.parse(text) as readonly CallList[]).map(([id, customerId, before, after]) => ({
    id,
    customerId,
    before: priceOf(before),
    after: priceOf(after),
  }))
}

/** Jobs of an owner whose changes are kept: older ones cannot be undone. */
const MAX_KEPT = 20

export async function forgetOldParts(store: Tables, tenantId: number | null): Promise<void> {
  const kept = store.db
    .selectFrom('rerating')
    .select('id')
    .where('tenant_id', same(tenantId), tenantId)
    .orderBy('id', 'desc')
    .limit(MAX_KEPT)
  const ids = (await all(store, kept)).map(({ id }) => id)
  const oldest = ids.at(-1)
  if (oldest === undefined || ids.length < MAX_KEPT) return
  const old = store.db
    .selectFrom('rerating')
    .select('id')
    .where('tenant_id', same(tenantId), tenantId)
    .where('id', '<', oldest)
  await execute(store, store.db.deleteFrom('rerating_part').where('rerating_id', 'in', old))
}
