/** The numbers of extensions and AI agents. */
import { z } from 'zod'
import type { Store } from '../../schema/open.ts'
import { ApiError } from '../http/api-error.ts'
import { rowWith } from './table-rows.ts'

export const extensionNumber = z
  .string()
  .regex(/^(?:[0-9*#]{2,20}|\+[0-9*#]{1,19})$/, 'must be 2 to 20 digits, *, # or a leading +')

/**
 * Extensions and AI agents share the numbers of their tenant, so that a number has one destination. Throws 409
 * when the other kind has this number in this tenant. `tenantId` null for the platform.
 */
export async function refuseTakenNumber(
  store: Store,
  other: 'extension' | 'ai_agent',
  number: string,
  tenantId: number | null,
): Promise<void> {
  if ((await rowWith(store, other, { extension: number, tenant_id: tenantId })) === undefined)
    return
  const owner = other === 'extension' ? 'an extension' : 'an AI agent'
  throw new ApiError(409, 'duplicate', 'Another resource has this extension', {
    details: [{ path: 'extension', message: `is already the number of ${owner}` }],
  })
}
