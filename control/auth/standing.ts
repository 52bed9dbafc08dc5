/** Answers that go on for minutes: whether whoever began one would be let in once more. */
import type { Context } from 'hono'
import type { ControlEnv } from '../http/control-env.ts'
import { requestHeader } from '../http/request-head.ts'
import { judgeWith } from '../middleware/authenticate.ts'
import type { Access } from './access.ts'
import { admitScope } from './requires.ts'
import type { Scope } from './scopes.ts'

/** To be asked again while the answer to `c` goes on; false: its credential or its tenant holds no longer. */
export function standingOf(
  c: Context<ControlEnv>,
  scope: Scope,
  { verifier, sessions, tenants }: Pick<Access, 'verifier' | 'sessions' | 'tenants'>,
  now: () => number,
): () => boolean {
  const judge = judgeWith(verifier, sessions, now)
  const address = c.get('clientAddress')
  const authorization = requestHeader(c, 'authorization')
  const apiKey = requestHeader(c, 'x-api-key')
  const slug = requestHeader(c, 'x-tenant-slug')
  const { tenantId } = c.get('principal')
  return () => {
    try {
      const presented = judge(authorization, apiKey, address)
      if (presented.kind !== 'accepted') return false
      const acting = tenants.narrow(presented.principal, slug)
      admitScope(acting, scope)
      return acting.tenantId === tenantId
    } catch {
      // It is refused, or nobody can tell: a timer asks, and it may not end the process.
      return false
    }
  }
}
