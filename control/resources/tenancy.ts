/** Resources that the platform assigns to tenants: SIP domains and telephone numbers. */
import type { RequestScope } from '../auth/tenants.ts'
import { all, first, type Tables } from '../../schema/sql/query.ts'
import type { NumberRange } from '../../schema/rules/number-ranges.ts'
import { sql } from 'kysely'
import { ApiError } from '../http/api-error.ts'
import { badReference } from './references.ts'

/** Throws 400 when a row of `tenantId` names a domain of another tenant. Null for the platform. */
export async function refuseForeignDomain(
  store: Tables,
  domain: string | null | undefined,
  tenantId: number | null,
): Promise<void> {
  if (domain == null || tenantId === null) return
  const query = store.db
    .selectFrom('tenant_domain')
    .select('domain')
    .where('domain', '=', domain)
    .where('tenant_id', '=', tenantId)
  if ((await first(store, query)) === undefined)
    throw badReference('domain', 'is not a domain of this tenant')
}

/**
 * Whether a number is in a number block of the tenant, and in no smaller block of another tenant.
 */
export async function ownsNumber(
  store: Tables,
  tenantId: number,
  number: string,
): Promise<boolean> {
  const digits = number.replace(/^\+/, '')
  const starts = Array.from({ length: Math.min(digits.length, 20) }, (_, index) =>
    digits.slice(0, index + 1),
  )
  const query = store.db
    .selectFrom('tenant_number')
    .select(['prefix', 'tenant_id'])
    .where('prefix', 'in', starts)
  const [longest] = (await all(store, query)).toSorted((a, b) => b.prefix.length - a.prefix.length)
  return longest?.tenant_id === tenantId
}

/**
 * Whether all numbers of a range are in one number block of the tenant, and none in a smaller block
 * of another tenant.
 */
export async function ownsRange(
  store: Tables,
  tenantId: number,
  { first: from, last: to }: NumberRange,
): Promise<boolean> {
  if (!(await ownsNumber(store, tenantId, from))) return false
  if (from === to) return true
  const starts = [from, to].flatMap((number) =>
    Array.from(number, (_, index) => number.slice(0, index + 1)),
  )
  const rows = await all(
    store,
    store.db
      .selectFrom('tenant_number')
      .select(['prefix', 'tenant_id'])
      .where(({ or, and, eb }) =>
        or([
          eb('prefix', 'in', starts),
          and([eb('prefix', '>=', from), eb('prefix', '<=', to), eb('tenant_id', '<>', tenantId)]),
        ]),
      )
      .orderBy(sql`CASE WHEN tenant_id = ${tenantId} THEN 0 ELSE 1 END`)
      .limit(MAX_BLOCKS),
  )
  const own = rows.find(
    ({ prefix, tenant_id }) =>
      tenant_id === tenantId && from.startsWith(prefix) && to.startsWith(prefix),
  )
  if (own === undefined) return false
  return !rows.some(
    ({ prefix, tenant_id }) => tenant_id !== tenantId && prefix.length > own.prefix.length,
  )
}

/** The tenant's, which begin a number, and some of others: one is enough. */
const MAX_BLOCKS = 40

/**
 * Customers' numbers decide who pays for calls of platform trunks, and click-to-call shows them: a
 * tenant credential can assign only its tenant's numbers, and those already assigned (`before`).
 */
export async function refuseForeignNumbers(
  store: Tables,
  { tenantId }: RequestScope,
  numbers: readonly string[],
  before: readonly string[],
): Promise<void> {
  if (tenantId === null) return
  for (const [index, number] of numbers.entries())
    if (!before.includes(number) && !(await ownsNumber(store, tenantId, number)))
      throw badReference(`numbers.${index}`, 'is not a number of this tenant')
}

/** Throws 403 when a tenant credential sets a field reserved for the platform. */
export function refusePlatformOnly(
  { tenantId }: RequestScope,
  isAsked: boolean,
  path: string,
): void {
  if (tenantId === null || !isAsked) return
  throw new ApiError(403, 'platform_only', 'Only a global credential may set this', {
    details: [{ path, message: 'can only be set by the platform' }],
  })
}
