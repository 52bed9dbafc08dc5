/** Extensions and AI agents share the numbers of their tenant, so that a number has one destination. */
import type { Store } from '../../../schema/open.ts'
import { first } from '../../../schema/sql/query.ts'
import { ApiError } from '../../http/api-error.ts'
import { same } from '../../http/rows.ts'

/** Throws 409 when the other kind has this number in this tenant. `tenantId` null for the platform. */
export async function refuseTakenNumber(
  store: Store,
  other: 'extension' | 'ai_agent',
  number: string,
  tenantId: number | null,
): Promise<void> {
  const taken = await first(
    store,
    store.db
      .selectFrom(other)
      .select('id')
      .where('extension', '=', number)
      .where('tenant_id', same(tenantId), tenantId),
  )
  if (taken === undefined) return
  const owner = other === 'extension' ? 'an extension' : 'an AI agent'
  throw new ApiError(409, 'duplicate', 'Another resource has this extension', {
    details: [{ path: 'extension', message: `is already the number of ${owner}` }],
  })
}
