/** The field `numbers` of a customer: a view of its single numbers in `phone_number`. */
import type { Selectable } from 'kysely'
import { all, execute, first, type Tables } from '../../schema/sql/query.ts'

import type { PhoneNumberTable } from '../../schema/tables/tenants.ts'
import {
  type NumberRange,
  numberKey,
  rangeColumns,
  rangeOf,
} from '../../schema/rules/number-ranges.ts'
import { ApiError } from '../http/api-error.ts'

interface Owner {
  readonly customerId: number
  readonly tenantId: number | null
  readonly now: number
}

type NumberRow = Selectable<PhoneNumberTable>

/**
 * Replaces the single numbers of a customer. A number of its tenant that no customer owns becomes
 * its own; one that is left out stays as a number of its tenant where more is known of it.
 */
export async function putNumbers(
  store: Tables,
  owner: Owner,
  given: readonly string[],
): Promise<void> {
  const { customerId, tenantId, now } = owner
  const { db } = store
  const rows = await all(
    store,
    db.selectFrom('phone_number').selectAll().where('customer_id', '=', customerId),
  )
  if (rows.some((row) => row.tenant_id !== tenantId)) {
    const moved = db.updateTable('phone_number').set({ tenant_id: tenantId })
    await execute(store, moved.where('customer_id', '=', customerId))
  }
  const singles = rows.filter(isSingle)
  const wanted = new Map(given.map((number) => [numberKey(number), number]))
  for (const row of singles) if (!wanted.has(row.first_number)) await release(store, row, now)
  const own = new Map(singles.map((row) => [row.first_number, row]))
  for (const [key, number] of wanted) {
    const row = own.get(key) ?? (await overlapping(store, rangeOf(number)))
    if (row === undefined) await add(store, owner, number)
    else if (!isSingle(row) || !isFor(row, owner)) throw taken(given, key)
    else if (row.customer_id !== customerId || row.number !== number) {
      const set = { number, customer_id: customerId, updated_at: now }
      await execute(store, db.updateTable('phone_number').set(set).where('id', '=', row.id))
    }
  }
}

/** Before a customer is removed: its blocks keep it, as other references do. */
export async function releaseNumbers(
  store: Tables,
  customerId: number,
  now: number,
): Promise<void> {
  const rows = store.db.selectFrom('phone_number').selectAll()
  for (const row of await all(store, rows.where('customer_id', '=', customerId)))
    if (isSingle(row)) await release(store, row, now)
}

const isSingle = (row: NumberRow): boolean => row.first_number === row.last_number

const isFor = (row: NumberRow, { customerId, tenantId }: Owner): boolean =>
  row.customer_id === customerId || (row.customer_id === null && row.tenant_id === tenantId)

const taken = (given: readonly string[], key: string): ApiError =>
  new ApiError(409, 'duplicate', 'Another customer has this number', {
    details: [
      { path: `numbers.${given.map(numberKey).indexOf(key)}`, message: 'is already taken' },
    ],
  })

async function release(store: Tables, row: NumberRow, now: number): Promise<void> {
  const { db } = store
  const query = isPlain(row)
    ? db.deleteFrom('phone_number').where('id', '=', row.id)
    : db
        .updateTable('phone_number')
        .set({ customer_id: null, updated_at: now })
        .where('id', '=', row.id)
  await execute(store, query)
}

/** Nothing is known of it but whose it is. */
const isPlain = (row: NumberRow): boolean =>
  row.is_active === 1 &&
  row.monthly_fee_micros === 0 &&
  [row.target, row.display_name, row.emergency_address].every((value) => value === null) &&
  row.verified_since_at === null &&
  row.attestation === null

const add = async (
  store: Tables,
  { customerId, tenantId, now }: Owner,
  number: string,
): Promise<void> => {
  const row = {
    ...rangeColumns(rangeOf(number)),
    number,
    tenant_id: tenantId,
    customer_id: customerId,
    created_at: now,
    updated_at: now,
  }
  await execute(store, store.db.insertInto('phone_number').values(row))
}

/** Finds a row that has a number of this range, other than `exceptId`: no number has two rows. */
export async function overlapping(
  store: Tables,
  { first: from, last: to, digits }: NumberRange,
  exceptId = 0,
): Promise<NumberRow | undefined> {
  // Rows do not overlap each other: the last one that begins before the end decides.
  const row = await first(
    store,
    store.db
      .selectFrom('phone_number')
      .selectAll()
      .where('digits', '=', digits)
      .where('first_number', '<=', to)
      .where('id', '<>', exceptId)
      .orderBy('first_number', 'desc')
      .limit(1),
  )
  return row !== undefined && row.last_number >= from ? row : undefined
}
