/** Alert rules: of what people are told, by which channels, and when they are left alone. */
import { sql } from 'kysely'
import { z } from 'zod'
import {
  type AlertRuleFilter,
  alertKinds,
  alertSeverities,
  kindFacts,
} from '../../schema/contracts/alert-kinds.ts'
import { first } from '../../schema/sql/query.ts'
import type { BeyondScope, WrittenRow } from '../auth/requires.ts'
import { reference, text, timeZone } from '../http/fields.ts'
import { type Column, json } from '../http/field-columns.ts'
import * as field from '../http/field-table.ts'
import { badReference } from './references.ts'
import { type Definition, type ViewOf, type Writing } from './resource.ts'
import { putChildren } from './table-rows.ts'

const MAX_CHANNELS = 10

const clock = z.string().regex(/^(?:[01]\d|2[0-3]):[0-5]\d$/, 'must be a time such as 22:00')

const quietHours = z
  .strictObject({
    from: clock,
    to: clock.describe('Not later than `from`: of the next day.'),
    time_zone: timeZone,
    holds_critical: z.boolean().default(false).describe('Critical alerts wait, too.'),
  })
  .refine(({ from, to }) => from !== to, { path: ['to'], message: 'must differ from `from`' })

/** Names have no line breaks. */
const channelNames: Column = {
  read: ({ channel_names: names }) =>
    typeof names === 'string' ? names.split('\n').toSorted() : [],
}

const threshold = z
  .union([z.string(), z.number()], { error: 'must be a number' })
  .transform((given, context) => {
    if (typeof given === 'number') return given
    if (/^-?\d{1,10}(?:\.\d{1,6})?$/.test(given)) return Number(given)
    context.addIssue({ code: 'custom', message: 'must be a number' })
    return z.NEVER
  })

const shownQuietHours = z.strictObject({
  from: z.string(),
  to: z.string(),
  time_zone: z.string(),
  holds_critical: z.boolean(),
})

const fields = field.table(
  {
    id: field.id,
    name: field.required(field.name, { example: 'Carriers' }),
    tenant: field.tenant({ about: 'It sees what happens to this tenant. Absent: to all.' }),
    on: field.required(field.oneOf(alertKinds), {
      column: 'kind',
      about:
        'What it looks at. By events: `node_down`, `carrier_down`, `registration_lost`, ' +
        '`instance_lost`, `payment_not_credited`, `finding_opened`. Measured once a minute, with ' +
        'a `threshold`: `asr_below` (percent), `mos_below`, `spend_above` and `balance_below` ' +
        '(an amount in the currency of the customer), `certificate_expiring` (days), `disk_low` ' +
        '(percent free), `replication_lag` (seconds), `webhook_failing` (attempts).',
      example: 'carrier_down',
    }),
    severity: field.of(field.oneOf(alertSeverities), { default: 'warning' }),
    threshold: field.optional({ body: threshold, view: z.number() }),
    window_seconds: field.of(field.integer(300, 86_400), {
      default: 3_600,
      about: 'ASR, MOS and spend: the calls that began in this time.',
    }),
    least_calls: field.of(field.integer(1, 1_000_000), {
      default: 20,
      about: 'ASR and MOS: fewer calls of a carrier say nothing.',
    }),
    for_seconds: field.of(field.integer(0, 86_400), {
      default: 0,
      about: 'How long it has to last before anybody is told.',
    }),
    customer: field.refersTo('customer', { about: 'Only what concerns this customer.' }),
    customer_id: field.idOf(),
    carrier: field.refersTo('carrier', { about: 'Only what concerns this carrier.' }),
    carrier_id: field.idOf(),
    node: field.optional(field.asText(text(300).min(1)), {
      about: 'Only the node with this destination, such as `sip:10.0.0.1:5060`.',
    }),
    least_severity: field.optional(field.oneOf(['medium', 'high', 'critical']), {
      about: 'Only findings of at least this severity.',
    }),
    channels: field.required(
      {
        body: z
          .array(reference)
          .min(1)
          .max(MAX_CHANNELS)
          .meta({ description: 'Names or ids of alert channels of the same tenant.' }),
        view: z.array(z.string()),
        stored: () => channelNames,
      },
      { isStoredElsewhere: true, example: ['On call'] },
    ),
    group_seconds: field.of(field.integer(0, 86_400), {
      default: 60,
      about: 'What happens in this time after the first is told in one message.',
    }),
    quiet_hours: field.optional(
      { body: quietHours, view: shownQuietHours, stored: json },
      { about: 'What happens then is told when they are over.' },
    ),
    is_enabled: field.of(field.yesOrNo, { default: true }),
    created_at: field.createdAt,
    updated_at: field.updatedAt,
  },
  { schemaId: 'AlertRule' },
)

