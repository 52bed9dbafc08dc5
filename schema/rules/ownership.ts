/**
 * The addresses that gateways and nodes claim, and their owners: conflicts that the API rejects,
 * and that a start and `tollgate check` report. At recognition the platform's claim wins, then that
 * of the older row.
 */
import { isIP } from 'node:net'
import { sql } from 'kysely'
import { fromFlag } from '../columns.ts'
import { parseAddress } from '../net/ip-address.ts'
import {
  isSameSource,
  type Location,
  locationOf,
  overlap,
  type Place,
  sipTarget,
} from '../net/sip-target.ts'
import type { CarrierGateway } from '../contracts/gateways.ts'
import { all, type Tables } from '../sql/query.ts'

/** A destination of calls, and possibly a source. */
export interface AddressClaim extends Place {
  readonly kind: 'gateway' | 'node'
  readonly location: Location
  /** Calls from there are recognized as its own. */
  readonly isSource: boolean
  /** The peer authenticates with user and password, so its addresses may be shared. */
  readonly hasCredentials: boolean
}

export interface StoredClaim extends AddressClaim {
  readonly id: number
  /** The name of the carrier or set. */
  readonly name: string
  readonly tenantId: number | null
}

interface GatewayParts {
  readonly host: string
  readonly port: number
  readonly transport: 'udp' | 'tcp' | 'tls'
  readonly netmask: number
  readonly inbound: boolean
}

interface CarrierParts {
  readonly is_active: boolean
  readonly direction: 'in' | 'out' | 'both'
  readonly auth: 'ip' | 'digest' | 'register'
}

export const gatewayClaim = (
  { host, port, transport, netmask, inbound }: GatewayParts,
  { is_active, direction, auth }: CarrierParts,
): AddressClaim => ({
  kind: 'gateway',
  host,
  netmask,
  location: locationOf({ host, netmask }),
  ports: transport === 'udp' && port !== 0 ? [port] : 'any',
  isSource: inbound && is_active && direction !== 'out',
  hasCredentials: auth !== 'ip',
})

interface NodeParts {
  readonly host: string
  readonly internal_port: number
  readonly external_port: number
  readonly transport: 'udp' | 'tcp' | 'tls'
  readonly is_enabled: boolean
}

export function nodeClaim(node: NodeParts): AddressClaim {
  const { host, internal_port, external_port, transport, is_enabled } = node
  const netmask = isIP(host) === 6 ? 128 : 32
  // Every program connects from the same address on loopback.
  const isByPort = transport === 'udp' || host.startsWith('127.') || host === '::1'
  return {
    kind: 'node',
    host,
    netmask,
    location: locationOf({ host, netmask }),
    ports: isByPort ? [internal_port, external_port] : 'any',
    isSource: is_enabled,
    hasCredentials: false,
  }
}

/** Returns the claims of all gateways and nodes: carriers first, older rows first. */
export async function storedClaims(store: Tables): Promise<StoredClaim[]> {
  const { db } = store
  const gateways = db
    .selectFrom('carrier_gateway as gateway')
    .innerJoin('carrier', 'carrier.id', 'gateway.carrier_id')
    .select(['gateway.id', 'carrier.name', 'carrier.tenant_id', 'host', 'port', 'transport'])
    .select(['netmask', 'is_inbound', 'auth_type', 'carrier.is_active', 'carrier.direction'])
    .orderBy('gateway.id')
  const nodes = db
    .selectFrom('dispatcher_node as node')
    .innerJoin('dispatcher_set', 'dispatcher_set.id', 'node.dispatcher_set_id')
    .select(['node.id', 'dispatcher_set.endpoint_name as name', 'dispatcher_set.tenant_id'])
    .select(['host', 'internal_port', 'external_port', 'transport', 'is_enabled'])
    .orderBy('node.id')
  return [
    ...(await all(store, gateways)).map((row) => ({
      ...gatewayClaim(
        { ...row, inbound: fromFlag(row.is_inbound) },
        { is_active: fromFlag(row.is_active), direction: row.direction, auth: row.auth_type },
      ),
      id: row.id,
      name: row.name,
      tenantId: row.tenant_id,
    })),
    ...(await all(store, nodes)).map((row) => ({
      ...nodeClaim({ ...row, is_enabled: fromFlag(row.is_enabled) }),
      id: row.id,
      name: row.name,
      tenantId: row.tenant_id,
    })),
  ]
}

