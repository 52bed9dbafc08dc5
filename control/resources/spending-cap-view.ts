/** A spend guard as the API shows it. */
import { z } from 'zod'
import { DAY_MS } from '../../schema/clock.ts'
import { moneyToDecimal } from '../../schema/columns.ts'
import {
  capResource,
  type Brake,
  capActions,
  capPeriods,
  capScopes,
} from '../../schema/contracts/limits.ts'
import type { Store } from '../../schema/storage/store.ts'
import type { ExitCodes } from '../../schema/contracts/charging.ts'
import { normalPrefix, readPrefix } from '../../schema/rules/numbers.ts'
import { all, first, readApart } from '../../schema/sql/query.ts'
import type { RequestScope } from '../auth/tenants.ts'
import { badRequest } from '../http/api-error.ts'
import { time } from '../http/field-columns.ts'
import * as field from '../http/field-table.ts'
import { money, reference, type Reference } from '../http/fields.ts'
import { type SpendingCapRow, SpendingCapStore } from './spending-cap-store.ts'
import { badReference, chosen, resolve } from './references.ts'
import { exampleTime } from '../http/view-fields.ts'

const noPrefix = 'must be the first digits of called numbers, such as "1900", or "" for all numbers'
const prefix = z
  .string()
  .max(40)
  .superRefine((text, context) => {
    const read = readPrefix(text)
    const message = read.kind === 'problem' ? read.message : noPrefix
    if (normalPrefix(text) === undefined) context.addIssue({ code: 'custom', message })
  })

/**
 * The body, the view and the example of spend guards follow from this table. A guard has a uuid and
 * is set by a plan, which can be previewed, so guards are no `Definition`.
 */
export const spendingCapFields = field.table({
  guard_id: field.shown(z.string(), {
    column: 'guard_uuid',
    example: '6f9619ff-8b86-4d01-b42d-00cf4fc964ff',
  }),
  scope: field.shown(z.enum(capScopes), { example: 'customer' }),
  scope_id: field.shown(z.int(), { example: 7 }),
  name: field.shown(z.string().nullable(), { example: 'acme' }),
  customer: field.written(reference.optional(), { about: 'Id or name: all calls that it pays.' }),
  extension: field.written(reference.optional(), { about: 'Id, or as in "101@acme.example".' }),
  tenant: field.written(reference.optional(), {
    about: 'Id or slug: all calls of its customers and phones.',
  }),
  prefix: field.required(field.asText(prefix), {
    about:
      'First digits of called numbers, with spaces or without; "" for all. Leading 0, 00, + ' +
      'and exit codes are the same.',
    example: '1900',
  }),
  action: field.required(field.oneOf(capActions), {
    about: 'block: no call. cap: calls may cost amount in all.',
    example: 'cap',
  }),
  amount: field.written(money().optional(), {
    about: 'Of a cap, in the currency of the payer.',
  }),
  amount_exact: field.shown(z.string().nullable(), { example: '5.00' }),
  currency: field.shown(z.string().nullable(), { example: 'USD' }),
  per: field.required(
    { body: z.enum(capPeriods).optional(), view: z.enum(capPeriods).nullable() },
    { about: 'Of a cap: the whole time (default), or each UTC day.', example: 'duration' },
  ),
  used_exact: field.shown(z.string().nullable(), {
    about: 'Of a cap: spent, or granted to live calls.',
    example: '1.20',
  }),
  left_exact: field.shown(z.string().nullable(), { example: '3.80' }),
  state: field.shown(z.enum(['active', 'expired', 'removed']), { example: 'active' }),
  set_by: field.shown(z.enum(['platform', 'tenant']), {
    about: 'A tenant cannot change those of the platform.',
    example: 'platform',
  }),
  reason: field.shown(z.string(), { example: 'many calls to premium numbers' }),
  created_by: field.shown(z.string(), { example: 'user:admin' }),
  created_at: field.shown(z.string(), { stored: time, example: exampleTime }),
  expires_at: field.shown(z.string().nullable(), {
    stored: time,
    example: '2026-01-01T08:00:00.000Z',
  }),
  ends_calls_before: field.shown(z.string().nullable(), { stored: time, example: null }),
  removed_at: field.shown(z.string().nullable(), {
    column: 'ended_at',
    stored: time,
    example: null,
  }),
  end_live_calls: field.written(z.boolean().default(false), {
    about: 'True: ends answered calls within 5 s.',
  }),
})

