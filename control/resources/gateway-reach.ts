/**
 * Rejects destinations that are a carrier's gateway, which only priced routes may use (SPECIFICATION.md
 * §10.2).
 */
import type { RequestScope } from '../auth/tenants.ts'
import { hostPort } from '../../engine/sip-server/message/index.ts'
import { carrierGatewaysAt } from '../../schema/carrier-gateways.ts'
import { gatewayNamedBy, senderOf, type CarrierGateway } from '../../schema/rules/gateway-reach.ts'
import type { Store } from '../../schema/open.ts'
import { all } from '../../schema/sql/query.ts'
import { ApiError } from '../http/api-error.ts'
import { same } from '../http/rows.ts'
import type { Selectable } from 'kysely'
import type { DispatcherNodeTable } from '../../schema/database.ts'

export interface WrittenDestination {
  /** The path in the body: `nodes.0.host`. */
  readonly path: string
  readonly uri: string
}

/**
 * Throws 409 for the first destination at a gateway, by address, network or name, or by the DNS result of
 * its name (`scope.gatewayLedTo`). A name that DNS did not resolve in time is accepted, as in a seed file,
 * which has no engine to ask; it is checked again for each call. `tenantId` is the owner of the row.
 */
export async function refuseGateways(
  store: Store,
  destinations: readonly WrittenDestination[],
  tenantId: number | null,
  scope: RequestScope,
): Promise<void> {
  if (destinations.length === 0) return
  const uris = destinations.map(({ uri }) => uri)
  const gateways = await carrierGatewaysAt(store, uris, tenantId)
  for (const { path, uri } of destinations) {
    const sender = senderOf(tenantId)
    const gateway = gatewayNamedBy(gateways, uri, sender) ?? scope.gatewayLedTo?.(uri, sender)
    if (gateway === undefined) continue
    // The name of another tenant's carrier is not revealed.
    const isNamed = scope.tenantId === null || gateway.tenantId === scope.tenantId
    const carrier = isNamed ? `the carrier ${JSON.stringify(gateway.carrier)}` : 'a carrier'
    throw new ApiError(409, 'carrier_gateway', "A destination is a carrier's gateway", {
      details: [
        {
          path,
          message: `is a gateway of ${carrier}: only outbound routes, which have a price, may call it`,
        },
      ],
    })
  }
}

/**
 * The reverse check for a carrier: throws 409 when one of its new gateways is an existing destination of
 * the same owner. Destinations of other owners remain, but calls no longer go there.
 */
export async function refuseReachedGateways(
  store: Store,
  gateways: readonly (CarrierGateway & { readonly path: string })[],
  tenantId: number | null,
): Promise<void> {
  if (gateways.length === 0) return
  for (const { name, uri } of await storedDestinations(store, tenantId)) {
    const gateway = gatewayNamedBy(gateways, uri, senderOf(tenantId))
    const path = gateways.find((each) => each === gateway)?.path
    if (path === undefined) continue
    throw new ApiError(
      409,
      'carrier_gateway',
      'A gateway is already a destination of calls without a price',
      {
        details: [{ path, message: `is a destination of ${name}` }],
      },
    )
  }
}

/** Rows of one owner: a tenant, or the platform. */
async function storedDestinations(store: Store, tenantId: number | null) {
  const { db } = store
  const agents = await all(
    store,
    db
      .selectFrom('ai_agent')
      .select(['name', 'sip_uri as uri'])
      .where('is_active', '=', 1)
      .where('tenant_id', same(tenantId), tenantId),
  )
  const sets = await all(
    store,
    db
      .selectFrom('dispatcher_set')
      .select(['endpoint_name as name', 'voicemail_uri', 'spy_uri'])
      .where('tenant_id', same(tenantId), tenantId),
  )
  const nodes = await all(
    store,
    db
      .selectFrom('dispatcher_node')
      .innerJoin('dispatcher_set', 'dispatcher_set.id', 'dispatcher_set_id')
      .select(['endpoint_name as name', 'host', 'internal_port', 'transport'])
      .where('is_enabled', '=', 1)
      .where('tenant_id', same(tenantId), tenantId),
  )
  return [
    ...agents.map(({ name, uri }) => ({ name: `the AI agent ${JSON.stringify(name)}`, uri })),
    ...sets.flatMap(({ name, voicemail_uri, spy_uri }) =>
      [voicemail_uri, spy_uri].flatMap((uri) =>
        uri === null ? [] : [{ name: setNamed(name), uri }],
      ),
    ),
    ...nodes.map(({ name, ...node }) => ({ name: setNamed(name), uri: nodeUri(node) })),
  ]
}

const setNamed = (name: string): string => `the dispatcher set ${JSON.stringify(name)}`

export const nodeUri = ({
  host,
  internal_port,
  transport,
}: Pick<Selectable<DispatcherNodeTable>, 'host' | 'internal_port' | 'transport'>): string =>
  `sip:${hostPort(host, internal_port)};transport=${transport}`
