/**
 * Limits what a tenant credential makes for its tenant. All of it is kept in memory of every
 * instance; each node is probed, each name is looked up, and set ids are few: without a limit, one
 * tenant could take them all. The platform may give a tenant more.
 */
import type { RequestScope } from './tenants.ts'
import { sql } from 'kysely'
import { type Tables, first } from '../../schema/sql/query.ts'
import { ApiError } from '../http/api-error.ts'
import { write } from '../http/rows.ts'

/** `rows`: those of a tenant, as `FROM` names them. */
const limits = {
  sets: {
    code: 'too_many_sets',
    most: 100,
    rows: 'dispatcher_set',
  },
  nodes: {
    code: 'too_many_nodes',
    most: 300,
    rows: 'dispatcher_node JOIN dispatcher_set ON dispatcher_set.id = dispatcher_set_id',
  },
  gateways: {
    code: 'too_many_gateways',
    most: 300,
    rows: 'carrier_gateway JOIN carrier ON carrier.id = carrier_id',
  },
  carriers: {
    code: 'too_many_carriers',
    most: 100,
    rows: 'carrier',
  },
  agents: {
    code: 'too_many_agents',
    most: 1_000,
    rows: 'ai_agent',
  },
  inbound_routes: {
    code: 'too_many_inbound_routes',
    most: 5_000,
    rows: 'inbound_route',
  },
  outbound_routes: {
    code: 'too_many_outbound_routes',
    most: 1_000,
    rows: 'outbound_route',
  },
  routing_webhooks: {
    code: 'too_many_routing_webhooks',
    most: 50,
    rows: 'routing_webhook',
  },
  alert_channels: {
    code: 'too_many_alert_channels',
    most: 50,
    rows: 'alert_channel',
  },
  alert_rules: {
    code: 'too_many_alert_rules',
    most: 100,
    rows: 'alert_rule',
  },
  stir_keys: {
    code: 'too_many_stir_keys',
    most: 20,
    rows: 'stir_key',
  },
  extensions: {
    code: 'too_many_extensions',
    most: 20_000,
    rows: 'extension',
  },
  customers: {
    code: 'too_many_customers',
    most: 20_000,
    rows: 'customer',
  },
  numbers: {
    code: 'too_many_numbers',
    most: 100_000,
    rows: 'phone_number',
  },
  rate_plans: {
    code: 'too_many_rate_plans',
    most: 200,
    rows: 'rate_plan',
  },
  rates: {
    code: 'too_many_rates',
    most: 100_000,
    rows: 'rate JOIN rate_plan ON rate_plan.id = rate_plan_id',
  },
  keys: {
    code: 'too_many_keys',
    most: 1_000,
    rows: 'application_key',
  },
  identity_providers: {
    code: 'too_many_identity_providers',
    most: 20,
    rows: 'identity_provider',
  },
  users: {
    code: 'too_many_users',
    most: 1_000,
    rows: '"user"',
  },
} as const

export type LimitedKind = keyof typeof limits

/** Like `write`, but throws 409 when a tenant credential exceeds the limits of its tenant. */
export async function writeWithinLimits<T>(
  store: Tables,
  { tenantId }: Pick<RequestScope, 'tenantId'>,
  kinds: readonly LimitedKind[],
  work: () => Promise<T>,
): Promise<T> {
  if (tenantId === null) return write(store, work)
  const counts = async (): Promise<readonly number[]> => {
    const found: number[] = []
    for (const kind of kinds) found.push(await countOf(store, kind, tenantId))
    return found
  }
  return write(store, async () => {
    const before = await counts()
    const result = await work()
    const after = await counts()
    // Resources given by the platform beyond the limit stay and may be changed.
    for (const [index, kind] of kinds.entries()) {
      const { code, most } = limits[kind]
      if ((after[index] ?? 0) > most && (after[index] ?? 0) > (before[index] ?? 0))
        throw new ApiError(409, code, `A tenant has at most ${most} ${kind}`)
    }
    return result
  })
}

async function countOf(store: Tables, kind: LimitedKind, tenantId: number): Promise<number> {
  const query = sql<{ n: number }>`
    SELECT count(*) AS n FROM ${sql.raw(limits[kind].rows)} WHERE tenant_id = ${tenantId}`
  return (await first<{ n: number }>(store, { compile: () => query.compile(store.db) }))?.n ?? 0
}
