/** Outbound routes as rows. */
import type { RequestScope } from '../../auth/tenants.ts'
import type { Selectable } from 'kysely'
import { fromFlag, timeToText, toFlag } from '../../../schema/columns.ts'
import type { OutboundRouteTable } from '../../../schema/database.ts'
import type { Store } from '../../../schema/open.ts'
import { all, execute, first, insert } from '../../../schema/sql/query.ts'
import { badReference, either, resolve, identified, tenantOf } from '../references.ts'
import type { Resource, Rows, Slice } from '../resource.ts'
import { contains, write } from '../../http/rows.ts'
import { writeWithinLimits } from '../../auth/tenant-limits.ts'
import { refusePlatformOnly } from '../tenancy.ts'
import { outboundRouteBody, type OutboundRouteBody } from './route-body.ts'

interface Row extends Selectable<OutboundRouteTable> {
  readonly slug: string | null
  readonly customer: string | null
  readonly carrier: string | null
}

export interface OutboundRouteView {
  readonly id: number
  readonly name: string
  readonly tenant: string | null
  readonly customer_id: number | null
  readonly customer: string | null
  readonly carrier_id: number | null
  readonly carrier: string | null
  readonly prefix: string
  readonly priority: number
  readonly weight: number
  readonly mode: 'static' | 'lcr' | 'block'
  readonly strip: number
  readonly prepend: string
  readonly is_active: boolean
  readonly emergency: boolean
  readonly created_at: string
}

export class OutboundRouteStore implements Resource<typeof outboundRouteBody, OutboundRouteView> {
  readonly noun = 'Outbound route'
  readonly body = outboundRouteBody
  readonly #store: Store

  constructor(store: Store) {
    this.#store = store
  }

  async list(
    scope: RequestScope,
    { limit, offset, search }: Slice,
  ): Promise<Rows<OutboundRouteView>> {
    const matching = this.#visible(scope).where((row) =>
      contains(row, ['outbound_route.name', 'prefix'], search),
    )
    const total = await first(
      this.#store,
      matching.select((row) => row.fn.countAll<number>().as('n')),
    )
    const rows = matching
      .selectAll('outbound_route')
      .select(names)
      .orderBy('outbound_route.name')
      .limit(limit)
      .offset(offset)
    return { rows: (await all(this.#store, rows)).map(viewOf), total: total?.n ?? 0 }
  }

  async find(scope: RequestScope, id: number): Promise<OutboundRouteView | undefined> {
    const query = this.#visible(scope)
      .selectAll('outbound_route')
      .select(names)
      .where('outbound_route.id', '=', id)
    const row = await first(this.#store, query)
    return row === undefined ? undefined : viewOf(row)
  }

  async identify(body: OutboundRouteBody): Promise<number | undefined> {
    return identified(this.#store, 'outbound_route', body)
  }

  async document(scope: RequestScope, id: number): Promise<OutboundRouteBody | undefined> {
    const route = await this.find(scope, id)
    if (route === undefined) return undefined
    const { id: _id, created_at: _at, carrier: _carrier, customer: _customer, ...document } = route
    return document
  }

  async insert(body: OutboundRouteBody, scope: RequestScope): Promise<number> {
    return writeWithinLimits(this.#store, scope, ['outbound_routes'], async () =>
      insert(
        this.#store,
        this.#store.db
          .insertInto('outbound_route')
          .values({ ...(await this.#columnsOf(body, scope)), created_at: scope.now })
          .returning('id'),
      ),
    )
  }

  async replace(id: number, body: OutboundRouteBody, scope: RequestScope): Promise<void> {
    await write(this.#store, async () =>
      execute(
        this.#store,
        this.#store.db
          .updateTable('outbound_route')
          .set(await this.#columnsOf(body, scope, await this.find(scope, id)))
          .where('id', '=', id),
      ),
    )
  }

  async remove(id: number, scope: RequestScope): Promise<'removed' | 'absent'> {
    if ((await this.find(scope, id)) === undefined) return 'absent'
    await execute(this.#store, this.#store.db.deleteFrom('outbound_route').where('id', '=', id))
    return 'removed'
  }

  async #columnsOf(body: OutboundRouteBody, scope: RequestScope, before?: OutboundRouteView) {
    const tenantId = await tenantOf(this.#store, body.tenant, scope)
    const owner = { tenantId, scope }
    refusePlatformOnly(scope, body.emergency && before?.emergency !== true, 'emergency')
    const customer = either('customer', body.customer, body.customer_id)
    const carrier = either('carrier', body.carrier, body.carrier_id)
    if (carrier === null && body.mode !== 'block')
      throw badReference('carrier', 'is required unless mode is "block"')
    const carrierId = await resolve(this.#store, 'carrier', carrier, owner, before?.carrier_id)
    // Emergency calls use no wallet, and calls over a platform carrier are priced by the dialled number:
    // neither may be sent as another number.
    const isFree = body.emergency && before?.emergency === true
    if (scope.tenantId !== null && (isFree || (await this.#isOfPlatform(carrierId))))
      for (const field of ['prefix', 'strip', 'prepend'] as const)
        refusePlatformOnly(scope, body[field] !== before?.[field], field)
    return {
      name: body.name,
      tenant_id: tenantId,
      customer_id: await resolve(this.#store, 'customer', customer, owner, before?.customer_id),
      carrier_id: carrierId,
      prefix: body.prefix,
      priority: body.priority,
      weight: body.weight,
      mode: body.mode,
      strip: body.strip,
      prepend: body.prepend,
      is_active: toFlag(body.is_active),
      is_emergency: toFlag(body.emergency),
    }
  }

  async #isOfPlatform(carrierId: number | null): Promise<boolean> {
    if (carrierId === null) return false
    const query = this.#store.db
      .selectFrom('carrier')
      .select('tenant_id')
      .where('id', '=', carrierId)
    return (await first(this.#store, query))?.tenant_id === null
  }

  #visible({ tenantId }: RequestScope) {
    return this.#store.db
      .selectFrom('outbound_route')
      .leftJoin('tenant', 'tenant.id', 'outbound_route.tenant_id')
      .leftJoin('customer', 'customer.id', 'outbound_route.customer_id')
      .leftJoin('carrier', 'carrier.id', 'outbound_route.carrier_id')
      .$if(tenantId !== null, (query) => query.where('outbound_route.tenant_id', '=', tenantId))
  }
}

const names = ['tenant.slug', 'customer.name as customer', 'carrier.name as carrier'] as const

const viewOf = (row: Row): OutboundRouteView => ({
  id: row.id,
  name: row.name,
  tenant: row.slug,
  customer_id: row.customer_id,
  customer: row.customer,
  carrier_id: row.carrier_id,
  carrier: row.carrier,
  prefix: row.prefix,
  priority: row.priority,
  weight: row.weight,
  mode: row.mode,
  strip: row.strip,
  prepend: row.prepend,
  is_active: fromFlag(row.is_active),
  emergency: fromFlag(row.is_emergency),
  created_at: timeToText(row.created_at),
})
