/** Refuses destinations that lead to a carrier's gateway: it is reached by priced routes only (SPECIFICATION.md §10.2). */
import { hostPort } from '../../engine/sip-server/message/index.ts'
import { carrierGateways } from '../../schema/carrier-gateways.ts'
import { gatewayNamedBy, senderOf, type CarrierGateway } from '../../schema/rules/gateway-reach.ts'
import type { Store } from '../../schema/open.ts'
import { all } from '../../schema/query.ts'
import { ApiError } from '../http/api-error.ts'
import type { RequestScope } from '../provisioning/resource.ts'
import type { NodeBody } from './dispatcher-body.ts'

export interface WrittenDestination {
  /** Inside the body: `nodes.0.host`. */
  readonly path: string
  readonly uri: string
}

/**
 * Throws 409 for the first destination at a gateway, by address, network or name, or by what DNS has said
 * of its name (`scope.gatewayLedTo`). A name that DNS did not tell in time is accepted, as in a seed file,
 * which has no engine to ask: where it leads is asked again when a call goes there. `tenantId`: whose row it is.
 */
export function refuseGateways(
  store: Store,
  destinations: readonly WrittenDestination[],
  tenantId: number | null,
  scope: RequestScope,
): void {
  if (destinations.length === 0) return
  const gateways = carrierGateways(store)
  if (gateways.length === 0) return
  for (const { path, uri } of destinations) {
    const sender = senderOf(tenantId)
    const gateway = gatewayNamedBy(gateways, uri, sender) ?? scope.gatewayLedTo?.(uri, sender)
    if (gateway === undefined) continue
    // Another tenant's carrier is not named.
    const isNamed = scope.tenantId === null || gateway.tenantId === scope.tenantId
    const carrier = isNamed ? `the carrier ${JSON.stringify(gateway.carrier)}` : 'a carrier'
    throw new ApiError(409, 'carrier_gateway', "A destination is a carrier's gateway", {
      details: [
        {
          path,
          message: `leads to a gateway of ${carrier}, which outbound routes call, as they have a price`,
        },
      ],
    })
  }
}

/**
 * The same for a carrier that is written after what leads to it: throws 409 where one of its new gateways
 * is a destination of the same owner. Those of others stay: calls do not go there any more.
 */
export function refuseReachedGateways(
  store: Store,
  gateways: readonly (CarrierGateway & { readonly path: string })[],
  tenantId: number | null,
): void {
  if (gateways.length === 0) return
  for (const { name, uri } of storedDestinations(store, tenantId)) {
    const gateway = gatewayNamedBy(gateways, uri, senderOf(tenantId))
    const path = gateways.find((each) => each === gateway)?.path
    if (path === undefined) continue
    throw new ApiError(
      409,
      'carrier_gateway',
      'A gateway is the destination of calls without a price',
      {
        details: [{ path, message: `is where calls of ${name} go` }],
      },
    )
  }
}

/** Of one owner: a tenant, or the platform. */
function storedDestinations(store: Store, tenantId: number | null) {
  const { db } = store
  const agents = all(
    store,
    db
      .selectFrom('ai_agent')
      .select(['name', 'sip_uri as uri'])
      .where('is_active', '=', 1)
      .where('tenant_id', 'is', tenantId),
  )
  const sets = all(
    store,
    db
      .selectFrom('dispatcher_set')
      .select(['endpoint_name as name', 'voicemail_uri', 'spy_uri'])
      .where('tenant_id', 'is', tenantId),
  )
  const nodes = all(
    store,
    db
      .selectFrom('dispatcher_node')
      .innerJoin('dispatcher_set', 'dispatcher_set.id', 'dispatcher_set_id')
      .select(['endpoint_name as name', 'host', 'internal_port', 'transport'])
      .where('is_enabled', '=', 1)
      .where('tenant_id', 'is', tenantId),
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
}: Pick<NodeBody, 'host' | 'internal_port' | 'transport'>): string =>
  `sip:${hostPort(host, internal_port)};transport=${transport}`
