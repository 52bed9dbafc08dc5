/** The dispatcher sets that a credential sees, as the engine knows them: a tenant sees its own. */
import { all } from '../../../schema/sql/query.ts'
import type { SetStatus } from '../../../schema/contracts/dispatcher.ts'
import type { Platform } from '../../http/platform.ts'

export async function visibleSets(
  { engine, store }: Pick<Platform, 'engine' | 'store'>,
  tenantId: number | null,
): Promise<readonly SetStatus[]> {
  if (tenantId === null) return engine.dispatcher.status()
  const query = store.db
    .selectFrom('dispatcher_set')
    .select('set_id')
    .where('tenant_id', '=', tenantId)
  const own = new Set((await all(store, query)).map(({ set_id }) => set_id))
  return engine.dispatcher.status().filter((set) => own.has(set.setId))
}
