/**
 * Limits a credential that is bound to one SIP domain (SPECIFICATION.md §2.2, §5.5). Extensions, keys and
 * click-to-call have a domain; call records, carriers, money and the rest belong to the whole tenant and
 * would reveal the calls of its other domains.
 */
import { ApiError } from '../http/api-error.ts'
import type { Principal } from './principal.ts'
import type { Scope } from './scopes.ts'

const ofDomain: ReadonlySet<Scope> = new Set<Scope>([
  'extensions:read',
  'extensions:write',
  'keys:read',
  'keys:write',
  'calls:originate',
  'mcp:read',
  'mcp:write',
  'mcp:propose',
  // Figures without names.
  'metrics:read',
])

/** Throws 403 for a scope that covers more than the principal's domain. */
export function refuseBeyondDomain(principal: Principal, scope: Scope): void {
  if (principal.domain === null || ofDomain.has(scope)) return
  const isShared = scope.endsWith(':read') || scope.startsWith('calls:')
  // A tenant without another domain has only this domain's calls and rows.
  if (isShared && principal.isOnlyDomain === true) return
  throw new ApiError(
    403,
    'wrong_domain',
    'The credential is bound to one SIP domain, but this resource belongs to the whole tenant',
  )
}
