/** Reads the gateways of all carriers in any state: only priced routes may call them. */
import type { Store } from './open.ts'
import { all } from './sql/query.ts'
import type { CarrierGateway } from './rules/gateway-reach.ts'

export async function carrierGateways(store: Store): Promise<CarrierGateway[]> {
  const rows = await all(
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
