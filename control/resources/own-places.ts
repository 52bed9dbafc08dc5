/**
 * Rejects destinations that are this installation itself, and those of tenants inside its networks. What a
 * row has kept since it was last written is not asked for again: names are checked at each resolution.
 */
import type { RequestScope } from '../auth/tenants.ts'
import { isIP } from 'node:net'
import { sipTarget, type SipTarget } from '../../schema/net/sip-target.ts'
import { innerCheck, isOwnListener, type OwnPlaces } from '../../schema/rules/own-places.ts'
import { ApiError } from '../http/api-error.ts'
import type { WrittenDestination } from './gateway-reach.ts'

/**
 * Throws 409 for the first destination that a SIP listener of this installation would receive, and for the
 * first one of a tenant that leads to loopback, to link-local addresses or into the machine's own networks.
 * Of names, the addresses count that DNS has just told (`scope.addressesOf`).
 */
export function refuseOwnPlaces(
  destinations: readonly WrittenDestination[],
  scope: RequestScope,
  places: OwnPlaces,
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
      throw new ApiError(409, 'inner_address', 'A destination is inside the platform', {
        details: [
          {
            path,
            message: 'must not lead to loopback, link-local or an own network of the platform',
          },
        ],
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
