/** Limits of a credential besides its scopes: requests per minute, expiry, and addresses. */
import { ApiError, type ErrorDetail } from '../http/api-error.ts'
import { parseNetwork } from '../../schema/net/ip-address.ts'
import { overlap } from '../../schema/net/place.ts'
import type { KeyLimits, Principal } from './principal.ts'

/** Requests per minute of a person's session. A person has no expiry and no addresses. */
export const SESSION_RPM = 600
const person: KeyLimits = { rateLimitRpm: SESSION_RPM, expiresAt: null, allowedIps: [] }

/**
 * Null for no limits. An admin session creates keys of any kind. So does a global key with every scope, no
 * expiry and no addresses: it could create an admin and continue as that user.
 */
export function limitsOf(principal: Principal): KeyLimits | null {
  if (principal.kind !== 'key') return null
  const { limits, scopeLabels, tenantId } = principal
  const isBounded = limits.expiresAt !== null || limits.allowedIps.length > 0
  const isAdministrator = scopeLabels.includes('*') && tenantId === null
  return isAdministrator && !isBounded && limits.rateLimitRpm >= SESSION_RPM ? null : limits
}

/** Throws 403 when `wanted` exceeds `holder` in any way. */
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

/** Throws 403 for a key with limits that a person would not have: it could continue as that person. */
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
            message: `exceeds the ${holder.rateLimitRpm} of the credential`,
          },
        ]
      : []),
    ...(isLater ? [{ path: 'expires_at', message: 'is later than that of the credential' }] : []),
    ...(isWithin(wanted.allowedIps, holder.allowedIps)
      ? []
      : [{ path: 'allowed_ips', message: 'is not within the networks of the credential' }]),
  ]
}

/** Whether every network of `inner` lies in one of `outer`; no networks means all addresses. */
function isWithin(inner: readonly string[], outer: readonly string[]): boolean {
  if (outer.length === 0) return true
  return inner.length > 0 && inner.every((cidr) => outer.some((wider) => holds(wider, cidr)))
}

function holds(outer: string, inner: string): boolean {
  const [wide, narrow] = [parseNetwork(outer), parseNetwork(inner)]
  if (wide === undefined || narrow === undefined) return false
  return wide.prefixLength <= narrow.prefixLength && overlap(wide, narrow)
}
