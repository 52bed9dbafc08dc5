/** Reads the gateways of carriers in any state that destinations may name: only priced routes may call them. */
import { sql } from 'kysely'
import type { Store } from './open.ts'
import { parseAddress } from './net/ip-address.ts'
import { sipTarget } from './net/sip-target.ts'
import { all } from './sql/query.ts'
import type { CarrierGateway } from './rules/gateway-reach.ts'

/**
 * Few of many: those with the host of a URI, and those of the platform and of this owner whose network may contain it.
 * `gatewayNamedBy` says which of them it names.
 */
export async function carrierGatewaysAt(
  store: Store,
  uris: readonly string[],
  tenantId: number | null,
): Promise<CarrierGateway[]> {
  const hosts = uris.flatMap((uri) => spellingsOf(sipTarget(uri)?.host))
  if (hosts.length === 0) return []
  const rows = await all(
    store,
    store.db
      .selectFrom('carrier_gateway')
      .innerJoin('carrier', 'carrier.id', 'carrier_gateway.carrier_id')
      .select(['carrier.name', 'carrier.tenant_id', 'host', 'port', 'transport', 'netmask'])
      .where((is) =>
        is.or([
          is(sql<string>`lower(host)`, 'in', hosts),
          // An IPv6 address has many spellings.
          is('host', 'like', '%:%'),
          is.and([
            is('netmask', '<', IPV4_BITS),
            is.or([is('carrier.tenant_id', 'is', null), is('carrier.tenant_id', '=', tenantId)]),
          ]),
        ]),
      )
      .orderBy('carrier_gateway.id'),
  )
  return rows.map(({ name: carrier, tenant_id: owner, ...place }) => ({
    carrier,
    tenantId: owner,
    ...place,
  }))
}

const IPV4_BITS = 32

/** How a gateway may write a host: a name also with its last dot, IPv4 as four numbers. */
function spellingsOf(host: string | undefined): readonly string[] {
  if (host === undefined) return []
  const { family, words: [word = 0] = [] } = parseAddress(host) ?? {}
  if (family === undefined) return [host, `${host}.`]
  if (family === 6) return [host]
  return [[24, 16, 8, 0].map((shift) => (word >>> shift) & 255).join('.')]
}
