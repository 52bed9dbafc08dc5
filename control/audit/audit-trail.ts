import { createHash } from 'node:crypto'
import type { Context, MiddlewareHandler } from 'hono'
import { routePath } from 'hono/route'
import type { ControlEnv } from '../http/control-env.ts'
import { isLogin } from '../middleware/rate-limit.ts'
import type { AuditLog } from './audit-log.ts'

/** The methods that it is to be mounted for; the others change nothing. */
export const mutatingMethods = ['POST', 'PUT', 'PATCH', 'DELETE'] as const

/**
 * Writes one entry for every mutating request of a valid credential, and for every login. Requests
 * without one are left out: anybody could fill the disk with them.
 */
export function auditTrail(log: AuditLog, now: () => number): MiddlewareHandler<ControlEnv> {
  return (c, next) => {
    if (c.get('presented').kind !== 'accepted' && !isLogin(c)) return next()
    if (isCharging(c)) return next()
    return recorded(c, next, log, now)
  }
}

/** Nodes report several times a call; call record, ledger and report tell more than an entry would. */
const isCharging = (c: Context<ControlEnv>): boolean => c.req.path.startsWith('/api/ocs/')

async function recorded(
  c: Context<ControlEnv>,
  next: () => Promise<void>,
  log: AuditLog,
  now: () => number,
): Promise<void> {
  await next()
  if (c.get('isAudited')) return
  const presented = c.get('presented')
  const principal = presented.kind === 'accepted' ? presented.principal : undefined
  const change = c.get('change')
  const { status } = c.res
  log.record({
    at: now(),
    actor: principal?.actor ?? c.get('loginActor') ?? 'anonymous',
    tenant_id: principal?.tenantId ?? null,
    address: c.get('clientAddress'),
    action: `${c.req.method} ${routePath(c, -1)}`,
    target: c.req.path,
    outcome: status < 400 ? 'success' : status < 500 ? 'refused' : 'failed',
    status,
    code: c.get('refusal')?.code ?? null,
    before_digest: digest(change?.before),
    after_digest: digest(change?.after),
    correlation_id: c.get('correlationId'),
  })
}

/** SHA-256 of the JSON as the API shows it; null: nothing there, or not told by the route. */
function digest(shown: unknown): string | null {
  if (shown === null || shown === undefined) return null
  return createHash('sha256').update(JSON.stringify(shown)).digest('base64url')
}
