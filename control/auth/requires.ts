/**
 * The first handler of every route: decides who is admitted. Its notes are the table route → scope.
 */
import type { Context, MiddlewareHandler } from 'hono'
import type { CustomerPrincipal, Presented, Principal } from './principal.ts'
import type { Scope } from './scopes.ts'
import { wrongTenant } from './tenants.ts'
import { ApiError } from '../http/api-error.ts'
import { type ControlEnv, requestHeader } from '../http/control-env.ts'
import { refuseUnversioned } from '../http/precondition.ts'
import { type Access, describeHandler, isRepeatable } from '../http/validate.ts'

/** Requires a valid credential with this scope: 401 without the first, 403 without the second. */
export const requires = (scope: Scope): MiddlewareHandler<ControlEnv> =>
  guard({ kind: 'scope', scope }, (principal) => admitScope(principal, scope))

/** The same for resources without a tenant: rejects tenant credentials. */
export const requiresGlobal = (scope: Scope): MiddlewareHandler<ControlEnv> =>
  guard({ kind: 'scope', scope }, (principal) => {
    admitScope(principal, scope)
    if (principal.tenantId !== null) throw wrongTenant()
  })

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
export const requiresCredential = (): MiddlewareHandler<ControlEnv> =>
  guard({ kind: 'authenticated' }, (principal) => {
    if (principal.kind === 'customer')
      throw new ApiError(403, 'insufficient_scope', 'A customer session cannot use this route')
  })

/** Requires a customer session; `customerOf(c.var.principal)` is the customer. */
export const requiresCustomer = (): MiddlewareHandler<ControlEnv> =>
  guard({ kind: 'customer' }, customerOf)

export function customerOf(principal: Principal): CustomerPrincipal {
  if (principal.kind === 'customer') return principal
  throw new ApiError(403, 'insufficient_scope', 'This route is for customer sessions')
}

/** A payment provider repeats by its own means: the id of the event says what is a repetition. */
const repeatedByItself: ReadonlySet<string> = new Set(['/api/client/payments/webhook'])

/**
 * A client that sends the key with a POST relies on it: where it would be ignored, nothing is done.
 */
function refuseUnrepeatable(c: Context<ControlEnv>): void {
  const isSent = c.req.method === 'POST' && requestHeader(c, 'idempotency-key') !== undefined
  if (isSent && !isRepeatable(c) && !repeatedByItself.has(c.req.path))
    throw new ApiError(
      400,
      'idempotency_not_supported',
      'This operation does not honour Idempotency-Key: nothing was done. Send it without ' +
        'the header',
    )
}

const pass: MiddlewareHandler<ControlEnv> = (c, next) => {
  refuseUnrepeatable(c)
  refuseUnversioned(c)
  return next()
}
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
    refuseUnrepeatable(c)
    refuseUnversioned(c)
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

/**
 * Limits a credential that is bound to one SIP domain (SPECIFICATION.md §2.2, §5.5). Extensions,
 * keys and click-to-call have a domain; call records, carriers, money and the rest belong to the
 * whole tenant and would reveal the calls of its other domains. Throws 403 for a scope that covers
 * more than the principal's domain.
 */
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

export interface BeyondScope {
  /** The name in the body. */
  readonly field: string
  /** One of them is enough. */
  readonly scopes: readonly [Scope, ...Scope[]]
}

/** Throws 403, with the field's path, for the first field that the principal may not write. */
export function refuseBeyondScope(principal: Principal, fields: readonly BeyondScope[]): void {
  for (const { field, scopes } of fields) {
    const held = scopes.find((scope) => principal.scopes.has(scope)) ?? scopes[0]
    try {
      admitScope(principal, held)
    } catch (error) {
      if (!(error instanceof ApiError)) throw error
      const { status, code, message } = error
      const details = [{ path: field, message: `requires the scope ${scopes.join(' or ')}` }]
      throw new ApiError(status, code, message, { details })
    }
  }
}

/** The change that a write made to a row, as the API shows it. */
export interface WrittenRow<View> {
  /** The body, or the given part of a PATCH. */
  readonly given: Readonly<Record<string, unknown>>
  /** Absent for a new row. */
  readonly before?: View
  readonly after: View
}

/** Returns `fields` whose condition is true. */
export const fieldsWhere = (
  ...fields: readonly (readonly [boolean, BeyondScope['field'], BeyondScope['scopes']])[]
): readonly BeyondScope[] =>
  fields.flatMap(([isWritten, field, scopes]) => (isWritten ? [{ field, scopes }] : []))

/**
 * The scopes that undoing a write takes: those of its resource, and of the fields on the way there
 * and back.
 */
export function scopesToUndo<View>(
  { scopes: held }: Principal,
  scope: Scope,
  written: WrittenRow<View> & { readonly before: View },
  beyond: (written: WrittenRow<View>) => readonly BeyondScope[] = () => [],
): readonly Scope[] {
  const { before, after } = written
  const fields = [...beyond(written), ...beyond({ given: {}, before: after, after: before })]
  const ofFields = fields.map(({ scopes }) => scopes.find((each) => held.has(each)) ?? scopes[0])
  return [...new Set([scope, ...ofFields])]
}
