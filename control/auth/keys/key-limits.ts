/** How far a credential reaches beside its scopes: how often it may ask, until when, and from where. */
import { ApiError, type ErrorDetail } from '../../http/api-error.ts'
import { parseNetwork } from '../../../schema/net/ip-address.ts'
import { overlap } from '../../../schema/net/place.ts'
import type { KeyLimits, Principal } from '../principal.ts'

/** What a session of a person may ask in a minute. A person has no expiry and no addresses. */
export const SESSION_RPM = 600
const person: KeyLimits = { rateLimitRpm: SESSION_RPM, expiresAt: null, allowedIps: [] }

/**
 * Null: none. An administrator's session makes keys of any kind. So does a key of the platform with every scope,
 * no expiry and no addresses: it could make an administrator and go on as that one.
 */
export function limitsOf(principal: Principal): KeyLimits | null {
  if (principal.kind !== 'key') return null
  const { limits, scopeLabels, tenantId } = principal
  const isBounded = limits.expiresAt !== null || limits.allowedIps.length > 0
  const isAdministrator = scopeLabels.includes('*') && tenantId === null
  return isAdministrator && !isBounded && limits.rateLimitRpm >= SESSION_RPM ? null : limits
}

/** Throws 403 when `wanted` reaches further than `holder` in any way. */
export function refuseWider(wanted: KeyLimits, holder: KeyLimits | null): void {
  const details = holder === null ? [] : widerThan(wanted, holder)
  if (details.length === 0) return
  throw new ApiError(
    403,
    'limit_escalation',
    `The credential cannot hand out more than it has: ${details.map(({ path }) => path).join(', ')}`,
    { details },
  )
}

/** Throws 403 for a key whose limits a person would not have: it could go on as that person. */
export function refusePersonBy(principal: Principal): void {
  refuseWider(person, limitsOf(principal))
}

function widerThan(wanted: KeyLimits, holder: KeyLimits): ErrorDetail[] {
  const isLater =
    holder.expiresAt !== null && (wanted.expiresAt === null || wanted.expiresAt > holder.expiresAt)
  return [
    ...(wanted.rateLimitRpm > holder.rateLimitRpm
      ? [
          {
            path: 'rate_limit_rpm',
            message: `is more than the ${holder.rateLimitRpm} of the credential`,
          },
        ]
      : []),
    ...(isLater ? [{ path: 'expires_at', message: 'is later than that of the credential' }] : []),
    ...(isWithin(wanted.allowedIps, holder.allowedIps)
      ? []
      : [{ path: 'allowed_ips', message: 'is not within the networks of the credential' }]),
  ]
}

/** Every network of `inner` lies in one of `outer`; no networks are all addresses. */
function isWithin(inner: readonly string[], outer: readonly string[]): boolean {
  if (outer.length === 0) return true
  return inner.length > 0 && inner.every((cidr) => outer.some((wider) => holds(wider, cidr)))
}

function holds(outer: string, inner: string): boolean {
  const [wide, narrow] = [parseNetwork(outer), parseNetwork(inner)]
  if (wide === undefined || narrow === undefined) return false
  return wide.prefixLength <= narrow.prefixLength && overlap(wide, narrow)
}
