/** How a session begins once somebody has shown who they are: at once, or after a second factor. */
import type { Context } from 'hono'
import { z } from 'zod'
import { type Clocks, latest } from '../../schema/clock.ts'
import { sourceKey } from '../../schema/net/ip-address.ts'
import { badRequest, notFound } from '../http/api-error.ts'
import { type ControlEnv, requestHeader } from '../http/control-env.ts'
import type { LoginGuard } from './login-guard.ts'
import type { PasswordCheck } from './password-check.ts'
import type { Lane } from './passwords.ts'
import type { SecondFactors } from './second-factors.ts'
import type { SessionOrigin } from './seen-sessions.ts'
import { SESSION_SECONDS, type Sessions } from './sessions.ts'
import {
  CHALLENGE_SECONDS,
  type SessionCarrier,
  type SignInChallenges,
} from './sign-in-challenges.ts'
import { userFields, type UserRow, type UserStore, userView } from './user-store.ts'
import { setSessionCookie } from './authenticate.ts'

export interface LoginDeps extends Clocks {
  readonly users: UserStore
  readonly sessions: Sessions
  readonly passwords: PasswordCheck
  readonly guard: LoginGuard
  readonly factors: SecondFactors
  readonly challenges: SignInChallenges
}

const { view: userSchema, example: exampleUser } = userFields

export const challengeView = z
  .strictObject({
    second_factor: z
      .enum(['code', 'enrolment'])
      .describe('`enrolment`: the user has none yet, and must set one up.'),
    challenge: z.string().describe('Proves the password. It opens nothing by itself.'),
    expires_in: z.int().describe('Lifetime of the challenge in seconds.'),
  })
  .meta({ id: 'SignInChallenge' })

export type SignInChallengeView = z.output<typeof challengeView>

const expiresIn = z.int().describe('Lifetime in seconds.')

export const sessionView = z.strictObject({ user: userSchema, expires_in: expiresIn })
export const exampleOpened = { user: exampleUser, expires_in: 3_600 }

export const tokenView = (who: z.ZodType) =>
  z.strictObject({
    token: z.string().describe('A JWT.'),
    token_type: z.literal('Bearer'),
    expires_in: expiresIn,
    user: who,
  })

export const exampleToken = (who: object) => ({
  token: 'eyJhbGciOiJIUzI1NiJ9.e30.x',
  token_type: 'Bearer',
  expires_in: 3_600,
  user: who,
})

/** Undefined: the password is enough for this user. */
export async function challengeOf(
  deps: LoginDeps,
  user: UserRow,
  carrier: SessionCarrier,
): Promise<z.output<typeof challengeView> | undefined> {
  const { factors, challenges } = deps
  const isConfirmed = await factors.isConfirmed(user.id)
  if (!isConfirmed && !(await factors.isRequired(user.tenant_id))) return undefined
  return {
    second_factor: isConfirmed ? 'code' : 'enrolment',
    challenge: await challenges.issue(user, carrier, latest(deps)),
    expires_in: CHALLENGE_SECONDS,
  }
}

/** Opens the session of a user: in the cookie of the console, or as a token of the answer. */
export async function openSession(
  c: Context<ControlEnv>,
  deps: LoginDeps,
  user: UserRow,
  carrier: SessionCarrier,
) {
  const origin = originOf(c)
  const shown = userView(user)
  if (carrier === 'token') {
    const token = await deps.sessions.forUser(user, latest(deps), origin)
    return { token, token_type: 'Bearer' as const, expires_in: SESSION_SECONDS, user: shown }
  }
  setSessionCookie(c, await deps.sessions.renewableForUser(user, latest(deps), origin))
  return { user: shown, expires_in: SESSION_SECONDS }
}

export const originOf = (c: Context<ControlEnv>): SessionOrigin => ({
  address: c.get('clientAddress'),
  userAgent: requestHeader(c, 'user-agent'),
})

/** A guess at a code, as `SecondFactors` counts and judges it. */
export const guessIn = (c: Context<ControlEnv>, deps: Clocks, code: string) => ({
  code,
  address: c.get('clientAddress'),
  now: deps.now(),
  steadyNow: deps.steadyNow(),
})

/**
 * Under what the wrong passwords of a login are counted. Staff and customers are counted apart: a
 * tenant, which gives its customers their addresses, must not end a lock of somebody else's user.
 */
export const guardedLogin = (lane: Lane, slug: string | undefined, name: string): string =>
  `${lane} ${slug === undefined ? name : `${slug}/${name}`}`

/**
 * Returns the user, whose password this is. A wrong one counts as a failed login of the user.
 *
 * @param path of the password in the body.
 */
export async function checkOwn(
  c: Context<ControlEnv>,
  { users, passwords, guard, steadyNow }: LoginDeps,
  id: number,
  password: string,
  path = 'password',
): Promise<UserRow> {
  const user = await users.byId(id)
  if (user === undefined) throw notFound('User')
  const address = c.get('clientAddress')
  const { username, tenant_slug: slug } = user
  const pair = guardedLogin('staff', slug ?? undefined, username)
  await guard.refuseLocked(pair, address, steadyNow())
  const asker = { lane: 'staff' as const, source: sourceKey(address) }
  const isRight = await passwords.matches(password, user.password_hash, asker)
  await guard.refuseLocked(pair, address, steadyNow())
  if (isRight) return user
  await guard.failed(pair, address, steadyNow())
  throw badRequest('The body is invalid', [{ path, message: 'is not the password of this user' }])
}
