/** Inbound routes as rows. */
import type { RequestScope } from '../../auth/tenants.ts'
import { sql, type Selectable, type SqlBool } from 'kysely'
import { fromFlag, timeToText, toFlag } from '../../../schema/columns.ts'
import type { InboundRouteTable } from '../../../schema/database.ts'
import type { Store } from '../../../schema/open.ts'
import { all, execute, first, insert } from '../../../schema/sql/query.ts'
import { either, resolve, identified, tenantOf } from '../references.ts'
import type { Resource, Rows, Slice } from '../resource.ts'
import { contains, write } from '../../http/rows.ts'
import { writeWithinLimits } from '../../auth/tenant-limits.ts'
import { refuseForeignDomain } from '../tenancy.ts'
import { inboundRouteBody, type InboundRouteBody } from './route-body.ts'
import { resolveTarget, type RouteTarget } from './route-target.ts'

interface Row extends Selectable<InboundRouteTable> {
  readonly slug: string | null
  readonly carrier: string | null
  readonly agent: string | null
}

export interface InboundRouteView extends RouteTarget {
  readonly id: number
  readonly name: string
  readonly tenant: string | null
  readonly carrier_id: number | null
  readonly carrier: string | null
  readonly prefix: string | null
  readonly domain: string | null
  readonly priority: number
  readonly is_active: boolean
  readonly created_at: string
}

export class InboundRouteStore implements Resource<typeof inboundRouteBody, InboundRouteView> {
  readonly noun = 'Inbound route'
  readonly body = inboundRouteBody
  readonly #store: Store

  constructor(store: Store) {
    this.#store = store
  }

  async list(
    scope: RequestScope,
    { limit, offset, search }: Slice,
  ): Promise<Rows<InboundRouteView>> {
    const matching = this.#visible(scope).where((row) =>
      contains(row, ['inbound_route.name', 'prefix', 'inbound_route.domain'], search),
    )
    const total = await first(
      this.#store,
      matching.select((row) => row.fn.countAll<number>().as('n')),
    )
    const rows = matching
      .selectAll('inbound_route')
      .select(names)
      .orderBy('inbound_route.name')
      .limit(limit)
      .offset(offset)
    return { rows: (await all(this.#store, rows)).map(viewOf), total: total?.n ?? 0 }
  }

  async find(scope: RequestScope, id: number): Promise<InboundRouteView | undefined> {
    const query = this.#visible(scope)
      .selectAll('inbound_route')
      .select(names)
      .where('inbound_route.id', '=', id)
    const row = await first(this.#store, query)
    return row === undefined ? undefined : viewOf(row)
  }

  async identify(body: InboundRouteBody): Promise<number | undefined> {
    return identified(this.#store, 'inbound_route', body)
  }

  async document(scope: RequestScope, id: number): Promise<InboundRouteBody | undefined> {
    const route = await this.find(scope, id)
    if (route === undefined) return undefined
    const { id: _id, created_at: _at, carrier: _carrier, ...document } = route
    return document
  }

  async insert(body: InboundRouteBody, scope: RequestScope): Promise<number> {
    return writeWithinLimits(this.#store, scope, ['inbound_routes'], async () =>
      insert(
        this.#store,
        this.#store.db
          .insertInto('inbound_route')
          .values({ ...(await this.#columnsOf(body, scope)), created_at: scope.now })
          .returning('id'),
      ),
    )
  }

  async replace(id: number, body: InboundRouteBody, scope: RequestScope): Promise<void> {
    await write(this.#store, async () =>
      execute(
        this.#store,
        this.#store.db
          .updateTable('inbound_route')
          .set(await this.#columnsOf(body, scope, await this.find(scope, id)))
          .where('id', '=', id),
      ),
    )
  }

  async remove(id: number, scope: RequestScope): Promise<'removed' | 'absent'> {
    if ((await this.find(scope, id)) === undefined) return 'absent'
    await execute(this.#store, this.#store.db.deleteFrom('inbound_route').where('id', '=', id))
    return 'removed'
  }

  async #columnsOf(body: InboundRouteBody, scope: RequestScope, before?: InboundRouteView) {
    const tenantId = await tenantOf(this.#store, body.tenant, scope)
    const owner = { tenantId, scope }
    const carrier = either('carrier', body.carrier, body.carrier_id)
    if (body.domain !== before?.domain)
      await refuseForeignDomain(this.#store, body.domain, tenantId)
    return {
      name: body.name,
      tenant_id: tenantId,
      carrier_id: await resolve(this.#store, 'carrier', carrier, owner, before?.carrier_id),
      prefix: body.prefix ?? null,
      domain: body.domain ?? null,
      ...(await resolveTarget(this.#store, body, owner, before)),
      priority: body.priority,
      is_active: toFlag(body.is_active),
    }
  }

  #visible({ tenantId }: RequestScope) {
    return this.#store.db
      .selectFrom('inbound_route')
      .leftJoin('tenant', 'tenant.id', 'inbound_route.tenant_id')
      .leftJoin('carrier', 'carrier.id', 'inbound_route.carrier_id')
      .leftJoin('ai_agent', (join) =>
        join.on(
          (row) =>
            sql<SqlBool>`${row.ref('ai_agent.id')} = case when ${row.ref('target_type')} = 'agent' then cast(${row.ref('target')} as integer) end`,
        ),
      )
      .$if(tenantId !== null, (query) => query.where('inbound_route.tenant_id', '=', tenantId))
  }
}

const names = ['tenant.slug', 'carrier.name as carrier', 'ai_agent.name as agent'] as const

const viewOf = (row: Row): InboundRouteView => ({
  id: row.id,
  name: row.name,
  tenant: row.slug,
  carrier_id: row.carrier_id,
  carrier: row.carrier,
  prefix: row.prefix,
  domain: row.domain,
  priority: row.priority,
  is_active: fromFlag(row.is_active),
  set_id: row.target_type === 'set' ? Number(row.target) : null,
  ...extensionOf(row),
  agent: row.agent,
  created_at: timeToText(row.created_at),
})

function extensionOf({ target_type, target }: Row) {
  const [extension = '', domain = ''] = target.split('@')
  return target_type === 'extension'
    ? { extension, extension_domain: domain }
    : { extension: null, extension_domain: null }
}
