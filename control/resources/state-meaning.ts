/** Reads what the ids and amounts in the state of a row mean: names, and a currency. */
import { first, type Tables } from '../../schema/sql/query.ts'
import type { ChangeKind, FieldState, StateMeaning } from '../changes/kinds.ts'
import type { Referable } from '../http/fields.ts'

/** The row that is meant: its kind and its id. */
interface MeantRow {
  readonly kind: ChangeKind
  readonly id: string
}

const references: Readonly<Record<string, Referable>> = {
  customer_id: 'customer',
  rate_plan_id: 'rate_plan',
  carrier_id: 'carrier',
  set_id: 'dispatcher_set',
  inbound_set_id: 'dispatcher_set',
}

/** @param fields those that are to be told. */
export async function meaningOf(
  store: Tables,
  row: MeantRow,
  state: FieldState,
  fields: readonly string[],
): Promise<StateMeaning> {
  const names: Record<string, string> = {}
  for (const field of fields) {
    const kind = references[field]
    const id = state[field]
    // The number of a set itself refers to nothing.
    if (kind === undefined || kind === row.kind || typeof id !== 'number') continue
    const name = await nameOf(store, kind, id)
    if (name !== undefined) names[field] = name
  }
  const hasAmount = fields.some((field) => field.endsWith('_micros'))
  return { names, currency: hasAmount ? await currencyOf(store, row, state) : null }
}

async function nameOf(store: Tables, kind: Referable, id: number): Promise<string | undefined> {
  const { db } = store
  const query =
    kind === 'dispatcher_set'
      ? db.selectFrom(kind).select('endpoint_name as name').where('set_id', '=', id)
      : db.selectFrom(kind).select('name').where('id', '=', id)
  return (await first(store, query))?.name
}

/** By its own word, by its plan, or by the wallet of its customer. */
async function currencyOf(
  store: Tables,
  { kind, id }: MeantRow,
  state: FieldState,
): Promise<string | null> {
  const { currency, rate_plan_id: planId, customer_id: payerId } = state
  if (typeof currency === 'string') return currency
  const { db } = store
  if (typeof planId === 'number') {
    const plan = db.selectFrom('rate_plan').select('currency').where('id', '=', planId)
    return (await first(store, plan))?.currency ?? null
  }
  const customerId = kind === 'customer' ? Number(id) : payerId
  if (typeof customerId !== 'number') return null
  const wallet = db.selectFrom('wallet').select('currency').where('customer_id', '=', customerId)
  return (await first(store, wallet))?.currency ?? null
}
