/** Carriers: in service or not. */
import { first } from '../../schema/sql/query.ts'
import { notFound } from '../http/api-error.ts'
import { everywhere } from '../provisioning/references.ts'
import { CarrierStore } from '../sbc/carrier-store.ts'
import type { ChangeWorld, Json } from './change-world.ts'
import type { RestorableKind } from './restorable-kind.ts'

export type CarrierState = 'active' | 'inactive'

export const carrierKind: RestorableKind = {
  isRow: true,
  async read(id, { store }) {
    const query = store.db.selectFrom('carrier').select('is_active').where('id', '=', Number(id))
    const row = await first(store, query)
    return row === undefined ? null : carrierStateOf(row.is_active === 1)
  },
  restore: (id, state, world) => setCarrierState(Number(id), stateIn(state), world),
  async admit(id, _, { tenantId }, { store }) {
    if (tenantId === null) return
    const query = store.db
      .selectFrom('carrier')
      .select('id')
      .where('id', '=', Number(id))
      .where('tenant_id', '=', tenantId)
    if ((await first(store, query)) === undefined) throw notFound('Carrier')
  },
  follow: ({ engine }) => engine.reloadRouting(),
}

export const carrierStateOf = (isActive: boolean): CarrierState =>
  isActive ? 'active' : 'inactive'

/** As a PATCH does it: one that comes back may not have a gateway that another carrier has taken meanwhile. */
export async function setCarrierState(
  id: number,
  state: CarrierState,
  { store, now }: Pick<ChangeWorld, 'store' | 'now'>,
): Promise<void> {
  const carriers = new CarrierStore(store)
  const scope = { ...everywhere, now: now() }
  const document = await carriers.document(scope, id)
  if (document === undefined) throw notFound('Carrier')
  await carriers.replace(id, { ...document, is_active: state === 'active' }, scope)
}

function stateIn(state: Json | null): CarrierState {
  if (state === 'active' || state === 'inactive') return state
  throw notFound('Carrier')
}
