import type { Context } from 'hono'
import { readCredential } from './credential.ts'
import type { KeyVerifier } from './keys/verify-key.ts'
import type { Presented } from './principal.ts'
import { authorizationOf } from './session-cookie.ts'
import type { Sessions } from './users/sessions.ts'
import { type ControlEnv, requestHeader, type Step, whenKnown } from '../http/control-env.ts'

const nothing: Presented = { kind: 'nothing' }
const rejected: Presented = { kind: 'rejected' }

/** The result of checking a request's credential now. A known key takes no statement. */
export const judgeWith =
  (keys: KeyVerifier, sessions: Sessions, now: () => number) =>
  (
    authorization: string | undefined,
    apiKey: string | undefined,
    address: string,
  ): Presented | Promise<Presented> => {
    const credential = readCredential(authorization, apiKey)
    if (credential === undefined) return nothing
    if (credential.kind === 'key') return keys.verify(credential.token, address, now())
    return credential.kind === 'session' ? sessions.verify(credential.token, now()) : rejected
  }

/**
 * Authenticates the request but never rejects it: routes decide (`requires.ts`), so that public routes stay
 * public and an unknown path is 404 for every client.
 */
export function authenticate(
  keys: KeyVerifier,
  sessions: Sessions,
  addressOf: (c: Context<ControlEnv>) => string,
  now: () => number,
): Step {
  const judge = judgeWith(keys, sessions, now)
  return (c) => {
    const address = addressOf(c)
    c.set('clientAddress', address)
    const presented = judge(authorizationOf(c), requestHeader(c, 'x-api-key'), address)
    if (presented instanceof Promise) c.set('presented', nothing)
    return whenKnown(presented, (known) => c.set('presented', known))
  }
}
