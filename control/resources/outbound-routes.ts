/** Outbound routes: which carrier takes a call to a number (SPECIFICATION.md §4.7 and §10.2). */
import { z } from 'zod'
import { timeToText } from '../../schema/columns.ts'
import { distributions } from '../../schema/contracts/field-values.ts'
import type { EnginePort } from '../../schema/contracts/engine.ts'
import type { Store } from '../../schema/storage/store.ts'
import { first } from '../../schema/sql/query.ts'
import { prefix } from '../http/fields.ts'
import * as field from '../http/field-table.ts'
import { changesProtection, lossFields, lossWriter } from './loss-fields.ts'
import { shownFigures } from '../http/quality-figures.ts'
import { json, type Row } from '../http/field-columns.ts'
import { count, exampleTime, moment, timeOrNull } from '../http/view-fields.ts'
import { badReference } from './references.ts'
import type { Definition, ViewOf, Writing } from './resource.ts'
import { refusePlatformOnly } from './tenancy.ts'
import { type BeyondScope, fieldsWhere, type WrittenRow } from '../auth/requires.ts'

const prepended = z
  .string()
  .regex(/^(?:[0-9*#]{0,20}|\+[0-9*#]{0,19})$/, 'must be up to 20 digits, *, # or a leading +')

const qualityBody = z.strictObject({
  min_asr: z
    .int()
    .min(1)
    .max(100)
    .nullable()
    .default(null)
    .describe('Least answer seizure ratio in per cent: answered attempts of all (E.425).'),
  min_acd: z
    .int()
    .min(1)
    .max(3_600)
    .nullable()
    .default(null)
    .describe('Least mean length of answered calls, in seconds.'),
  max_pdd_ms: z
    .int()
    .min(100)
    .max(60_000)
    .nullable()
    .default(null)
    .describe('Longest mean time from the INVITE to the first ringing or answer.'),
  window: z
    .int()
    .min(60)
    .max(86_400)
    .default(900)
    .describe('Seconds of the past that are measured, and of the rest of a low route.'),
  min_calls: z.int().min(5).max(10_000).default(20).describe('No figure of fewer calls is judged.'),
})

const floorOrNull = z.int().nullable()

const qualityView = z.strictObject({
  min_asr: floorOrNull,
  min_acd: floorOrNull,
  max_pdd_ms: floorOrNull,
  window: z.int(),
  min_calls: z.int(),
})

const fields = field.table({
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
  distribution: field.of(field.oneOf(distributions), {
    default: 'weight',
    about:
      'How routes of the same prefix, owner and priority share calls. `weight`: drawn. ' +
      '`round_robin`: in turn. `percent`: exactly as their weights say. One that says ' +
      '`percent`, or else `round_robin`, says it for all of them.',
  }),
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
  quality: field.optional(
    { body: qualityBody, view: qualityView, stored: json },
    {
      about:
        'A carrier whose calls are below one of these is tried after all other routes, until ' +
        'it is better. Without effect on emergency calls.',
      example: { min_asr: 40, min_acd: null, max_pdd_ms: 4_000, window: 900, min_calls: 20 },
    },
  ),
  ...lossFields('Goes before customer and plan. Emergency calls are never refused.'),
  created_at: field.createdAt,
})

const figuresView = z.strictObject({
  attempts: count,
  answered: count,
  ended: count.describe('Answered calls that are over.'),
  asr: z.number().nullable().describe('Per cent. Null: there was no call, as for the next.'),
  acd: z.number().nullable().describe('Seconds.'),
  pdd_ms: z.number().nullable(),
})

/** A route with what its carrier's calls have shown. */
const liveView = fields.view
  .extend({
    quality_status: z
      .strictObject({
        state: z
          .enum(['good', 'low', 'trial'])
          .describe(
            '`low`: tried after all other routes. `trial`: in its place again, until new calls ' +
              'have shown how it is.',
          ),
        since: moment,
        until: moment.nullable().describe('When a low route is tried in its place again.'),
        figures: figuresView.describe('Of the window, and since the state has changed.'),
        fallen: z
          .strictObject({
            figures: figuresView,
            below: z.array(z.enum(['asr', 'acd', 'pdd'])),
          })
          .nullable()
          .describe('What has made it low. Null: it is good.'),
      })
      .nullable()
      .describe('As this instance has measured it. Null: the route has no floors.'),
  })
  .meta({ id: 'OutboundRoute' })

type RouteRow = ViewOf<typeof fields.view>

export type OutboundRouteView = z.output<typeof liveView>

const exampleFigures = {
  attempts: 25,
  answered: 20,
  ended: 18,
  asr: 80,
  acd: 95.5,
  pdd_ms: 1_850,
}

/** The route with its figures from the engine. */
export function withQuality(
  route: RouteRow,
  { quality }: Pick<EnginePort, 'quality'>,
): OutboundRouteView {
  const status = quality.of(route.id)
  if (status === undefined) return { ...route, quality_status: null }
  const { state, since, until, figures, fallen } = status
  return {
    ...route,
    quality_status: {
      state,
      since: timeToText(since),
      until: timeOrNull(until),
      figures: shownFigures(figures),
      fallen: fallen && { figures: shownFigures(fallen.figures), below: [...fallen.faults] },
    },
  }
}

export const outboundRoutes: Definition<typeof fields.body, typeof fields.view> = {
  noun: 'Outbound route',
  table: 'outbound_route',
  path: '/outbound-routes',
  scope: 'routes',
  fields,
  hasOwnRoutes: true,
  found: {
    title: 'outbound_route.name',
    beside: ['outbound_route.prefix'],
    screen: 'outbound-routes',
  },
  search: ['outbound_route.name', 'prefix'],
  order: ['outbound_route.name'],
  limits: ['outbound_routes'],
  check,
  follow: ({ engine }, { id }) => engine.reloadRouting({ of: 'outbound_route', ids: [id] }),
  beyond: freeCalls,
  described: {
    tag: 'Routing',
    shown: liveView,
    example: {
      ...fields.example,
      quality_status: {
        state: 'good',
        since: exampleTime,
        until: null,
        figures: exampleFigures,
        fallen: null,
      },
    },
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
