/** Carriers and their gateways as rows. Unchanged gateways keep their id. */
import type { RequestScope } from '../../auth/tenants.ts'
import { refuseOtherPayer } from '../guards/braked.ts'
import { gatewayClaim } from '../../../schema/ownership/claims.ts'
import { toFlag } from '../../../schema/columns.ts'
import { isAmbiguous } from '../../../schema/rules/gateway-source.ts'
import type { Store } from '../../../schema/open.ts'
import { all, execute, first, insert } from '../../../schema/sql/query.ts'
import { ApiError } from '../../http/api-error.ts'
import { mediaColumnsOf, withoutRelay } from '../media-fields.ts'
import { filledIn } from '../presets.ts'
import { stripHeadersColumn } from '../stripped-headers.ts'
import { refuseUnsupported } from '../not-supported.ts'
import { badReference, either, identified, resolve, tenantOf } from '../references.ts'
import type { Resource, Rows, Slice } from '../resource.ts'
import { contains, grouped, same, write } from '../../http/rows.ts'
import {
  carrierBody,
  unsupportedInCarrier,
  type CarrierBody,
  type GatewayBody,
} from './carrier-body.ts'
import { viewOf, type CarrierRow, type CarrierView, type GatewayRow } from './carrier-view.ts'
import { hostPort } from '../../../engine/sip-server/message/index.ts'
import { refuseReachedGateways } from '../gateway-reach.ts'
import { refuseOwnPlaces } from '../own-places.ts'
import { resolveSet } from '../set-reference.ts'
import { nothingReserved, refuseForeignPlaces, type Reserved } from '../source-claims.ts'
import { writeWithinLimits } from '../../auth/tenant-limits.ts'

export class CarrierStore implements Resource<typeof carrierBody, CarrierView> {
  readonly noun = 'Carrier'
  readonly body = carrierBody
  readonly onlyAtCreation = ['preset']
  readonly #store: Store
  readonly #reserved: Reserved
  readonly #hasMediaRelay: boolean

  constructor(store: Store, reserved = nothingReserved, hasMediaRelay = false) {
    this.#store = store
    this.#hasMediaRelay = hasMediaRelay
    this.#reserved = reserved
  }

