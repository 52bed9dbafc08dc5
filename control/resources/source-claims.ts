/**
 * Checks the ownership of addresses. A tenant's gateways and nodes must not be at an address of the
 * platform or of another tenant: its calls would be taken for theirs, or be charged to them. Addresses
 * written by the platform are not checked: they take precedence when calls are recognized.
 */
import type { RequestScope } from '../auth/tenants.ts'
import { storedClaims, type Claim, type StoredClaim } from '../../schema/ownership/claims.ts'
import type { Store } from '../../schema/open.ts'
import { isSameSource, locationOf, overlap, type Location } from '../../schema/net/place.ts'
import { ApiError } from '../http/api-error.ts'
import { refusePlatformOnly } from './tenancy.ts'
import { nowhere, type OwnPlaces } from '../../schema/rules/own-places.ts'

/** Of the platform's own programs, such as trusted sources; no tenant may claim part of them. */
type ReservedNetworks = readonly Location[]

/** Places that rows may not name. */
export interface Reserved {
  readonly networks: ReservedNetworks
  readonly own: OwnPlaces
}

export const nothingReserved: Reserved = { networks: [], own: nowhere }

/** `reservedNetworks`: in CIDR notation. */
export const reservedBy = ({
  reservedNetworks,
  ownPlaces: own,
}: {
  readonly reservedNetworks: readonly string[]
  readonly ownPlaces: OwnPlaces
}): Reserved => ({
  own,
  networks: reservedNetworks.map((network) => {
    const [host = '', bits = '128'] = network.split('/')
    return locationOf({ host, netmask: Number(bits) })
  }),
})

/**
 * The shortest prefixes that a tenant credential may write. Sources within a carrier's network are never
 * banned, and no other tenant may have an address there: a tenant could claim half of the internet.
 */
const LEAST_PREFIX = { 4: 24, 6: 48 } as const

/** Throws 409 at `path(index)` when an address of `claims`, for a row of `owner`, belongs to another owner. */
export async function refuseForeignPlaces(
  store: Store,
  owner: { readonly tenantId: number | null; readonly scope: RequestScope },
  claims: readonly Claim[],
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
