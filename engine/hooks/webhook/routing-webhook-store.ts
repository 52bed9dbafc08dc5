/** Routing webhooks from the database. One that cannot be used is left out and reported. */
import { fromFlag } from '../../../schema/columns.ts'
import { type CacheKeyPart, cacheKeyParts } from '../../../schema/contracts/routing-webhooks.ts'
import type { HookFallback } from '../../../schema/contracts/hooks.ts'
import { all } from '../../../schema/sql/query.ts'
import type { Store } from '../../../schema/storage/store.ts'

export interface RoutingWebhookRecord {
  readonly id: number
  /** Its owner; null: the platform. */
  readonly tenantId: number | null
  readonly url: string
  readonly carrierId: number | null
  /** Number of a dispatcher set. */
  readonly setId: number | null
  readonly timeoutMs: number
  readonly fallback: HookFallback
  readonly cacheSeconds: number
  readonly cacheKey: readonly CacheKeyPart[]
  readonly isEnabled: boolean
  readonly secret: string
  /** The secret before the last rotation, which also signs until then. Milliseconds UTC. */
  readonly previous: { readonly secret: string; readonly expiresAt: number } | null
}

export async function loadRoutingWebhooks(
  store: Store,
  onProblem: (problem: string) => void,
): Promise<readonly RoutingWebhookRecord[]> {
  const { db, secrets } = store
  const rows = await all(store, db.selectFrom('routing_webhook').selectAll().orderBy('id'))
  return rows.flatMap((row): RoutingWebhookRecord[] => {
    const open = (column: 'secret' | 'previous_secret', sealed: string) =>
      secrets.open({ table: 'routing_webhook', column, row: row.id }, sealed)
    const secret = open('secret', row.secret)
    if (secret === undefined) {
      onProblem(`the secret of routing webhook ${row.id} cannot be read; rotate it`)
      return []
    }
    const expiresAt = row.previous_secret_expires_at ?? 0
    const previous =
      row.previous_secret === null ? undefined : open('previous_secret', row.previous_secret)
    return [
      {
        id: row.id,
        tenantId: row.tenant_id,
        url: row.url,
        carrierId: row.carrier_id,
        setId: row.set_id,
        timeoutMs: row.timeout_ms,
        fallback: row.fallback,
        cacheSeconds: row.cache_seconds,
        cacheKey: partsIn(row.cache_key),
        isEnabled: fromFlag(row.is_enabled),
        secret,
        previous: previous === undefined ? null : { secret: previous, expiresAt },
      },
    ]
  })
}

/** The API has checked the list. */
function partsIn(text: string): readonly CacheKeyPart[] {
  const list: unknown = JSON.parse(text)
  return Array.isArray(list) ? cacheKeyParts.filter((part) => list.includes(part)) : []
}
