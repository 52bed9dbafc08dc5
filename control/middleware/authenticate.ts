import type { Context } from 'hono'
import { readCredential } from '../auth/credential.ts'
import type { KeyVerifier } from '../auth/keys/verify-key.ts'
import type { Presented } from '../auth/principal.ts'
import type { Sessions } from '../auth/users/sessions.ts'
import type { ControlEnv } from '../http/control-env.ts'
import { requestHeader } from '../http/request-head.ts'
import type { Step } from './in-order.ts'

const nothing: Presented = { kind: 'nothing' }
const rejected: Presented = { kind: 'rejected' }

/** What a request's credential is worth at the moment. */
export const judgeWith =
  (keys: KeyVerifier, sessions: Sessions, now: () => number) =>
  (authorization: string | undefined, apiKey: string | undefined, address: string): Presented => {
    const credential = readCredential(authorization, apiKey)
    if (credential === undefined) return nothing
    if (credential.kind === 'key') return keys.verify(credential.token, address, now())
    return credential.kind === 'session' ? sessions.verify(credential.token, now()) : rejected
  }

/**
 * Finds out who asks. It refuses nobody: that is the route's word (`requires.ts`), so that public
 * routes stay public and an unknown path is 404 for everybody.
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
    const authorization = requestHeader(c, 'authorization')
    c.set('presented', judge(authorization, requestHeader(c, 'x-api-key'), address))
  }
}
