/**
 * Limits the sets, nodes and gateways of a tenant credential. Each node is probed, each name is looked up,
 * and set ids are few: without a limit, one tenant could take them all. The platform may give a tenant
 * more.
 */
import type { Store } from '../../schema/open.ts'
import { first } from '../../schema/sql/query.ts'
import { ApiError } from '../http/api-error.ts'
import type { RequestScope } from '../provisioning/resource.ts'
import { write } from '../provisioning/write.ts'

const limits = { sets: 100, nodes: 300, gateways: 300 } as const

type Counts = Readonly<Record<keyof typeof limits, number>>

/** Like `write`, but throws 409 when a tenant credential exceeds the limits of its tenant. */
export async function writeWithinLimits<T>(
  store: Store,
  { tenantId }: RequestScope,
  work: () => Promise<T>,
): Promise<T> {
  if (tenantId === null) return write(store, work)
  return write(store, async () => {
    const before = await countsOf(store, tenantId)
    const result = await work()
    refuseMore(before, await countsOf(store, tenantId))
    return result
  })
}

/** Resources given by the platform beyond the limit stay and may be changed. */
function refuseMore(before: Counts, after: Counts): void {
  for (const kind of ['sets', 'nodes', 'gateways'] as const)
    if (after[kind] > limits[kind] && after[kind] > before[kind])
      throw new ApiError(409, `too_many_${kind}`, `A tenant has at most ${limits[kind]} ${kind}`)
}

async function countsOf(store: Store, tenantId: number): Promise<Counts> {
  const { db } = store
  const sets = db.selectFrom('dispatcher_set').where('tenant_id', '=', tenantId)
  const nodes = db
    .selectFrom('dispatcher_node')
    .innerJoin('dispatcher_set', 'dispatcher_set.id', 'dispatcher_set_id')
    .where('tenant_id', '=', tenantId)
  const gateways = db
    .selectFrom('carrier_gateway')
    .innerJoin('carrier', 'carrier.id', 'carrier_id')
    .where('tenant_id', '=', tenantId)
  return {
    sets:
      (
        await first(
          store,
          sets.select(({ fn }) => fn.countAll<number>().as('n')),
        )
      )?.n ?? 0,
    nodes:
      (
        await first(
          store,
          nodes.select(({ fn }) => fn.countAll<number>().as('n')),
        )
      )?.n ?? 0,
    gateways:
      (
        await first(
          store,
          gateways.select(({ fn }) => fn.countAll<number>().as('n')),
        )
      )?.n ?? 0,
  }
}
