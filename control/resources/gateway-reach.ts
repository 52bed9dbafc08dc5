/**
 * Rejects destinations that are a carrier's gateway, which only priced routes may use
 * (SPECIFICATION.md §10.2).
 */
import { isIP } from 'node:net'
import type { Selectable } from 'kysely'
import {
  carrierGatewaysAt,
  type AddressClaim,
  type StoredClaim,
  storedClaims,
} from '../../schema/rules/ownership.ts'
import {
  isSameSource,
  type Location,
  locationOf,
  overlap,
  sipTarget,
  type SipTarget,
} from '../../schema/net/sip-target.ts'
import type { Store } from '../../schema/storage/store.ts'
import type { CarrierGateway } from '../../schema/contracts/gateways.ts'
import {
  gatewayNamedBy,
  innerCheck,
  isOwnListener,
  nowhere,
  type OwnNetwork,
  senderOf,
} from '../../schema/rules/gateways.ts'
import { all } from '../../schema/sql/query.ts'
import { hostPort, isNoHost } from '../../schema/sip/index.ts'
import type { RequestScope } from '../auth/tenants.ts'
import { ApiError } from '../http/api-error.ts'
import { same } from '../http/rows.ts'
import { refusePlatformOnly } from './tenancy.ts'
import type { DispatcherNodeTable } from '../../schema/tables/routing.ts'

export interface WrittenDestination {
  /** The path in the body: `nodes.0.host`. */
  readonly path: string
  readonly uri: string
}

/**
 * Throws 409 for the first destination at a gateway, by address, network or name, or by the DNS
 * result of its name (`scope.gatewayLedTo`). A name that DNS did not resolve in time is accepted,
 * as in a seed file, which has no engine to ask; it is checked again for each call. `tenantId` is
 * the owner of the row.
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
          message:
            `is a gateway of ${carrier}: only outbound routes, which have a price, may ` +
            'call it',
        },
      ],
    })
  }
}

/**
 * The reverse check for a carrier: throws 409 when one of its new gateways is an existing
 * destination of the same owner. Destinations of other owners remain, but calls no longer go there.
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

/**
 * Throws 409 for the first destination that is no single host (multicast, broadcast, unspecified),
 * that a SIP listener of this installation would receive, and for the first one of a tenant that
 * leads to loopback, to link-local addresses or into the machine's own networks. Names count by the
 * addresses of the DNS lookup for this request (`scope.addressesOf`).
 */
export function refuseOwnAddresses(
  destinations: readonly WrittenDestination[],
  scope: RequestScope,
  places: OwnNetwork,
): void {
  if (destinations.length === 0) return
  const listeners = places.listeners()
  const isInner = scope.tenantId === null ? undefined : innerCheck(places)
  for (const { path, uri } of destinations) {
    const target = sipTarget(uri)
    // Placeholders of a supervisor's URI: only the platform may leave open which host that will be.
    if (target === undefined && isInner === undefined) continue
    const addresses = target === undefined ? [] : addressesOf(target, uri, scope)
    if (target === undefined || (isInner !== undefined && addresses.some(isInner)))
      throw new ApiError(
        409,
        'inner_address',
        'A destination is inside the network of the platform',
        {
          details: [
            {
              path,
              message: 'must not lead to loopback, link-local or an own network of the platform',
            },
          ],
        },
      )
    if (addresses.some(isNoHost))
      throw new ApiError(409, 'no_single_host', 'A destination is not a single host', {
        details: [{ path, message: 'must not be a multicast, broadcast or unspecified address' }],
      })
    if (isOwnListener(target, addresses, listeners))
      throw new ApiError(409, 'own_address', 'A destination is this SBC itself', {
        details: [{ path, message: 'is an address at which this SBC takes calls' }],
      })
  }
}

function addressesOf({ host }: SipTarget, uri: string, scope: RequestScope): readonly string[] {
  if (isIP(host) !== 0) return [host]
  // RFC 6761 §6.3, whatever DNS says.
  if (/(?:^|\.)localhost$/.test(host)) return ['127.0.0.1', '::1']
  return scope.addressesOf?.(uri) ?? []
}

/**
 * Networks of the platform's own programs, such as trusted sources; no tenant may claim part of
 * them.
 */
type ReservedNetworks = readonly Location[]

/** Addresses that rows may not name. */
export interface ReservedAddresses {
  readonly networks: ReservedNetworks
  readonly own: OwnNetwork
}

export const nothingReserved: ReservedAddresses = { networks: [], own: nowhere }

/** `reservedNetworks`: in CIDR notation. */
export const reservedBy = ({
  reservedNetworks,
  ownPlaces: own,
}: {
  readonly reservedNetworks: readonly string[]
  readonly ownPlaces: OwnNetwork
}): ReservedAddresses => ({
  own,
  networks: reservedNetworks.map((network) => {
    const [host = '', bits = '128'] = network.split('/')
    return locationOf({ host, netmask: Number(bits) })
  }),
})

/**
 * The shortest prefixes that a tenant credential may write. Sources within a carrier's network are
 * never banned, and no other tenant may have an address there: a tenant could claim half of the
 * internet.
 */
const LEAST_PREFIX = { 4: 24, 6: 48 } as const

/**
 * Throws 409 at `path(index)` when an address of `claims`, for a row of `owner`, belongs to another
 * owner.
 */
export async function refuseForeignAddresses(
  store: Store,
  owner: { readonly tenantId: number | null; readonly scope: RequestScope },
  claims: readonly AddressClaim[],
  reserved: ReservedNetworks,
  path: (index: number) => string,
): Promise<void> {
  const { tenantId, scope } = owner
  if (tenantId === null) return
  // The platform may share a machine among tenants, by ports; a tenant cannot know the others.
  const isOfTenant = scope.tenantId !== null
  const stored = await storedClaims(store)
  const own = stored.filter((claim) => claim.tenantId === tenantId)
  const others = stored.filter((claim) => claim.tenantId !== tenantId)
  for (const [index, claim] of claims.entries()) {
    // A row that is older than the other claim may still be changed.
    if (own.some((before) => isIn(claim, before))) continue
    refusePlatformOnly(scope, isWide(claim), path(index).replace(/host$/, 'netmask'))
    const isReserved = isOfTenant && reserved.some((network) => overlap(claim.location, network))
    if (isReserved || others.some((other) => isForeign(claim, other, isOfTenant)))
      throw new ApiError(409, 'address_taken', 'The address belongs to another source', {
        details: [{ path: path(index), message: 'is an address of another owner' }],
      })
  }
}

const isWide = ({ location }: AddressClaim): boolean =>
  !('name' in location) && location.prefixLength < LEAST_PREFIX[location.address.family]

const isIn = (claim: AddressClaim, before: AddressClaim): boolean =>
  claim.host === before.host &&
  claim.netmask === before.netmask &&
  String(claim.ports) === String(before.ports) &&
  (before.isSource || !claim.isSource) &&
  claim.hasCredentials === before.hasCredentials

function isForeign(own: AddressClaim, other: StoredClaim, isStrict: boolean): boolean {
  if (!overlap(own.location, other.location)) return false
  if (own.isSource && other.isSource && isSameSource(own, other)) return true
  if (!isStrict) return false
  const isShared = own.hasCredentials && other.hasCredentials
  return other.tenantId === null || other.kind === 'node' || own.kind === 'node' || !isShared
}
