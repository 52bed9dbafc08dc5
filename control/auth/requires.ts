/** The first handler of every route: decides who is admitted. Its notes are the table route → scope. */
import type { MiddlewareHandler } from 'hono'
import { ApiError } from '../http/api-error.ts'
import type { ControlEnv } from '../http/control-env.ts'
import { type Access, describeHandler } from '../http/validate.ts'
import { refuseBeyondDomain } from './domain-limit.ts'
import type { CustomerPrincipal, Presented, Principal } from './principal.ts'
import type { Scope } from './scopes.ts'
import { wrongTenant } from './tenants.ts'

/** Requires a valid credential with this scope: 401 without the first, 403 without the second. */
export function requires(scope: Scope): MiddlewareHandler<ControlEnv> {
  return guard({ kind: 'scope', scope }, (principal) => admitScope(principal, scope))
}

/** The same for resources without a tenant: rejects tenant credentials. */
export function requiresGlobal(scope: Scope): MiddlewareHandler<ControlEnv> {
  return guard({ kind: 'scope', scope }, (principal) => {
    admitScope(principal, scope)
    if (principal.tenantId !== null) throw wrongTenant()
  })
}

/** Throws 403 unless the principal has the scope where it acts. */
export function admitScope(principal: Principal, scope: Scope): void {
  if (!principal.scopes.has(scope))
    throw new ApiError(403, 'insufficient_scope', lackOf('This', [scope], principal))
  refuseBeyondDomain(principal, scope)
}

/** Says what is required, and what the credential has. */
export function lackOf(what: string, scopes: readonly Scope[], { scopeLabels }: Principal): string {
  const own = scopeLabels.length === 0 ? 'none' : scopeLabels.join(', ')
  return `${what} needs the scope ${scopes.join(' and ')}; the credential has ${own}`
}

/** Requires any valid credential of a machine or of staff. */
export function requiresCredential(): MiddlewareHandler<ControlEnv> {
  return guard({ kind: 'authenticated' }, (principal) => {
    if (principal.kind !== 'customer') return
    throw new ApiError(403, 'insufficient_scope', 'A customer session cannot use this route')
  })
}

/** Requires a customer session; `customerOf(c.var.principal)` is the customer. */
export function requiresCustomer(): MiddlewareHandler<ControlEnv> {
  return guard({ kind: 'customer' }, customerOf)
}

export function customerOf(principal: Principal): CustomerPrincipal {
  if (principal.kind === 'customer') return principal
  throw new ApiError(403, 'insufficient_scope', 'This route is for customer sessions')
}

const pass: MiddlewareHandler<ControlEnv> = (_, next) => next()
describeHandler(pass, { access: { kind: 'public' } })

/** Requires no credential. */
export const openToAll = (): MiddlewareHandler<ControlEnv> => pass

function guard(
  access: Access,
  admit: (principal: Principal) => void,
): MiddlewareHandler<ControlEnv> {
  const check: MiddlewareHandler<ControlEnv> = (c, next) => {
    const principal = principalOf(c.get('presented'))
    admit(principal)
    c.set('principal', principal)
    return next()
  }
  describeHandler(check, { access })
  return check
}

function principalOf(presented: Presented): Principal {
  if (presented.kind === 'accepted') return presented.principal
  if (presented.kind === 'wrong-address')
    throw new ApiError(403, 'address_not_allowed', 'The key is not allowed from this address')
  throw new ApiError(401, 'unauthorized', 'API key is invalid, expired or unauthorized', {
    headers: { 'WWW-Authenticate': 'Bearer' },
  })
}