  async list(scope: RequestScope, { limit, offset, search }: Slice): Promise<Rows<CarrierView>> {
    const matching = this.#visible(scope).where((row) => contains(row, ['carrier.name'], search))
    const total = await first(
      this.#store,
      matching.select((row) => row.fn.countAll<number>().as('n')),
    )
    const rows = matching
      .selectAll('carrier')
      .select(names)
      .orderBy('carrier.name')
      .limit(limit)
      .offset(offset)
    return { rows: await this.#views(await all(this.#store, rows)), total: total?.n ?? 0 }
  }

  async find(scope: RequestScope, id: number): Promise<CarrierView | undefined> {
    const rows = this.#visible(scope)
      .selectAll('carrier')
      .select(names)
      .where('carrier.id', '=', id)
    return (await this.#views(await all(this.#store, rows)))[0]
  }

  async identify(body: CarrierBody): Promise<number | undefined> {
    return identified(this.#store, 'carrier', body)
  }

  async document(scope: RequestScope, id: number): Promise<CarrierBody | undefined> {
    const carrier = await this.find(scope, id)
    if (carrier === undefined) return undefined
    const { id: _id, created_at: _created, updated_at: _updated, ...rest } = carrier
    const { customer: _customer, rate_plan: _plan, ...fields } = rest
    return {
      ...fields,
      number_rules: { in: [...carrier.number_rules.in], out: [...carrier.number_rules.out] },
      gateways: carrier.gateways.map(({ id: _gateway, status: _status, ...gateway }) => gateway),
    }
  }

  destinations(body: CarrierBody): readonly string[] {
    return withPreset(body).gateways.map(uriOf)
  }

  async insert(given: CarrierBody, scope: RequestScope): Promise<number> {
    const body = withPreset(given)
    return writeWithinLimits(this.#store, scope, ['carriers', 'gateways'], async () => {
      const columns = await this.#columnsOf(body, scope)
      const row = { ...columns, created_at: scope.now }
      const id = await insert(
        this.#store,
        this.#store.db.insertInto('carrier').values(row).returning('id'),
      )
      await this.#putPassword(id, body.auth)
      await this.#putGateways(id, body, scope)
      return id
    })
  }

  async replace(id: number, given: CarrierBody, scope: RequestScope): Promise<void> {
    const body = withPreset(given)
    await writeWithinLimits(this.#store, scope, ['carriers', 'gateways'], async () => {
      const before = await this.find(scope, id)
      const columns = await this.#columnsOf(body, scope, before)
      if (before) await refuseOtherPayer(this.#store, before, columns, scope)
      await execute(
        this.#store,
        this.#store.db.updateTable('carrier').set(columns).where('id', '=', id),
      )
      await this.#putPassword(id, body.auth)
      await this.#putGateways(id, body, scope)
    })
  }

  async remove(id: number, scope: RequestScope): Promise<'removed' | 'absent'> {
    if ((await this.find(scope, id)) === undefined) return 'absent'
    await write(this.#store, () =>
      execute(this.#store, this.#store.db.deleteFrom('carrier').where('id', '=', id)),
    )
    return 'removed'
  }

  async #columnsOf(body: CarrierBody, scope: RequestScope, before?: CarrierView) {
    refuseUnsupported([
      ...unsupportedInCarrier(body),
      ...withoutRelay(body, before, this.#hasMediaRelay),
    ])
    const tenantId = await tenantOf(this.#store, body.tenant, scope)
    const owner = { tenantId, scope }
    const customer = either('customer', body.customer, body.customer_id)
    const set = either('inbound_set', body.inbound_set, body.inbound_set_id)
    if (customer !== null && body.payer === 'from_number')
      throw badReference('payer', 'is "from_number", but the carrier has a customer')
    const columns = {
      name: body.name,
      tenant_id: tenantId,
      customer_id: await resolve(this.#store, 'customer', customer, owner, before?.customer_id),
      payer: body.payer,
      is_active: toFlag(body.is_active),
      direction: body.direction,
      ...authColumnsOf(body.auth, before !== undefined && (await this.#hasPassword(before.id))),
      caller_id_mode: body.caller_id.mode,
      caller_id_value: body.caller_id.value ?? null,
      number_rules: JSON.stringify(body.number_rules),
      ...mediaColumnsOf(body),
      media: body.media,
      strip_headers: stripHeadersColumn(body.strip_headers),
      max_calls: body.max_calls,
      max_cps: body.max_cps,
      rate_plan_id: await this.#ratePlanOf(body, owner, before),
      inbound_set_id: await resolveSet(
        this.#store,
        'inbound_set',
        set,
        owner,
        before?.inbound_set_id,
      ),
      updated_at: scope.now,
    }
    await this.#refuseForeign(body, owner)
    return columns
  }

  async #refuseForeign(body: CarrierBody, owner: CarrierOwner): Promise<void> {
    const carrier = { ...body, auth: body.auth.type }
    const claims = body.gateways.map((gateway) => gatewayClaim(gateway, carrier))
    const path = (index: number) => `gateways.${index}.host`
    await refuseForeignPlaces(this.#store, owner, claims, this.#reserved.networks, path)
  }

  /** Least-cost routing compares plain numbers, so carriers that may meet in a route must share a currency. */
  async #ratePlanOf(
    body: CarrierBody,
    owner: CarrierOwner,
    before?: CarrierView,
  ): Promise<number | null> {
    const plan = either('rate_plan', body.rate_plan, body.rate_plan_id)
    const id = await resolve(this.#store, 'rate_plan', plan, owner, before?.rate_plan_id)
    if (id === null) return null
    const { db } = this.#store
    const others = db
      .selectFrom('carrier')
      .innerJoin('rate_plan', 'rate_plan.id', 'carrier.rate_plan_id')
      .select('currency')
      .where('carrier.id', '<>', before?.id ?? 0)
      .where('currency', '<>', (row) =>
        row.selectFrom('rate_plan as own').select('own.currency').where('own.id', '=', id),
      )
      // Platform routes cannot use carriers of tenants.
      .where((row) =>
        row.or([
          row('carrier.tenant_id', 'is', null),
          row('carrier.tenant_id', same(owner.tenantId), owner.tenantId),
        ]),
      )
    const other = await first(this.#store, others.limit(1))
    if (other === undefined) return id
    throw badReference('rate_plan', `must be in ${other.currency}, like those of other carriers`)
  }

  async isNewSecret(id: number, { auth: { password } }: CarrierBody): Promise<boolean> {
    if (password === undefined) return false
    const query = this.#store.db.selectFrom('carrier').select('auth_password').where('id', '=', id)
    const stored = (await first(this.#store, query))?.auth_password ?? null
    const place = { table: 'carrier', column: 'auth_password', row: id } as const
    return (stored === null ? null : this.#store.secrets.open(place, stored)) !== password
  }

  async #hasPassword(id: number): Promise<boolean> {
    const query = this.#store.db.selectFrom('carrier').select('auth_password').where('id', '=', id)
    return (await first(this.#store, query))?.auth_password != null
  }

  /** Absent, the stored one stays. It is encrypted for its row, so the row is written first. */
  async #putPassword(id: number, { type, password }: CarrierBody['auth']): Promise<void> {
    if (type !== 'ip' && password === undefined) return
    const place = { table: 'carrier', column: 'auth_password', row: id } as const
    const isNone = type === 'ip' || password == null
    const sealed = isNone ? null : this.#store.secrets.seal(place, password)
    const { db } = this.#store
    const query = db.updateTable('carrier').set({ auth_password: sealed }).where('id', '=', id)
    await execute(this.#store, query)
  }

  async #putGateways(carrierId: number, body: CarrierBody, scope: RequestScope): Promise<void> {
    await this.#refuseAmbiguous(carrierId, body, await tenantOf(this.#store, body.tenant, scope))
    const { db } = this.#store
    const before = new Map(
      (await this.#gatewaysOf([carrierId])).map((row) => [gatewayKey(row), row.id]),
    )
    const kept = body.gateways.map((gateway) => before.get(gatewayKey(gateway)))
    const tenantId = await tenantOf(this.#store, body.tenant, scope)
    const fresh = body.gateways.flatMap((gateway, index) => {
      const { host, port, transport, netmask } = gateway
      const place = { host, port, transport, netmask, path: `gateways.${index}.host` }
      return kept[index] === undefined ? [{ carrier: body.name, tenantId, ...place }] : []
    })
    await refuseReachedGateways(this.#store, fresh, tenantId)
    const written = fresh.map((gateway) => ({ path: gateway.path, uri: uriOf(gateway) }))
    refuseOwnPlaces(written, scope, this.#reserved.own)
    const is_by_tenant = toFlag(scope.tenantId !== null)
    for (const id of before.values())
      if (!kept.includes(id))
        await execute(this.#store, db.deleteFrom('carrier_gateway').where('id', '=', id))
    for (const [index, gateway] of body.gateways.entries()) {
      const columns = gatewayColumnsOf(gateway)
      const id = kept[index]
      await execute(
        this.#store,
        id === undefined
          ? db
              .insertInto('carrier_gateway')
              .values({ carrier_id: carrierId, ...columns, is_by_tenant })
          : db.updateTable('carrier_gateway').set(columns).where('id', '=', id),
      )
    }
  }

  /** SPECIFICATION.md §10.1: rejects ambiguous gateways of one owner. */
  async #refuseAmbiguous(
    carrierId: number,
    body: CarrierBody,
    tenantId: number | null,
  ): Promise<void> {
    for (const [index, gateway] of body.gateways.entries()) {
      const twin = body.gateways.findIndex((each) => gatewayKey(each) === gatewayKey(gateway))
      if (twin < index) throw badReference(`gateways.${index}.host`, `duplicates gateways.${twin}`)
    }
    if (!body.is_active || body.direction === 'out') return
    const others = await this.#inboundGatewaysBeside(carrierId, tenantId)
    for (const [index, gateway] of body.gateways.entries()) {
      const rival = gateway.inbound && others.find((other) => isAmbiguous(gateway, other))
      if (rival) throw ambiguous(index, rival.name)
    }
  }

  #inboundGatewaysBeside(carrierId: number, tenantId: number | null) {
    const query = this.#store.db
      .selectFrom('carrier_gateway')
      .innerJoin('carrier', 'carrier.id', 'carrier_gateway.carrier_id')
      .select(['carrier.name', 'host', 'port', 'transport', 'netmask'])
      .where('carrier.id', '<>', carrierId)
      .where('carrier.tenant_id', same(tenantId), tenantId)
      .where('carrier.is_active', '=', 1)
      .where('carrier.direction', '<>', 'out')
      .where('is_inbound', '=', 1)
    return all(this.#store, query)
  }

  async #views(rows: readonly CarrierRow[]): Promise<CarrierView[]> {
    const gateways = grouped(
      await this.#gatewaysOf(rows.map(({ id }) => id)),
      (gateway) => gateway.carrier_id,
    )
    return rows.map((row) => viewOf(row, gateways.get(row.id) ?? []))
  }

  async #gatewaysOf(carrierIds: readonly number[]): Promise<GatewayRow[]> {
    const query = this.#store.db
      .selectFrom('carrier_gateway')
      .selectAll()
      .where('carrier_id', 'in', carrierIds)
      .orderBy('id')
    return all(this.#store, query)
  }

  #visible({ tenantId }: RequestScope) {
    return this.#store.db
      .selectFrom('carrier')
      .leftJoin('tenant', 'tenant.id', 'carrier.tenant_id')
      .leftJoin('customer', 'customer.id', 'carrier.customer_id')
      .leftJoin('rate_plan', 'rate_plan.id', 'carrier.rate_plan_id')
      .$if(tenantId !== null, (query) => query.where('carrier.tenant_id', '=', tenantId))
  }
}

/** The columns of a view, besides the row itself. */
const names = ['tenant.slug', 'customer.name as customer', 'rate_plan.name as rate_plan'] as const

/** A preset also means TLS to the gateways that name no other transport. */
function withPreset(given: CarrierBody): CarrierBody {
  const body = filledIn(given)
  if (body.preset === undefined) return body
  const byTls = ({ transport, ...gateway }: GatewayBody) => ({
    ...gateway,
    transport: transport === 'udp' ? ('tls' as const) : transport,
  })
  return { ...body, gateways: body.gateways.map(byTls) }
}

interface CarrierOwner {
  readonly tenantId: number | null
  readonly scope: RequestScope
}

function ambiguous(index: number, rival: string): ApiError {
  const owner = `the carrier ${JSON.stringify(rival)}`
  return new ApiError(
    409,
    'ambiguous_gateway',
    'The source would be ambiguous between two carriers',
    {
      details: [
        { path: `gateways.${index}.host`, message: `${owner} has the same network and port` },
      ],
    },
  )
}

const gatewayKey = (gateway: Pick<GatewayBody, 'host' | 'port' | 'transport' | 'netmask'>) =>
  `${gateway.host} ${gateway.port} ${gateway.transport} ${gateway.netmask}`

const uriOf = ({
  host,
  port,
  transport,
}: Pick<GatewayBody, 'host' | 'port' | 'transport'>): string =>
  `sip:${hostPort(host, port)};transport=${transport}`

const gatewayColumnsOf = ({ inbound, outbound, ...gateway }: GatewayBody) => ({
  ...gateway,
  is_inbound: toFlag(inbound),
  is_outbound: toFlag(outbound),
})

/** All fields except the password; a carrier with auth "ip" has none. */
function authColumnsOf(auth: CarrierBody['auth'], hasPassword: boolean) {
  const keepsPassword = auth.password === undefined && hasPassword
  if (auth.type !== 'ip' && auth.username == null)
    throw badReference('auth.username', `is required with auth "${auth.type}"`)
  if (auth.type !== 'ip' && auth.password == null && !keepsPassword)
    throw badReference('auth.password', `is required with auth "${auth.type}"`)
  return {
    auth_type: auth.type,
    auth_username: auth.username ?? null,
    auth_realm: auth.realm ?? null,
    auth_from_user: auth.from_user ?? null,
    auth_from_domain: auth.from_domain ?? null,
    auth_expires_seconds: auth.expires ?? null,
  }
}
