/** Whose calls a spend guard brakes: the customer, the extension or the tenant that a body names. */
import type { RequestScope } from '../../auth/tenants.ts'
import type { Brake } from '../../../schema/contracts/spend-guards.ts'
import type { Store } from '../../../schema/open.ts'
import { all, first } from '../../../schema/sql/query.ts'
import { badRequest } from '../../http/api-error.ts'
import type { Reference } from '../../http/fields.ts'
import { badReference, chosen, resolve } from '../references.ts'
import type { GuardBody } from './guard-body.ts'

export interface GuardTarget extends Brake {
  /** As people call it. */
  readonly name: string
  readonly tenantId: number | null
}

type Named = Pick<GuardBody, 'customer' | 'extension' | 'tenant' | 'prefix'>

/** Throws 400 unless one of them is named that the caller may see. */
export async function targetOf(
  store: Store,
  { customer, extension, tenant, prefix }: Named,
  scope: RequestScope,
): Promise<GuardTarget> {
  const given = [customer, extension, tenant].filter((one) => one !== undefined)
  if (given.length !== 1)
    throw badRequest('Name whose calls are braked', [
      { path: 'customer', message: 'give exactly one of customer, extension and tenant' },
    ])
  if (customer !== undefined) return { prefix, ...(await customerOf(store, customer, scope)) }
  if (extension !== undefined) return { prefix, ...(await extensionOf(store, extension, scope)) }
  return { prefix, ...(await tenantOf(store, tenant, scope)) }
}

type Found = Omit<GuardTarget, 'prefix'>

async function customerOf(store: Store, wanted: Reference, scope: RequestScope): Promise<Found> {
  const id = await resolve(store, 'customer', wanted, { tenantId: 'any', scope })
  const query = store.db.selectFrom('customer').select(['id', 'name', 'tenant_id'])
  const row = id === null ? undefined : await first(store, query.where('id', '=', id))
  if (row === undefined) throw badReference('customer', 'does not exist')
  const { name, tenant_id: tenantId } = row
  return { scope: 'customer', scopeId: row.id, extension: null, name, tenantId }
}

async function extensionOf(store: Store, wanted: Reference, scope: RequestScope): Promise<Found> {
  const columns = ['id', 'tenant_id', 'extension', 'domain'] as const
  const extensions = store.db.selectFrom('extension').select(columns)
  const [number = '', domain] = String(wanted).split('@')
  const named = extensions.where('extension', '=', number)
  const query =
    typeof wanted === 'number'
      ? extensions.where('id', '=', wanted)
      : domain === undefined
        ? named
        : named.where('domain', '=', domain.toLowerCase())
  const asked = { path: 'extension', noun: 'extension', reference: wanted }
  const rows = (await all(store, query.limit(MAX_NAMESAKES))).filter(
    (each) => scope.tenantId === null || each.tenant_id === scope.tenantId,
  )
  if (rows.length > 1)
    throw badReference('extension', 'several domains have it: write it as in "101@acme.example"')
  const row = chosen(rows, asked, { tenantId: 'any', scope })
  return {
    scope: 'extension',
    scopeId: row.id,
    tenantId: row.tenant_id,
    extension: { number: row.extension, tenantId: row.tenant_id },
    name: `${row.extension}@${row.domain}`,
  }
}

/** Extensions of one number, in as many domains. */
const MAX_NAMESAKES = 1_000

async function tenantOf(
  store: Store,
  wanted: Reference | undefined,
  scope: RequestScope,
): Promise<Found> {
  const query = store.db.selectFrom('tenant').select(['id', 'slug'])
  const column = typeof wanted === 'number' ? 'id' : 'slug'
  const row = await first(store, query.where(column, '=', wanted ?? ''))
  const isHidden = scope.tenantId !== null && scope.tenantId !== row?.id
  if (row === undefined || isHidden)
    throw badReference('tenant', `there is no tenant ${JSON.stringify(wanted)}`)
  return { scope: 'tenant', scopeId: row.id, extension: null, name: row.slug, tenantId: row.id }
}

/** The currency of its payers. Throws 400 when they have several, or none. */
export async function currencyOf(store: Store, target: GuardTarget): Promise<string> {
  const { scope, scopeId, tenantId } = target
  const wallets = store.db
    .selectFrom('wallet')
    .innerJoin('customer', 'customer.id', 'wallet.customer_id')
    .select('wallet.currency')
    .distinct()
    .limit(2)
  const ofExtension = store.db
    .selectFrom('extension')
    .select('customer_id')
    .where('id', '=', scopeId)
  const payers =
    scope === 'customer'
      ? wallets.where('customer.id', '=', scopeId)
      : scope === 'tenant'
        ? wallets.where('customer.tenant_id', '=', scopeId)
        : wallets.where('customer.id', 'in', ofExtension)
  let [only, other] = await all(store, payers)
  // An extension without a customer may have one by its number.
  if (only === undefined && scope === 'extension')
    [only, other] = await all(store, wallets.where('customer.tenant_id', '=', tenantId))
  if (only !== undefined && other === undefined) return only.currency
  throw badRequest('The cap has no currency', [
    {
      path: 'amount',
      message:
        only === undefined
          ? `the ${scope} has no wallet yet: use action block`
          : 'its customers pay in several currencies: set one guard for each customer',
    },
  ])
}
