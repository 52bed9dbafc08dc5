/** Outbound routes: which carrier takes a call to a number (SPECIFICATION.md §4.7 and §10.2). */
import { z } from 'zod'
import type { Store } from '../../schema/storage/store.ts'
import { first } from '../../schema/sql/query.ts'
import { prefix } from '../http/fields.ts'
import type { Row } from '../http/field-columns.ts'
import * as field from '../http/field-table.ts'
import { changesProtection, lossFields, lossWriter } from './loss-fields.ts'
import { badReference } from './references.ts'
import type { Definition, ViewOf, Writing } from './resource.ts'
import { refusePlatformOnly } from './tenancy.ts'
import { type BeyondScope, fieldsWhere, type WrittenRow } from '../auth/requires.ts'

const prepended = z
  .string()
  .regex(/^(?:[0-9*#]{0,20}|\+[0-9*#]{0,19})$/, 'must be up to 20 digits, *, # or a leading +')

const fields = field.table(
  {
    id: field.id,
    name: field.required(field.name, { example: 'Germany' }),
    tenant: field.tenant(),
    customer: field.refersTo('customer', { about: 'Absent: every customer.' }),
    customer_id: field.idOf(),
    carrier: field.refersTo('carrier', {
      about: 'Required unless mode is "block".',
      example: 'transit',
    }),
    carrier_id: field.idOf({ example: 1 }),
    prefix: field.of(field.asText(prefix), {
      default: '',
      about: 'Start of the called number; empty: every number.',
      example: '49',
    }),
    priority: field.of(field.integer(1, 100), {
      default: 10,
      about: 'A lower number is preferred.',
    }),
    weight: field.of(field.integer(1, 100), { default: 100 }),
    mode: field.of(field.oneOf(['static', 'lcr', 'block']), {
      default: 'static',
      about: 'Routes with mode "lcr" and the same prefix are tried in order of the expected cost.',
    }),
    strip: field.of(field.integer(0, 32), {
      default: 0,
      about: 'Number of digits removed from the start of the number.',
    }),
    prepend: field.of(field.asText(prepended), {
      default: '',
      about: 'Added at the start of the number, after `strip`.',
    }),
    is_active: field.of(field.yesOrNo, { default: true }),
    emergency: field.of(field.yesOrNo, {
      column: 'is_emergency',
      default: false,
      about: 'Emergency calls skip the wallet and all limits.',
    }),
    ...lossFields('Goes before customer and plan. Emergency calls are never refused.'),
    created_at: field.createdAt,
  },
  { schemaId: 'OutboundRoute' },
)

export type OutboundRouteView = ViewOf<typeof fields.view>

export const outboundRoutes: Definition<typeof fields.body, typeof fields.view> = {
  noun: 'Outbound route',
  table: 'outbound_route',
  path: '/outbound-routes',
  scope: 'routes',
  fields,
  search: ['outbound_route.name', 'prefix'],
  order: ['outbound_route.name'],
  limits: ['outbound_routes'],
  check,
  follow: ({ engine }, { id }) => engine.reloadRouting({ of: 'outbound_route', ids: [id] }),
  beyond: freeCalls,
  described: {
    tag: 'Routing',
    body: { name: 'Germany', prefix: '49', carrier: 'transit' },
    patch: { priority: 5 },
  },
}

async function check(writing: Writing<typeof fields.body, typeof fields.view>): Promise<Row> {
  const { body: route, before, scope, columns, deps } = writing
  const losses = await lossWriter('outbound_route', writing)
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
  return losses
}

async function isOfPlatform(store: Store, carrierId: unknown): Promise<boolean> {
  if (typeof carrierId !== 'number') return false
  const carriers = store.db.selectFrom('carrier').select('tenant_id')
  return (await first(store, carriers.where('id', '=', carrierId)))?.tenant_id === null
}

/** Emergency calls use no wallet: the route's carrier and prefix are worth money. */
function freeCalls({
  before,
  after,
}: WrittenRow<ViewOf<typeof fields.view>>): readonly BeyondScope[] {
  return fieldsWhere(
    [
      after.emergency && JSON.stringify(after) !== JSON.stringify(before),
      'emergency',
      ['wallets:write'],
    ],
    [changesProtection(after, before), 'loss_protection', ['wallets:write', 'rates:write']],
  )
}
