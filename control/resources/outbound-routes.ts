/** Outbound routes: which carrier takes a call to a number (SPECIFICATION.md §4.7 and §10.2). */
import { exampleTime, moment } from '../http/view-fields.ts'
import { z } from 'zod'
import type { Store } from '../../schema/storage/store.ts'
import { first } from '../../schema/sql/query.ts'
import { name, prefix, reference } from '../http/fields.ts'
import { flag } from './columns.ts'
import { badReference } from './references.ts'
import type { Definition, ViewOf, Writing } from './resource.ts'
import { refusePlatformOnly } from './tenancy.ts'
import { type BeyondScope, fieldsWhere, type WrittenRow } from '../auth/requires.ts'

const body = z.strictObject({
  name,
  tenant: reference.nullish(),
  customer: reference.nullish().describe('Absent: every customer.'),
  customer_id: reference.nullish(),
  carrier: reference.nullish().describe('Required unless mode is "block".'),
  carrier_id: reference.nullish(),
  prefix: prefix.default('').describe('Start of the called number; empty: every number.'),
  priority: z.int().min(1).max(100).default(10).describe('A lower number is preferred.'),
  weight: z.int().min(1).max(100).default(100),
  mode: z
    .enum(['static', 'lcr', 'block'])
    .default('static')
    .describe('Routes with mode "lcr" and the same prefix are tried in order of carrier price.'),
  strip: z
    .int()
    .min(0)
    .max(32)
    .default(0)
    .describe('Number of digits removed from the start of the number.'),
  prepend: z
    .string()
    .regex(/^(?:[0-9*#]{0,20}|\+[0-9*#]{0,19})$/, 'must be up to 20 digits, *, # or a leading +')
    .default('')
    .describe('Added at the start of the number, after `strip`.'),
  is_active: z.boolean().default(true),
  emergency: z.boolean().default(false).describe('Emergency calls skip the wallet and all limits.'),
})

const view = z
  .strictObject({
    id: z.int(),
    name: z.string(),
    tenant: z.string().nullable(),
    customer_id: z.int().nullable(),
    customer: z.string().nullable(),
    carrier_id: z.int().nullable(),
    carrier: z.string().nullable(),
    prefix: z.string(),
    priority: z.int(),
    weight: z.int(),
    mode: z.enum(['static', 'lcr', 'block']),
    strip: z.int(),
    prepend: z.string(),
    is_active: z.boolean(),
    emergency: z.boolean(),
    created_at: moment,
  })
  .meta({ id: 'OutboundRoute' })

export type OutboundRouteView = ViewOf<typeof view>

export const outboundRoutes: Definition<typeof body, typeof view> = {
  noun: 'Outbound route',
  table: 'outbound_route',
  path: '/outbound-routes',
  scope: 'routes',
  kind: 'outbound_route',
  body,
  view,
  columns: { is_active: flag('is_active'), emergency: flag('is_emergency') },
  references: { customer: 'customer', carrier: 'carrier' },
  search: ['outbound_route.name', 'prefix'],
  order: ['outbound_route.name'],
  limits: ['outbound_routes'],
  check,
  follow: ({ engine }, { id }) => engine.reloadRouting({ of: 'outbound_route', ids: [id] }),
  beyond: freeCalls,
  described: {
    tag: 'Routing',
    example: {
      id: 1,
      name: 'Germany',
      tenant: null,
      customer_id: null,
      customer: null,
      carrier_id: 1,
      carrier: 'transit',
      prefix: '49',
      priority: 10,
      weight: 100,
      mode: 'static',
      strip: 0,
      prepend: '',
      is_active: true,
      emergency: false,
      created_at: exampleTime,
    },
    body: { name: 'Germany', prefix: '49', carrier: 'transit' },
    patch: { priority: 5 },
  },
}

async function check(writing: Writing<typeof body, typeof view>): Promise<undefined> {
  const { body: route, before, scope, columns, deps } = writing
  refusePlatformOnly(scope, route.emergency && before?.emergency !== true, 'emergency')
  if (columns['carrier_id'] === null && route.mode !== 'block')
    throw badReference('carrier', 'is required unless mode is "block"')
  // Emergency calls use no wallet, and calls over a platform carrier are priced by the dialled
  // number: neither may be sent as another number.
  const isFree = route.emergency && before?.emergency === true
  const isLocked = isFree || (await isOfPlatform(deps.store, columns['carrier_id']))
  if (scope.tenantId !== null && isLocked)
    for (const field of ['prefix', 'strip', 'prepend'] as const)
      refusePlatformOnly(scope, route[field] !== before?.[field], field)
}

async function isOfPlatform(store: Store, carrierId: unknown): Promise<boolean> {
  if (typeof carrierId !== 'number') return false
  const carriers = store.db.selectFrom('carrier').select('tenant_id')
  return (await first(store, carriers.where('id', '=', carrierId)))?.tenant_id === null
}

/** Emergency calls use no wallet: the route's carrier and prefix are worth money. */
function freeCalls({ before, after }: WrittenRow<ViewOf<typeof view>>): readonly BeyondScope[] {
  return fieldsWhere([
    after.emergency && JSON.stringify(after) !== JSON.stringify(before),
    'emergency',
    ['wallets:write'],
  ])
}
