/** Telephone numbers from the database. */
import type { Selectable } from 'kysely'
import { fromFlag } from '../../schema/columns.ts'
import { all, inSlices, SLICE, slicesOf } from '../../schema/sql/query.ts'
import type { Store } from '../../schema/storage/store.ts'
import type { PhoneNumberTable } from '../../schema/tables/tenants.ts'
import type { CalledNumber } from '../routing/number-decision.ts'
import type { NumberReader } from './number-directory.ts'

export const numberReader = (store: Store): NumberReader => ({
  load: (ids) => loadNumbers(store, ids),
  async idsOf(customerIds) {
    const query = store.db.selectFrom('phone_number').select('id')
    const rows = await all(store, query.where('customer_id', 'in', customerIds))
    return rows.map(({ id }) => id)
  },
})

async function* loadNumbers(
  store: Store,
  ids?: readonly number[],
): AsyncGenerator<readonly CalledNumber[]> {
  const query = store.db.selectFrom('phone_number').selectAll().orderBy('id')
  const slices =
    ids === undefined
      ? slicesOf((after) => all(store, query.where('id', '>', after).limit(SLICE)))
      : slicesBy(ids, (some) => all(store, query.where('id', 'in', some)))
  for await (const rows of slices) yield rows.map(numberOf)
}

async function* slicesBy<Row>(
  ids: readonly number[],
  read: (some: readonly number[]) => Promise<readonly Row[]>,
): AsyncGenerator<readonly Row[]> {
  for await (const some of inSlices(ids)) yield await read(some)
}

const numberOf = (row: Selectable<PhoneNumberTable>): CalledNumber => ({
  id: row.id,
  first: row.number,
  last: row.first_number === row.last_number ? row.number : spelledAs(row.number, row.last_number),
  tenantId: row.tenant_id,
  customerId: row.customer_id,
  displayName: row.display_name ?? '',
  attestation: row.attestation,
  isActive: fromFlag(row.is_active),
  target: targetOf(row),
})

/** The last number of a block has a plus where the first one has. */
const spelledAs = (first: string, last: string): string =>
  first.startsWith('+') ? `+${last}` : last

function targetOf(row: Selectable<PhoneNumberTable>): CalledNumber['target'] {
  const { target_type: kind, target, tenant_id: tenantId } = row
  if (kind === null || target === null) return null
  if (kind !== 'extension')
    return kind === 'set' ? { kind, setId: Number(target) } : { kind, agentId: Number(target) }
  const [extension = '', domain = null] = target.split('@')
  return { kind, extension, tenantId, domain }
}