type RuleWriting = Writing<typeof fields.body, typeof fields.view>
export type AlertRuleView = ViewOf<typeof fields.view>

export const alertRules: Definition<typeof fields.body, typeof fields.view> = {
  noun: 'Alert rule',
  table: 'alert_rule',
  path: '/alert-rules',
  scope: 'webhooks',
  fields,
  search: ['alert_rule.name'],
  order: ['alert_rule.name'],
  limits: ['alert_rules'],
  selected: sql`(SELECT string_agg(alert_channel.name, '\n')
    FROM alert_rule_channel JOIN alert_channel ON alert_channel.id = channel_id
    WHERE rule_id = alert_rule.id) AS channel_names`,
  check: refuseUnusable,
  written: putChannels,
  beyond: tellsMore,
  follow: async ({ alerts }) => alerts?.reload(),
  described: {
    tag: 'Alerts',
    body: { name: 'Carriers', on: 'carrier_down', channels: ['On call'] },
    patch: { group_seconds: 300 },
  },
}

const filters: readonly AlertRuleFilter[] = ['customer', 'carrier', 'node', 'least_severity']

/** It refuses what the kind does not look at: nothing is accepted and then ignored. */
async function refuseUnusable({ body, columns, tenantId, deps }: RuleWriting) {
  const facts = kindFacts[body.on]
  if (facts.isGlobalOnly === true && tenantId !== null)
    throw badReference('on', `${body.on} concerns the platform: a tenant has no such rule`)
  const { measured } = facts
  if (measured === undefined && body.threshold != null)
    throw badReference('threshold', `is not for ${body.on}`)
  if (measured !== undefined) {
    const { least, most } = measured
    if (body.threshold == null) throw badReference('threshold', `is required with ${body.on}`)
    if (body.threshold < least || body.threshold > most)
      throw badReference('threshold', `must be from ${least} to ${most}`)
  }
  if (body.on === 'replication_lag' && !deps.store.statements.isShared)
    throw badReference('on', 'replication_lag needs a database on a server')
  for (const filter of filters) {
    const value = filter in columns ? columns[filter] : columns[`${filter}_id`]
    if (value != null && !facts.filters.includes(filter))
      throw badReference(filter, `is not for ${body.on}`)
  }
  return undefined
}

/** The channels of a rule belong to its owner: nobody sends by the channels of others. */
async function putChannels(id: number, { body, tenantId, deps }: RuleWriting): Promise<void> {
  const ids = new Set<number>()
  for (const [index, channel] of body.channels.entries())
    ids.add(await channelOf(channel, { tenantId, deps, path: `channels.${index}` }))
  await putChildren(
    deps.store,
    { table: 'alert_rule_channel', parent: 'rule_id', keys: ['channel_id'] },
    id,
    [...ids].map((channel_id) => ({ channel_id })),
  )
}

async function channelOf(
  channel: z.output<typeof reference>,
  { tenantId, deps, path }: Pick<RuleWriting, 'tenantId' | 'deps'> & { readonly path: string },
): Promise<number> {
  const query = deps.store.db
    .selectFrom('alert_channel')
    .select('id')
    .where('tenant_id', 'is not distinct from', tenantId)
    .where(typeof channel === 'number' ? 'id' : 'name', '=', channel)
  const row = await first(deps.store, query)
  if (row !== undefined) return row.id
  throw badReference(path, `there is no alert channel ${JSON.stringify(channel)} of this tenant`)
}

/** Whoever is told of something needs the scopes that read it. */
function tellsMore({ before, after }: WrittenRow<AlertRuleView>): readonly BeyondScope[] {
  const shown = after ?? before
  if (shown === undefined) return []
  const isNew = before === undefined || decisive.some((name) => !same(before[name], shown[name]))
  if (!isNew) return []
  return kindFacts[shown.on].scopes.map((scope): BeyondScope => ({ field: 'on', scopes: [scope] }))
}

/** A change of one of these has more told, or to others. */
const decisive = [
  ...(['on', 'tenant', 'channels', 'is_enabled', 'customer_id', 'carrier_id', 'node'] as const),
  ...(['threshold', 'least_severity'] as const),
] as const

const same = (one: unknown, other: unknown): boolean =>
  JSON.stringify(one) === JSON.stringify(other)
