/**
 * Limits what a tenant credential makes for its tenant. All of it is kept in memory of every node; each node is probed,
 * each name is looked up, and set ids are few: without a limit, one tenant could take them all. The platform may give a
 * tenant more.
 */
import type { RequestScope } from './tenants.ts'
import { sql } from 'kysely'
import type { Store } from '../../schema/open.ts'
import { first } from '../../schema/sql/query.ts'
import { ApiError } from '../http/api-error.ts'
import { write } from '../http/write.ts'

/** Rows of one tenant at most. */
const limits = {
  sets: 100,
  nodes: 300,
  gateways: 300,
  carriers: 100,
  agents: 1_000,
  inbound_routes: 5_000,
  outbound_routes: 1_000,
  extensions: 20_000,
  customers: 20_000,
  rate_plans: 200,
  rates: 100_000,
  keys: 1_000,
  users: 1_000,
} as const

/** As `FROM` names them: all have `tenant_id`. */
const tables: Readonly<Record<Kind, string>> = {
  sets: 'dispatcher_set',
  nodes: 'dispatcher_node JOIN dispatcher_set ON dispatcher_set.id = dispatcher_set_id',
  gateways: 'carrier_gateway JOIN carrier ON carrier.id = carrier_id',
  carriers: 'carrier',
  agents: 'ai_agent',
  inbound_routes: 'inbound_route',
  outbound_routes: 'outbound_route',
  extensions: 'extension',
  customers: 'customer',
  rate_plans: 'rate_plan',
  rates: 'rate JOIN rate_plan ON rate_plan.id = rate_plan_id',
  keys: 'application_key',
  users: '"user"',
}

type Kind = keyof typeof limits

/** Like `write`, but throws 409 when a tenant credential exceeds the limits of its tenant. */
export async function writeWithinLimits<T>(
  store: Store,
  { tenantId }: Pick<RequestScope, 'tenantId'>,
  kinds: readonly Kind[],
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
      const count = after[index] ?? 0
      if (count > limits[kind] && count > (before[index] ?? 0))
        throw new ApiError(409, `too_many_${kind}`, `A tenant has at most ${limits[kind]} ${kind}`)
    }
    return result
  })
}

async function countOf(store: Store, kind: Kind, tenantId: number): Promise<number> {
  const query = sql<{ n: number }>`
    SELECT count(*) AS n FROM ${sql.raw(tables[kind])} WHERE tenant_id = ${tenantId}`
  return (await first<{ n: number }>(store, { compile: () => query.compile(store.db) }))?.n ?? 0
}
