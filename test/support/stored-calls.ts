/** Records of calls and their customers in any database, without an OCS. */
import type { Insertable } from 'kysely'
import { type CallCost, type CallRecord, toColumns } from '../../schema/call-record.ts'
import type { CustomerTable, RateTable } from '../../schema/database.ts'
import type { Store } from '../../schema/open.ts'
import { execute, insert } from '../../schema/sql/query.ts'
import { start } from './books.ts'

export async function storeCall(store: Store, record: CallRecord, cost: CallCost): Promise<void> {
  await execute(store, store.db.insertInto('cdr').values(toColumns(record, cost)))
}

export async function storePlan(
  store: Store,
  rates: readonly Omit<Insertable<RateTable>, 'rate_plan_id'>[],
): Promise<number> {
  const { db } = store
  const plan = db.insertInto('rate_plan').values({ name: 'default', created_at: start })
  const planId = await insert(store, plan.returning('id'))
  for (const rate of rates)
    await execute(store, db.insertInto('rate').values({ ...rate, rate_plan_id: planId }))
  return planId
}

/** With its wallet and a calling number equal to its name. */
export async function storeCustomer(
  store: Store,
  customer: Partial<Insertable<CustomerTable>> & { readonly name: string },
): Promise<number> {
  const { db } = store
  const row = { created_at: start, updated_at: start, ...customer }
  const customerId = await insert(store, db.insertInto('customer').values(row).returning('id'))
  const number = { number: customer.name, customer_id: customerId }
  await execute(store, db.insertInto('customer_number').values(number))
  const wallet = { customer_id: customerId, currency: 'USD', updated_at: start }
  await execute(store, db.insertInto('wallet').values(wallet))
  return customerId
}
