/** What the platform has listed as a tenant's: SIP domains and telephone numbers. */
import type { Store } from '../../schema/open.ts'
import { all, first } from '../../schema/query.ts'
import { ApiError } from '../http/api-error.ts'
import { badReference } from './references.ts'
import type { RequestScope } from './resource.ts'

/** Throws 400 when a row of `tenantId` names a domain that is none of this tenant's. Null: of the platform. */
export function refuseForeignDomain(
  store: Store,
  domain: string | null | undefined,
  tenantId: number | null,
): void {
  if (domain == null || tenantId === null) return
  const query = store.db
    .selectFrom('tenant_domain')
    .select('domain')
    .where('domain', '=', domain)
    .where('tenant_id', '=', tenantId)
  if (first(store, query) === undefined)
    throw badReference('domain', 'is not a domain of this tenant')
}

/** Whether a number lies in a block of the tenant, and in no smaller one of another tenant. */
export function ownsNumber(store: Store, tenantId: number, number: string): boolean {
  const digits = number.replace(/^\+/, '')
  const starts = Array.from({ length: Math.min(digits.length, 20) }, (_, index) =>
    digits.slice(0, index + 1),
  )
  const query = store.db
    .selectFrom('tenant_number')
    .select(['prefix', 'tenant_id'])
    .where('prefix', 'in', starts)
  const [longest] = all(store, query).toSorted((a, b) => b.prefix.length - a.prefix.length)
  return longest?.tenant_id === tenantId
}

/**
 * Calls of the platform's trunks are charged by the customers' numbers, and click-to-call shows them: a
 * tenant's credential gives out its tenant's numbers only, beside those (`before`) that are there already.
 */
export function refuseForeignNumbers(
  store: Store,
  { tenantId }: RequestScope,
  numbers: readonly string[],
  before: readonly string[],
): void {
  if (tenantId === null) return
  const foreign = numbers.findIndex(
    (number) => !before.includes(number) && !ownsNumber(store, tenantId, number),
  )
  if (foreign !== -1)
    throw badReference(`numbers.${foreign}`, 'is not a number that is listed for this tenant')
}

/** Throws 403 where a tenant's credential asks for what only the platform may give. */
export function refusePlatformOnly(
  { tenantId }: RequestScope,
  isAsked: boolean,
  path: string,
): void {
  if (tenantId === null || !isAsked) return
  throw new ApiError(403, 'platform_only', 'Only a global credential may set this', {
    details: [{ path, message: 'is set by the platform only' }],
  })
}
