/** What a summary is asked by, in a query and as arguments of a tool. */
import type { RequestScope } from '../../auth/tenants.ts'
import { z } from 'zod'
import { DAY_MS } from '../../../schema/clock.ts'
import { directions, dispositions } from '../../../schema/contracts/field-values.ts'
import type { Store } from '../../../schema/open.ts'
import { ApiError, badRequest } from '../../http/api-error.ts'
import { queryInteger } from '../../http/envelope.ts'
import { prefix, queryTime, type Reference, reference, text, time } from '../../http/fields.ts'
import { resolve, tenantOf } from '../../resources/references.ts'
import type { Reports } from '../reports.ts'
import { type CallFilters, groupings, type MemberDimension } from './call-filters.ts'
import type { Summary } from './summary.ts'
import { summaryOrders } from './summarize.ts'

const wanted = text(255).min(1)
const callFilters = {
  tenant: reference.optional().describe('Id or slug.'),
  caller: wanted.optional().describe("The caller's number."),
  callee_prefix: prefix.optional().describe('First digits of the called number.'),
  node: wanted.optional().describe('Host, `host:port` or SIP URI.'),
  carrier: wanted.optional().describe('Name.'),
  denial_code: wanted.optional(),
  direction: z.enum(directions).optional(),
  disposition: z.enum(dispositions).optional(),
}

/** Names of filters, as input of tools and in queries. */
export const callFilterInput = {
  customer: reference.optional().describe('Id or exact name.'),
  ...callFilters,
}

const MAX_GROUPS = 200
/** More days would keep the thread of reports busy for long. */
const MAX_DAYS = 100

const order = z.enum(summaryOrders).describe('`asr`: the worst first.')

export const summaryInput = z.strictObject({
  start: time.describe('RFC 3339, or a date: 00:00 UTC.'),
  end: time.describe('Exclusive.'),
  group_by: z.enum(groupings),
  ...callFilterInput,
  order_by: order.default('count'),
  limit: z.int().min(1).max(MAX_GROUPS).default(20),
})

const queryReference = wanted.transform((value): Reference =>
  /^[1-9]\d{0,14}$/.test(value) ? Number(value) : value,
)

export const summaryQuery = z.strictObject({
  start_date: queryTime,
  end_date: queryTime,
  group_by: z.enum(groupings),
  ...callFilters,
  customer: queryReference.optional().describe('Id or exact name.'),
  tenant: queryReference.optional().describe('Id or slug.'),
  order_by: order.default('count').meta({ default: 'count' }),
  limit: queryInteger(/^[1-9]\d{0,8}$/, 'Expected an integer of at least 1', 1)
    .transform((limit) => Math.min(limit, MAX_GROUPS))
    .default(20)
    .meta({ default: 20, description: `More than ${MAX_GROUPS} are never given.` }),
})

type Filters = Partial<Record<MemberDimension, string | undefined>> & {
  readonly customer?: Reference | undefined
  readonly tenant?: Reference | undefined
  readonly direction?: CallFilters['direction']
  readonly disposition?: CallFilters['disposition']
}

/** The filters, and the tenant whose calls are meant. Throws 400 for a name that the reader cannot see. */
export async function filtersOf(
  given: Filters,
  store: Store,
  scope: RequestScope,
): Promise<{ readonly tenantId: number | null; readonly filters: CallFilters }> {
  const { customer, tenant, direction, disposition } = given
  const { caller, callee_prefix, node, carrier, denial_code } = given
  const named = Object.entries({ caller, callee_prefix, node, carrier, denial_code })
  // Another OCS has the customers of its ids; the tenant limits what is seen of them.
  const customerId =
    typeof customer === 'string'
      ? await resolve(store, 'customer', customer, { tenantId: 'any', scope })
      : customer
  return {
    tenantId: await tenantOf(store, tenant, scope),
    filters: {
      ...(customerId != null && { customerId }),
      direction,
      disposition,
      members: Object.fromEntries(named.filter(([, value]) => value !== undefined && value !== '')),
    },
  }
}

interface Asked extends Filters {
  readonly from: number
  readonly before: number
  readonly group_by: (typeof groupings)[number]
  readonly order_by: (typeof summaryOrders)[number]
  readonly limit: number
}

export async function askSummary(
  asked: Asked,
  { store, reports }: { readonly store: Store; readonly reports: Pick<Reports, 'summarize'> },
  scope: RequestScope,
): Promise<Summary> {
  const { from, before, group_by: groupBy, order_by: orderBy, limit } = asked
  if (before < from) throw badRequest('The period ends before it begins')
  if (before - from > MAX_DAYS * DAY_MS)
    throw badRequest(`The period is longer than ${MAX_DAYS} days`)
  const filtered = await filtersOf(asked, store, scope)
  const found = await reports.summarize({ ...filtered, from, before, groupBy, orderBy, limit })
  return found ?? refuseForNow()
}

export function refuseForNow(): never {
  throw new ApiError(503, 'too_many_reports', 'Too many reports are in progress', {
    headers: { 'Retry-After': '10' },
  })
}
