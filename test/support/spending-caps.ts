/** Spend guards as they are stored. */
import type { Insertable } from 'kysely'
import type { Store } from '../../schema/storage/store.ts'
import { execute } from '../../schema/sql/query.ts'
import { start } from './books.ts'
import type { SpendingCapTable } from '../../schema/tables/money.ts'

type Row = Partial<Insertable<SpendingCapTable>>

/** Adds a guard that blocks the number 1555, unless `more` says otherwise. */
export async function addGuard(store: Store, capUuid: string, more: Row): Promise<void> {
  const row = {
    guard_uuid: capUuid,
    prefix: '1555',
    action: 'block' as const,
    reason: 'a test',
    created_by: 'user:test',
    created_at: start,
    changed_at: start,
    ...more,
  }
  await execute(store, store.db.insertInto('spend_guard').values(row))
}

export const capOf = (amountMicros: number) =>
  ({ action: 'cap', amount_micros: amountMicros, currency: 'USD', per: 'duration' }) as const

/** The money that all processes have taken of caps. */
export async function takenOf(store: Store): Promise<Readonly<Record<string, number>>> {
  const rows = await store.statements
    .prepare<{ resource: string; amount: number }>(
      "SELECT resource, amount FROM share WHERE kind = 'cap'",
    )
    .all([])
  const taken: Record<string, number> = {}
  for (const { resource, amount } of rows) {
    const [capUuid = ''] = resource.split(' ')
    taken[capUuid] = (taken[capUuid] ?? 0) + amount
  }
  return taken
}
