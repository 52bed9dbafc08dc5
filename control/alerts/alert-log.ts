/** The log of alerts: what was told to whom, and what became of it. */
import type { Selectable } from 'kysely'
import { z } from 'zod'
import { alertKinds, alertSeverities } from '../../schema/contracts/alert-kinds.ts'
import { all, first } from '../../schema/sql/query.ts'
import type { Store } from '../../schema/storage/store.ts'
import type { AlertTable } from '../../schema/tables/alerts.ts'
import type { RequestScope } from '../auth/tenants.ts'
import { MAX_COUNTED, MAX_LISTED } from '../http/envelope.ts'
import { json } from '../http/field-columns.ts'
import * as field from '../http/field-table.ts'
import { countOf, grouped } from '../http/rows.ts'
import { count, exampleTime, moment, timeOrNull } from '../http/view-fields.ts'
import type { Rows } from '../resources/resource.ts'

const delivery = z.strictObject({
  channel_id: z.int(),
  channel: z.string(),
  tells: z.enum(['opened', 'recovered']),
  state: z
    .enum(['gathering', 'pending', 'sent', 'failed'])
    .describe('`gathering`: it waits for its group, or for the end of quiet hours.'),
  message: z
    .string()
    .nullable()
    .describe('The id of its message: what was told together has the same.'),
  attempts: count,
  last_attempt_at: moment.nullable(),
  last_error: z.string().nullable(),
})

const exampleDelivery = {
  channel_id: 1,
  channel: 'On call',
  tells: 'opened',
  state: 'sent',
  message: 'alert-1f.1',
  attempts: 1,
  last_attempt_at: exampleTime,
  last_error: null,
}

export const alertFields = field.table(
  {
    id: field.id,
    rule_id: field.shown(z.int(), { example: 1 }),
    rule: field.shown(z.string(), { example: 'Carriers' }),
    tenant: field.shown(z.string().nullable(), { column: 'slug', example: null }),
    on: field.shown(z.enum(alertKinds), { column: 'kind', example: 'carrier_down' }),
    severity: field.shown(z.enum(alertSeverities), { example: 'critical' }),
    state: field.shown(z.enum(['waiting', 'open', 'closed']), {
      about: '`waiting`: it has not lasted long enough to be told.',
      example: 'closed',
    }),
    text: field.shown(z.string(), { example: 'Carrier transit is out of service: 503' }),
    figures: field.shown(z.record(z.string(), z.union([z.string(), z.number()])), {
      stored: json,
      example: { carrier_id: 3, carrier: 'transit' },
    }),
    path: field.shown(z.string(), {
      about: 'A page of the console.',
      example: '/console/carriers/3',
    }),
    events: field.shown(count, { about: 'How often it was seen.', example: 1 }),
    began_at: field.timeOrNull({ example: exampleTime }),
    opened_at: field.timeOrNull({ example: exampleTime }),
    closed_at: field.timeOrNull({ example: exampleTime }),
    closed_by: field.shown(z.enum(['recovery', 'rule', 'removal', 'itself']).nullable(), {
      about:
        '`rule`: the rule was changed, switched off or deleted. `removal`: what it is about is ' +
        'gone. `itself`: nothing says when such a thing is over.',
      example: 'recovery',
    }),
    closed_because: field.shown(z.string().nullable(), {
      column: 'ended',
      about: 'Why it is over, where that is not plain.',
      example: null,
    }),
    deliveries: field.shown(z.array(delivery), { example: [exampleDelivery] }),
  },
  { schemaId: 'Alert' },
)

export type LoggedAlert = z.output<typeof alertFields.view>

export interface AlertQuery {
  readonly state?: AlertTable['state'] | undefined
  readonly rule_id?: number | undefined
  readonly limit: number
  readonly offset: number
}

/** Newest first. */
export async function listAlerts(
  store: Store,
  { tenantId }: Pick<RequestScope, 'tenantId'>,
  { state, rule_id: rule, limit, offset }: AlertQuery,
): Promise<Rows<LoggedAlert>> {
  const visible = store.db
    .selectFrom('alert')
    .$if(tenantId !== null, (query) => query.where('alert.tenant_id', '=', tenantId))
    .$if(state !== undefined, (query) => query.where('state', '=', state ?? 'open'))
    .$if(rule !== undefined, (query) => query.where('rule_id', '=', rule ?? 0))
  const total = await countOf(store, visible.select('alert.id').limit(MAX_COUNTED))
  const page = visible
    .leftJoin('tenant', 'tenant.id', 'alert.tenant_id')
    .selectAll('alert')
    .select('slug')
    .orderBy('alert.id', 'desc')
    .limit(limit)
    .offset(offset)
  const rows = offset >= MAX_LISTED ? [] : await all(store, page)
  return { rows: await withDeliveries(store, rows), total }
}

export async function findAlert(
  store: Store,
  { tenantId }: Pick<RequestScope, 'tenantId'>,
  id: number,
): Promise<LoggedAlert | undefined> {
  const query = store.db
    .selectFrom('alert')
    .leftJoin('tenant', 'tenant.id', 'alert.tenant_id')
    .selectAll('alert')
    .select('slug')
    .where('alert.id', '=', id)
    .$if(tenantId !== null, (some) => some.where('alert.tenant_id', '=', tenantId))
  const row = await first(store, query)
  return row && (await withDeliveries(store, [row]))[0]
}

type JoinedAlert = Selectable<AlertTable> & { readonly slug: string | null }

async function withDeliveries(
  store: Store,
  alerts: readonly JoinedAlert[],
): Promise<LoggedAlert[]> {
  if (alerts.length === 0) return []
  const query = store.db
    .selectFrom('alert_notice')
    .innerJoin('alert_channel', 'alert_channel.id', 'alert_notice.channel_id')
    .leftJoin('alert_message', 'alert_message.id', 'message_id')
    .select(['alert_id', 'alert_notice.kind', 'alert_notice.channel_id', 'alert_channel.name'])
    .select(['key', 'state', 'attempts', 'last_attempt_at', 'last_error'])
    .where(
      'alert_id',
      'in',
      alerts.map(({ id }) => id),
    )
    .orderBy('alert_notice.id')
  const notices = grouped(await all(store, query), ({ alert_id: id }) => id)
  return alerts.map((alert) => {
    const deliveries = (notices.get(alert.id) ?? []).map((notice) => ({
      channel_id: notice.channel_id,
      channel: notice.name,
      tells: notice.kind,
      state: notice.state ?? 'gathering',
      message: notice.key,
      attempts: notice.attempts ?? 0,
      last_attempt_at: timeOrNull(notice.last_attempt_at),
      last_error: notice.last_error,
    }))
    return field.shownOf(alertFields, alert, { deliveries })
  })
}
