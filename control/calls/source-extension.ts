/** Finds the extension that rings first in click-to-call, and checks its caller ID. */
import type { Store } from '../../schema/open.ts'
import { all, first } from '../../schema/sql/query.ts'
import type { Principal } from '../auth/principal.ts'
import { badReference } from '../resources/references.ts'
import { ownsNumber } from '../resources/tenancy.ts'
import { notFound } from '../http/api-error.ts'

export interface SourceExtension {
  readonly tenantId: number
  readonly domain: string
  readonly extension: string
}

/** Throws 404 when the principal can use no such extension, 400 when several domains have one. */
export async function sourceExtension(
  store: Store,
  principal: Pick<Principal, 'tenantId' | 'domain'>,
  extension: string,
  domain: string | undefined,
): Promise<SourceExtension> {
  let query = store.db
    .selectFrom('extension')
    .select(['tenant_id', 'domain'])
    .where('extension', '=', extension)
    .limit(2)
  if (principal.tenantId !== null) query = query.where('tenant_id', '=', principal.tenantId)
  if (principal.domain !== null) query = query.where('domain', '=', principal.domain)
  if (domain !== undefined) query = query.where('domain', '=', domain)
  const [found, another] = await all(store, query)
  if (found === undefined) throw notFound('extension')
  if (another !== undefined)
    throw badReference('domain', 'is required: several domains have this extension')
  return { tenantId: found.tenant_id, domain: found.domain, extension }
}

/**
 * The tenant's own numbers: its numbers, those of its customers, and its extensions. A leading `+` is
 * ignored.
 */
export async function mayShow(store: Store, tenantId: number, number: string): Promise<boolean> {
  const digits = number.replace(/^\+/, '')
  const forms = [digits, `+${digits}`]
  const ofCustomers = store.db
    .selectFrom('customer_number')
    .innerJoin('customer', 'customer.id', 'customer_number.customer_id')
    .select('customer_number.number')
    .where('customer.tenant_id', '=', tenantId)
    .where('customer_number.number', 'in', forms)
  const extensions = store.db
    .selectFrom('extension')
    .select('extension')
    .where('tenant_id', '=', tenantId)
    .where('extension', '=', number)
  const isUsed =
    (await first(store, ofCustomers)) !== undefined ||
    (await first(store, extensions)) !== undefined
  return isUsed || ownsNumber(store, tenantId, number)
}
