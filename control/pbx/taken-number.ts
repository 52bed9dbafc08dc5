/** Extensions and AI agents share the numbers of their tenant: who dials one must not mean two. */
import type { Store } from '../../schema/open.ts'
import { first } from '../../schema/query.ts'
import { ApiError } from '../http/api-error.ts'

/** Throws 409 when the other kind has this number in this tenant. `tenantId` null: the platform's. */
export function refuseTakenNumber(
  store: Store,
  other: 'extension' | 'ai_agent',
  number: string,
  tenantId: number | null,
): void {
  const taken = first(
    store,
    store.db
      .selectFrom(other)
      .select('id')
      .where('extension', '=', number)
      .where('tenant_id', 'is', tenantId),
  )
  if (taken === undefined) return
  const owner = other === 'extension' ? 'an extension' : 'an AI agent'
  throw new ApiError(409, 'duplicate', 'Another one has this extension', {
    details: [{ path: 'extension', message: `is the number of ${owner} already` }],
  })
}
