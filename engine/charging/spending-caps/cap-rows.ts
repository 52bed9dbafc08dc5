/** Spend guards in the database, and what is taken of their caps. */
import type { Store } from '../../../schema/storage/store.ts'
import { all } from '../../../schema/sql/query.ts'
import type { SpendingCap } from '../../../schema/contracts/limits.ts'

/** Those that have not ended; an expired one is among them. */
export async function loadCaps(store: Store, at: number): Promise<readonly SpendingCap[]> {
  const rows = await all(
    store,
    store.db
      .selectFrom('spend_guard')
      .leftJoin('extension', 'extension.id', 'spend_guard.extension_id')
      .selectAll('spend_guard')
      .select(['extension.extension as number', 'extension.tenant_id as owner'])
      .where('ended_at', 'is', null)
      .where(({ or, eb }) => or([eb('expires_at', 'is', null), eb('expires_at', '>', at)]))
      .orderBy('created_at')
      .orderBy('guard_uuid'),
  )
  return rows.map((row) => ({
    capUuid: row.guard_uuid,
    ...scopeOf(row),
    prefix: row.prefix,
    action: row.action,
    amountMicros: row.amount_micros,
    currency: row.currency,
    per: row.per,
    startsAt: row.created_at,
    expiresAt: row.expires_at,
    endsCallsBefore: row.ends_calls_before,
    extension:
      row.number === null || row.owner === null
        ? null
        : { number: row.number, tenantId: row.owner },
  }))
}

interface ScopeColumns {
  readonly customer_id: number | null
  readonly extension_id: number | null
  readonly tenant_id: number | null
}

function scopeOf({ customer_id, extension_id, tenant_id }: ScopeColumns) {
  if (customer_id !== null) return { scope: 'customer', scopeId: customer_id } as const
  if (extension_id !== null) return { scope: 'extension', scopeId: extension_id } as const
  return { scope: 'tenant', scopeId: tenant_id ?? 0 } as const
}

/** Loads the amount that each process has taken of caps. */
export function loadUse(store: Store, resources: readonly string[]) {
  const columns = ['resource', 'process', 'amount'] as const
  const query = store.db.selectFrom('share').select(columns).where('kind', '=', 'cap')
  return all(store, query.where('resource', 'in', resources))
}
