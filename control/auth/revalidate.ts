/** Revalidates the credential of a response that lasts minutes, such as an event stream. */
import type { Context } from 'hono'
import { type ControlEnv, requestHeader } from '../http/control-env.ts'
import { judgeWith } from './authenticate.ts'
import { admitScope } from './requires.ts'
import type { Scope } from './scopes.ts'
import { authorizationOf } from './session-cookie.ts'
import type { KeyVerifier } from './keys/verify-key.ts'
import type { TenantScope } from './tenants.ts'
import type { Sessions } from './users/sessions.ts'

interface Judges {
  readonly verifier: KeyVerifier
  readonly sessions: Sessions
  readonly tenants: TenantScope
}

/**
 * Returns a check to repeat while the response to `c` lasts: resolves with false once its credential or
 * tenant is no longer valid, and never rejects.
 */
export function revalidator(
  c: Context<ControlEnv>,
  scope: Scope,
  { verifier, sessions, tenants }: Judges,
  now: () => number,
): () => Promise<boolean> {
  const judge = judgeWith(verifier, sessions, now)
  const address = c.get('clientAddress')
  const authorization = authorizationOf(c)
  const apiKey = requestHeader(c, 'x-api-key')
  const slug = requestHeader(c, 'x-tenant-slug')
  const { tenantId } = c.get('principal')
  return async () => {
    try {
      const presented = await judge(authorization, apiKey, address)
      if (presented.kind !== 'accepted') return false
      const acting = await tenants.narrow(presented.principal, slug)
      admitScope(acting, scope)
      return acting.tenantId === tenantId
    } catch {
      // Rejected, or undecidable.
      return false
    }
  }
}
