/** Each resource whose changes are entered and undone: its rows, and what of this process follows them. */
import type { ChangeDeps } from '../../changes/kinds.ts'
import { RatePlanStore } from '../rates/rate-plan-store.ts'
import { RateStore } from '../rates/rate-store.ts'
import { CustomerStore } from '../customers/customer-store.ts'
import type { ChangedRouting } from '../../../schema/contracts/changed-rows.ts'
import { ApiError } from '../../http/api-error.ts'
import { AgentStore } from '../ai-agents/agent-store.ts'
import { ExtensionStore } from '../extensions/extension-store.ts'
import { CarrierStore } from '../carriers/carrier-store.ts'
import { DispatcherStore } from '../dispatcher/dispatcher-store.ts'
import { InboundRouteStore } from '../routes/inbound-route-store.ts'
import { OutboundRouteStore } from '../routes/outbound-route-store.ts'
import { reservedBy } from '../source-claims.ts'
import { TenantStore } from '../tenants/tenant-store.ts'
import { followExtension, followTenant } from '../follow-rows.ts'
import { documentKind } from './document-kind.ts'
import { everywhere } from '../../auth/tenants.ts'

const reloadRouting =
  (of: ChangedRouting['of']) =>
  ({ engine }: ChangeDeps, id: string) =>
    engine.reloadRouting({ of, ids: [Number(id)] })

const setsOf = ({ store, engine, settings }: ChangeDeps) =>
  new DispatcherStore(
    store,
    (nodeId) => engine.dispatcher.isUnresolvable(nodeId),
    reservedBy(settings),
    settings.hasMediaRelay,
  )

export const carrierKind = documentKind({
  store: ({ store, settings }) =>
    new CarrierStore(store, reservedBy(settings), settings.hasMediaRelay),
  follow: reloadRouting('carrier'),
})

export const outboundRouteKind = documentKind({
  store: ({ store }) => new OutboundRouteStore(store),
  follow: reloadRouting('outbound_route'),
})

export const inboundRouteKind = documentKind({
  store: ({ store }) => new InboundRouteStore(store),
  follow: reloadRouting('inbound_route'),
})

export const dispatcherSetKind = documentKind({
  store: setsOf,
  async follow(world, id) {
    const { engine } = world
    await engine.dispatcher.reload()
    const set = await setsOf(world).find(everywhere, Number(id))
    // Who names it by its number follows that.
    if (set) await engine.reloadRouting({ of: 'dispatcher_set', ids: [set.set_id] })
  },
})

export const extensionKind = documentKind({
  store: ({ store, settings }) => new ExtensionStore(store, settings.hasMediaRelay),
  follow: (world, id) => followExtension(world, Number(id)),
})

export const agentKind = documentKind({
  store: ({ store, settings }) => new AgentStore(store, settings.ownPlaces, settings.hasMediaRelay),
  follow: reloadRouting('agent'),
})

export const tenantKind = documentKind({
  store: ({ store, settings, tenants }) =>
    new TenantStore(store, settings.hasMediaRelay, () => tenants.clear()),
  follow: (world, id) => followTenant(world, Number(id)),
})

/** Balances are not among it: money is moved, not set. */
export const customerKind = documentKind({
  store: ({ store, ocs }) => new CustomerStore(store, charging(ocs).ledger),
  amounts: ['credit_limit', 'max_daily_spend', 'low_balance_threshold'],
  follow: async ({ ocs }, id) => ocs?.reloadCustomers({ of: 'customer', ids: [Number(id)] }),
})

export const ratePlanKind = documentKind({
  store: ({ store }) => new RatePlanStore(store),
  refuseRemoval: (id, { store }) => new RatePlanStore(store).refuseIfPriced(id),
  follow: async ({ ocs }, id) => ocs?.reloadPlan(Number(id)),
})

export const rateKind = documentKind({
  store: ({ store }) => new RateStore(store),
  amounts: ['rate_per_minute', 'first_rate_per_minute', 'connect_fee'],
  follow: async ({ ocs }) => ocs?.reloadRates(),
})

function charging(ocs: ChangeDeps['ocs']): NonNullable<ChangeDeps['ocs']> {
  if (ocs !== undefined) return ocs
  throw new ApiError(503, 'charging_elsewhere', 'Another system charges the calls')
}
