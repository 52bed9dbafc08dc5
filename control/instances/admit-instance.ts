/**
 * Admits requests of other instances. They carry the caller's own credential, which is judged here
 * as the caller's request would be; that the instance has counted, limited and audited the request
 * is all that the token grants.
 */
import type { Context } from 'hono'
import type { Clocks } from '../../schema/clock.ts'
import { readBody } from '../http/body.ts'
import { type ControlEnv, requestHeader, setAnswerHeader, type Step } from '../http/control-env.ts'
import type { Membership } from './membership.ts'
import {
  bodyHash,
  INSTANCE_HEADER,
  type InstanceClaims,
  openToken,
  proofOf,
} from './instance-token.ts'
import { UsedNonces } from './used-nonces.ts'

/** How far the clocks of two instances may differ, the way of the request included. */
export const MAX_SKEW_MS = 30_000

/** Runs before authentication. Without a valid token the header means nothing. */
export function admitInstances({ self, key }: Membership, { now, steadyNow }: Clocks): Step {
  const used = new UsedNonces(2 * MAX_SKEW_MS, steadyNow())
  // Tokens that an earlier run of this instance accepted are not known.
  const startedAt = now()
  const isFresh = ({ to, at }: InstanceClaims): boolean =>
    to === self && at >= startedAt && Math.abs(now() - at) <= MAX_SKEW_MS

  return (c) => {
    const token = requestHeader(c, INSTANCE_HEADER)
    if (token === undefined) return undefined
    const target = c.env.incoming.url ?? ''
    const opened = openToken(key, token, { method: c.req.method, target })
    if (opened === undefined || !isFresh(opened.claims)) return undefined
    if (!used.take(opened.nonce, steadyNow())) return undefined
    return admitWhole(c, opened.claims, proofOf(key, opened.nonce))
  }
}

async function admitWhole(
  c: Context<ControlEnv>,
  claims: InstanceClaims,
  proof: string,
): Promise<void> {
  if (bodyHash(await readBody(c)) === claims.body) admit(c, claims, proof)
}

/** From here on the request is the client's. Its own headers of the same meaning do not count. */
function admit(c: Context<ControlEnv>, claims: InstanceClaims, proof: string): void {
  const { headers } = c.env.incoming
  const given = {
    authorization: claims.authorization,
    'x-api-key': claims.apiKey,
    'x-tenant-slug': claims.tenantSlug,
    cookie: undefined,
    'idempotency-key': undefined,
  }
  for (const [name, value] of Object.entries(given))
    if (value === undefined) delete headers[name]
    else headers[name] = value
  const { from, address, question } = claims
  c.set('instanceRequest', { from, address, question })
  // The instance that the client has asked writes the entry.
  c.set('isAudited', true)
  setAnswerHeader(c, INSTANCE_HEADER, proof)
}

/**
 * Runs `step` for requests of clients only; for requests of instances, the asking instance has run
 * it.
 */
export const butInstances =
  (step: Step): Step =>
  (c) =>
    c.get('instanceRequest') === undefined ? step(c) : undefined

/** The client's address, also where another instance asks for the client. */
export const admittedAddress =
  (addressOf: (c: Context<ControlEnv>) => string) =>
  (c: Context<ControlEnv>): string =>
    c.get('instanceRequest')?.address ?? addressOf(c)
