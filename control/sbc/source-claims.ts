/**
 * Whose an address is. A tenant's gateways and nodes may be neither at a place of the platform's nor of
 * another tenant's: its calls would be taken for theirs, or go out at their expense. What the platform
 * writes is not checked here: it wins where calls are recognized.
 */
import { storedClaims, type Claim, type StoredClaim } from '../../schema/ownership/claims.ts'
import type { Store } from '../../schema/open.ts'
import { isSameSource, locationOf, overlap, type Location } from '../../schema/net/place.ts'
import { ApiError } from '../http/api-error.ts'
import type { RequestScope } from '../provisioning/resource.ts'
import { refusePlatformOnly } from '../provisioning/tenancy.ts'

/** Of the platform's own programs, such as trusted sources: no tenant may claim a part of them. */
export type ReservedNetworks = readonly Location[]

/** Reads networks in CIDR notation. */
export const reservedNetworks = (networks: readonly string[]): ReservedNetworks =>
  networks.map((network) => {
    const [host = '', bits = '128'] = network.split('/')
    return locationOf({ host, netmask: Number(bits) })
  })

/**
 * The shortest prefixes that a tenant's credential may write. Sources within a carrier's network are never
 * banned, and no other tenant may have an address there: a tenant could take half of the internet.
 */
const LEAST_PREFIX = { 4: 24, 6: 48 } as const

/** Throws 409 at `path(index)` when a place of `claims`, of a row of `owner`, belongs to another owner. */
export function refuseForeignPlaces(
  store: Store,
  owner: { readonly tenantId: number | null; readonly scope: RequestScope },
  claims: readonly Claim[],
  reserved: ReservedNetworks,
  path: (index: number) => string,
): void {
  const { tenantId, scope } = owner
  if (tenantId === null) return
  // The platform may share a machine out among tenants, by ports; a tenant cannot know who is there.
  const isOfTenant = scope.tenantId !== null
  const stored = storedClaims(store)
  const own = stored.filter((claim) => claim.tenantId === tenantId)
  const others = stored.filter((claim) => claim.tenantId !== tenantId)
  for (const [index, claim] of claims.entries()) {
    // A row that stood before the other claim may still be changed.
    if (own.some((before) => isIn(claim, before))) continue
    refusePlatformOnly(scope, isWide(claim), path(index).replace(/host$/, 'netmask'))
    const isReserved = isOfTenant && reserved.some((network) => overlap(claim.location, network))
    if (isReserved || others.some((other) => isForeign(claim, other, isOfTenant)))
      throw new ApiError(409, 'address_taken', 'The address belongs to another source', {
        details: [{ path: path(index), message: 'is at an address of another owner' }],
      })
  }
}

const isWide = ({ location }: Claim): boolean =>
  !('name' in location) && location.prefixLength < LEAST_PREFIX[location.address.family]

const isIn = (claim: Claim, before: Claim): boolean =>
  claim.host === before.host &&
  claim.netmask === before.netmask &&
  String(claim.ports) === String(before.ports) &&
  (before.isSource || !claim.isSource) &&
  claim.hasCredentials === before.hasCredentials

function isForeign(own: Claim, other: StoredClaim, isStrict: boolean): boolean {
  if (!overlap(own.location, other.location)) return false
  if (own.isSource && other.isSource && isSameSource(own, other)) return true
  if (!isStrict) return false
  const isShared = own.hasCredentials && other.hasCredentials
  return other.tenantId === null || other.kind === 'node' || own.kind === 'node' || !isShared
}