/** Maximum lines; more add nothing. */
const limit = 20

/**
 * Returns one line per row of a tenant that claims an address of another owner, and so does not get
 * it.
 */
export async function brokenClaims(store: Tables): Promise<string[]> {
  return [
    ...(await lostSources(store)),
    ...(await foreignDomains(store)),
    ...(await foreignNumbers(store)),
  ].slice(0, limit)
}

async function lostSources(store: Tables): Promise<string[]> {
  const sources = (await storedClaims(store)).filter(({ isSource }) => isSource)
  return sources
    .filter(({ tenantId }) => tenantId !== null)
    .flatMap((own) => {
      const winner = sources.find((other) => isBefore(other, own) && isSame(own, other))
      if (winner === undefined) return []
      return [`${titleOf(own)} of a tenant is not recognized: ${titleOf(winner)} has the address`]
    })
}

const isSame = (own: StoredClaim, other: StoredClaim): boolean =>
  overlap(own.location, other.location) && isSameSource(own, other)

const isBefore = (other: StoredClaim, own: StoredClaim): boolean =>
  other.tenantId !== own.tenantId &&
  (other.tenantId === null ||
    (other.kind === own.kind ? other.id < own.id : other.kind === 'gateway'))

const titleOf = ({ kind, name, host }: StoredClaim): string =>
  `${kind} ${host} of ${kind === 'gateway' ? 'carrier' : 'set'} ${JSON.stringify(name)}`

async function foreignDomains(store: Tables): Promise<string[]> {
  const routes = store.db
    .selectFrom('inbound_route')
    .leftJoin('tenant_domain', 'tenant_domain.domain', 'inbound_route.domain')
    .select(['inbound_route.name', 'inbound_route.domain'])
    .where('inbound_route.tenant_id', 'is not', null)
    .where('inbound_route.domain', 'is not', null)
    .where((row) =>
      row.or([
        row('tenant_domain.tenant_id', 'is', null),
        row('tenant_domain.tenant_id', '<>', row.ref('inbound_route.tenant_id')),
      ]),
    )
    .limit(limit)
  return (await all(store, routes)).map(
    ({ name, domain }) =>
      `inbound route ${JSON.stringify(name)} takes no call of the platform's trunks by ` +
      `${domain}: it is not a domain of its tenant`,
  )
}

async function foreignNumbers(store: Tables): Promise<string[]> {
  const owned = await all(store, store.db.selectFrom('tenant_number').selectAll())
  const routes = store.db
    .selectFrom('inbound_route')
    .select(['name', 'prefix', 'tenant_id'])
    .where('tenant_id', 'is not', null)
    .where('carrier_id', 'is', null)
    .where('domain', 'is', null)
    .where('prefix', '<>', '')
  return (await all(store, routes)).flatMap(({ name, prefix, tenant_id: tenantId }) => {
    const start = prefix?.replace(/^\+/, '') ?? ''
    const isOwn = owned.some(
      (number) =>
        number.tenant_id === tenantId &&
        (number.prefix.startsWith(start) || start.startsWith(number.prefix)),
    )
    const what = `inbound route ${JSON.stringify(name)} takes no call of the platform's trunks`
    return isOwn ? [] : [`${what}: ${start} is not among the numbers of its tenant`]
  })
}

/**
 * Returns a few candidates: gateways with the host of a URI, and gateways of the platform and of
 * this owner whose network may contain it. `gatewayNamedBy` finds the one that the URI names.
 */
export async function carrierGatewaysAt(
  store: Tables,
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

/**
 * The spellings of a host that a gateway may have: a name also with its final dot, IPv4 as four
 * numbers.
 */
function spellingsOf(host: string | undefined): readonly string[] {
  if (host === undefined) return []
  const { family, words: [word = 0] = [] } = parseAddress(host) ?? {}
  if (family === undefined) return [host, `${host}.`]
  if (family === 6) return [host]
  return [[24, 16, 8, 0].map((shift) => (word >>> shift) & 255).join('.')]
}