/** One of `customer`, `extension` and `tenant` is given. */
export const { body: spendingCapBody, view: spendingCapView } = spendingCapFields
export type SpendingCapBody = z.output<typeof spendingCapBody>
export type SpendingCapView = z.output<typeof spendingCapView>

/**
 * Returns a prefix in the form that is stored. Throws 400 for a prefix that is only an exit code.
 */
export function storedPrefix(given: string, exitCodes: ExitCodes | undefined): string {
  const stored = normalPrefix(given, exitCodes)
  if (stored !== undefined) return stored
  throw badRequest('The prefix has no digit of a number', [{ path: 'prefix', message: noPrefix }])
}

/** The columns of a row that a view needs. */
export type ShownSpendingCap = Omit<SpendingCapRow, 'changed_at' | 'ended_by'>

/** Shows guards with the used amount of each cap in the period of `at`. */
export async function viewsOf(
  guards: SpendingCapStore,
  rows: readonly ShownSpendingCap[],
  at: number,
): Promise<readonly SpendingCapView[]> {
  const resourceOf = (row: ShownSpendingCap): string =>
    capResource(row.guard_uuid, periodOf(row, at))
  const used = await guards.used(rows.filter(({ action }) => action === 'cap').map(resourceOf))
  return rows.map((row) => viewOf(row, used.get(resourceOf(row)) ?? 0, at))
}

const periodOf = (
  { per, created_at }: Pick<SpendingCapRow, 'per' | 'created_at'>,
  at: number,
): number => (per === 'day' ? Math.max(created_at, at - (at % DAY_MS)) : created_at)

function viewOf(row: ShownSpendingCap, usedMicros: number, at: number): SpendingCapView {
  const isCap = row.action === 'cap'
  return field.shownOf(spendingCapFields, row, {
    ...scopeOf(row),
    amount_exact: isCap ? moneyToDecimal(row.amount_micros) : null,
    used_exact: isCap ? moneyToDecimal(usedMicros) : null,
    left_exact: isCap ? moneyToDecimal(Math.max(0, row.amount_micros - usedMicros)) : null,
    state: stateAt(row, at),
    set_by: row.set_by_tenant_id === null ? 'platform' : 'tenant',
  })
}

function stateAt(
  { ended_at, expires_at }: Pick<SpendingCapRow, 'ended_at' | 'expires_at'>,
  at: number,
): SpendingCapView['state'] {
  if (ended_at !== null) return 'removed'
  return expires_at !== null && expires_at <= at ? 'expired' : 'active'
}

type NamedRow = Pick<
  SpendingCapRow,
  'customer_id' | 'extension_id' | 'tenant_id' | 'customer' | 'number' | 'domain' | 'tenant'
>

export function scopeOf(row: NamedRow): Pick<SpendingCapView, 'scope' | 'scope_id' | 'name'> {
  const { customer_id, extension_id, tenant_id, number, domain } = row
  if (customer_id !== null) return { scope: 'customer', scope_id: customer_id, name: row.customer }
  if (extension_id !== null)
    return { scope: 'extension', scope_id: extension_id, name: `${number ?? ''}@${domain ?? ''}` }
  return { scope: 'tenant', scope_id: tenant_id ?? 0, name: row.tenant }
}

/** The customer, extension or tenant whose calls a guard limits. */
export interface CapTarget extends Brake {
  /** The name that people use. */
  readonly name: string
  readonly tenantId: number | null
}

type SubjectReference = Pick<SpendingCapBody, 'customer' | 'extension' | 'tenant' | 'prefix'>

