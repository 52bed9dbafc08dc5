/** The gateways of all carriers, whatever their state: none of them is reached but by a priced route. */
import type { Store } from './open.ts'
import { all } from './query.ts'
import type { CarrierGateway } from './rules/gateway-reach.ts'

export function carrierGateways(store: Store): CarrierGateway[] {
  const rows = all(
    store,
    store.db
      .selectFrom('carrier_gateway')
      .innerJoin('carrier', 'carrier.id', 'carrier_gateway.carrier_id')
      .select(['carrier.name', 'carrier.tenant_id', 'host', 'port', 'transport', 'netmask'])
      .orderBy('carrier_gateway.id'),
  )
  return rows.map(({ name: carrier, tenant_id: tenantId, ...place }) => ({
    carrier,
    tenantId,
    ...place,
  }))
}
