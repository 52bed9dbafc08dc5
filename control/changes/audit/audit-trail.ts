import type { Context, MiddlewareHandler } from 'hono'
import { routePath } from 'hono/route'
import type { Clocks } from '../../../schema/clock.ts'
import type { Principal } from '../../auth/principal.ts'
import type { ChangeDigests, ControlEnv } from '../../http/control-env.ts'
import { isLogin } from '../../auth/rate-limit.ts'
import { tellChange } from '../../nodes/elsewhere.ts'
import { auditedActor, type AuditLog } from './audit-log.ts'
import { EntryLimit } from './entry-limit.ts'
import { digestOf } from './digest.ts'

/** The methods to mount it for; the others change nothing. */
export const mutatingMethods = ['POST', 'PUT', 'PATCH', 'DELETE'] as const

/**
 * Writes one entry for every mutating request with a valid credential and for every login, whatever the
 * result: it is mounted before everything that may reject. It leaves out requests without a credential,
 * those over a rate limit, and failed logins beyond a few per minute, because any client could fill the
 * disk with them. `onOmitted` counts those logins.
 */
export function auditTrail(
  log: AuditLog,
  { now, steadyNow }: Clocks,
  onOmitted: () => void,
): MiddlewareHandler<ControlEnv> {
  const limit = new EntryLimit()
  const admits = (): boolean => {
    const isAdmitted = limit.admits(steadyNow())
    if (!isAdmitted) onOmitted()
    return isAdmitted
  }
  return (c, next) => (isCharging(c) ? next() : recorded(c, next, { log, now, admits }))
}

/** Nodes report several times per call; call record, ledger and report say more than an entry would. */
const isCharging = (c: Context<ControlEnv>): boolean => c.req.path.startsWith('/api/ocs/')

async function recorded(
  c: Context<ControlEnv>,
  next: () => Promise<void>,
  { log, now, admits }: { log: AuditLog; now: () => number; admits: () => boolean },
): Promise<void> {
  await next()
  const principal = whoAsked(c)
  if (c.get('nodeRequest') !== undefined) tellChange(c, digestsOf(c))
  const refusal = c.get('refusal')
  if (c.get('isAudited') || (principal === undefined && !isLogin(c))) return
  if (refusal?.code === 'rate_limited') return
  const actor = principal?.actor ?? c.get('loginActor')
  if (actor === undefined && !admits()) return
  const { before, after, changeId } = digestsOf(c)
  const { status } = c.res
  await log.record({
    at: now(),
    ...auditedActor(principal),
    actor: actor ?? 'anonymous',
    address: c.get('clientAddress'),
    action: `${c.req.method} ${routePath(c, -1)}`,
    target: c.req.path,
    outcome: status < 400 ? 'success' : status < 500 ? 'refused' : 'failed',
    status,
    code: refusal?.code ?? null,
    before_digest: before,
    after_digest: after,
    correlation_id: c.get('correlationId'),
    change_id: changeId,
    reason: c.get('change')?.reason ?? null,
  })
}

function digestsOf(c: Context<ControlEnv>): ChangeDigests {
  const change = c.get('change')
  const digests = { before: digestOf(change?.before), after: digestOf(change?.after) }
  const made = { ...digests, changeId: change?.changeId ?? null }
  return c.get('changeDigests') ?? made
}

/** A key used from an address that is not allowed is worth an entry. */
function whoAsked(c: Context<ControlEnv>): Principal | undefined {
  const presented = c.get('presented')
  const isKnown = presented.kind === 'accepted' || presented.kind === 'wrong-address'
  return isKnown ? presented.principal : undefined
}