/** Throws 400 unless one of them is named that the caller may see. */
export async function targetOf(
  store: Store,
  { customer, extension, tenant, prefix }: SubjectReference,
  scope: RequestScope,
): Promise<CapTarget> {
  const given = [customer, extension, tenant].filter((one) => one !== undefined)
  if (given.length !== 1)
    throw badRequest('Name the customer, extension or tenant of the spend guard', [
      { path: 'customer', message: 'give exactly one of customer, extension and tenant' },
    ])
  if (customer !== undefined) return { prefix, ...(await customerOf(store, customer, scope)) }
  if (extension !== undefined) return { prefix, ...(await extensionOf(store, extension, scope)) }
  return { prefix, ...(await tenantOf(store, tenant, scope)) }
}

type CapSubject = Omit<CapTarget, 'prefix'>

async function customerOf(
  store: Store,
  wanted: Reference,
  scope: RequestScope,
): Promise<CapSubject> {
  const id = await resolve(store, 'customer', wanted, { tenantId: 'any', scope })
  const query = store.db.selectFrom('customer').select(['id', 'name', 'tenant_id'])
  const row = id === null ? undefined : await first(store, query.where('id', '=', id))
  if (row === undefined) throw badReference('customer', 'does not exist')
  const { name, tenant_id: tenantId } = row
  return { scope: 'customer', scopeId: row.id, extension: null, name, tenantId }
}

async function extensionOf(
  store: Store,
  wanted: Reference,
  scope: RequestScope,
): Promise<CapSubject> {
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
  const subject = { path: 'extension', noun: 'extension', reference: wanted }
  const rows = (await all(store, query.limit(MAX_NAMESAKES))).filter(
    (each) => scope.tenantId === null || each.tenant_id === scope.tenantId,
  )
  if (rows.length > 1)
    throw badReference('extension', 'several domains have it: write it as in "101@acme.example"')
  const row = chosen(rows, subject, { tenantId: 'any', scope })
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
): Promise<CapSubject> {
  const query = store.db.selectFrom('tenant').select(['id', 'slug'])
  const column = typeof wanted === 'number' ? 'id' : 'slug'
  const row = await first(store, query.where(column, '=', wanted ?? ''))
  const isHidden = scope.tenantId !== null && scope.tenantId !== row?.id
  if (row === undefined || isHidden)
    throw badReference('tenant', `there is no tenant ${JSON.stringify(wanted)}`)
  return { scope: 'tenant', scopeId: row.id, extension: null, name: row.slug, tenantId: row.id }
}

/** The currency of its payers. Throws 400 when they have several, or none. */
export async function currencyOf(store: Store, target: CapTarget): Promise<string> {
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

/** None of `customer`, `extension` and `tenant`: all. */
export const capQuestion = spendingCapBody.pick({ customer: true, extension: true, tenant: true })

interface Page {
  readonly limit: number
  readonly offset: number
  /** The list also has guards that expired or were removed in the last 30 days. */
  readonly isWithEnded: boolean
}

interface CapPage {
  readonly guards: readonly SpendingCapView[]
  readonly total: number
}

export const listSpendingCaps = (
  store: Store,
  subject: z.output<typeof capQuestion>,
  slice: Page,
  scope: RequestScope,
): Promise<CapPage> => readApart(store, scope.tenantId, () => read(store, subject, slice, scope))

async function read(
  store: Store,
  subject: z.output<typeof capQuestion>,
  { isWithEnded, ...slice }: Page,
  scope: RequestScope,
): Promise<CapPage> {
  const guards = new SpendingCapStore(store)
  const isOfOne = Object.values(subject).some((named) => named !== undefined)
  const target = isOfOne ? await targetOf(store, { ...subject, prefix: '' }, scope) : undefined
  const filter = {
    ...slice,
    scope: target?.scope,
    scopeId: target?.scopeId,
    isActive: !isWithEnded,
  }
  const { rows, total } = await guards.list(scope.tenantId, filter, scope.now)
  return { guards: await viewsOf(guards, rows, scope.now), total }
}
