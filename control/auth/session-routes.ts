/** Sessions seen and ended: the own ones, and for administrators those of their users. */
import { type Context, Hono } from 'hono'
import { z } from 'zod'
import { earliest } from '../../schema/clock.ts'
import { timeToText } from '../../schema/columns.ts'
import { ApiError, notFound } from '../http/api-error.ts'
import type { ControlEnv } from '../http/control-env.ts'
import { ok } from '../http/envelope.ts'
import { data } from '../http/operation.ts'
import { describeRoute, validate } from '../http/validate.ts'
import { exampleTime, moment } from '../http/view-fields.ts'
import type { UserPrincipal } from './principal.ts'
import { requires, requiresCredential } from './requires.ts'
import type { SeenSession } from './seen-sessions.ts'
import { fingerprint } from './sessions.ts'
import type { LoginDeps } from './sign-in.ts'
import { type UserRow, visibleUser } from './user-store.ts'

const seenView = z
  .strictObject({
    session_id: z.string(),
    is_current: z.boolean().describe('The session of this request.'),
    since: moment,
    last_seen_at: moment.describe('To the minute.'),
    expires_at: moment.describe('Unless it is renewed.'),
    address: z.string(),
    user_agent: z.string().nullable(),
    identity_provider_id: z.int().nullable().describe('Null: it began with a password.'),
  })
  .meta({ id: 'SeenSession' })

export type SeenSessionView = z.output<typeof seenView>

const exampleSeen = {
  session_id: 'mB3bHcTRyQk1cUQ5u0nq5A',
  is_current: true,
  since: exampleTime,
  last_seen_at: exampleTime,
  expires_at: exampleTime,
  address: '192.0.2.1',
  user_agent: 'Mozilla/5.0',
  identity_provider_id: null,
}

const ended = z.strictObject({ ended: z.int().min(0).describe('How many sessions have ended.') })
const sessionPath = z.strictObject({ sessionId: z.string().max(64) })
const userPath = z.strictObject({ id: z.string().max(20) })

/** Mounted under `/api/v1`. */
export const sessionRoutes = (deps: LoginDeps) =>
  new Hono<ControlEnv>()
    .route('/', listOwnRoute(deps))
    .route('/', endOwnRoute(deps))
    .route('/', endOthersRoute(deps))
    .route('/', listOfUserRoute(deps))
    .route('/', endOfUserRoute(deps))

const listOwnRoute = (deps: LoginDeps) =>
  new Hono<ControlEnv>().get(
    '/auth/sessions',
    describeRoute({
      id: 'listOwnSessions',
      tag: 'Sessions',
      summary: 'List the own sessions that have not ended, newest first',
      answer: data(z.array(seenView), [exampleSeen]),
      refusals: [400],
    }),
    requiresCredential(),
    async (c) => {
      const { userId, passwordMark, jti } = person(c)
      const found = await deps.sessions.seen.list(userId, passwordMark, earliest(deps))
      return ok(c, found.map(viewFor(jti)))
    },
  )

const endOwnRoute = (deps: LoginDeps) =>
  new Hono<ControlEnv>().delete(
    '/auth/sessions/:sessionId',
    describeRoute({
      id: 'endOwnSession',
      tag: 'Sessions',
      summary: 'End one of the own sessions',
      answer: data(ended, { ended: 1 }),
      refusals: [400],
    }),
    requiresCredential(),
    validate('param', sessionPath),
    async (c) => {
      const { sessionId } = c.req.valid('param')
      const { userId } = person(c)
      if (!(await deps.sessions.seen.end(userId, sessionId, earliest(deps))))
        throw notFound('Session')
      return ok(c, { ended: 1 })
    },
  )

const endOthersRoute = (deps: LoginDeps) =>
  new Hono<ControlEnv>().delete(
    '/auth/sessions',
    describeRoute({
      id: 'endOtherSessions',
      tag: 'Sessions',
      summary: 'End all own sessions but this one',
      answer: data(ended, { ended: 2 }),
      refusals: [400],
    }),
    requiresCredential(),
    async (c) => {
      const { userId, jti } = person(c)
      return ok(c, { ended: await deps.sessions.seen.endAll(userId, jti, earliest(deps)) })
    },
  )

const listOfUserRoute = (deps: LoginDeps) =>
  new Hono<ControlEnv>().get(
    '/users/:id/sessions',
    describeRoute({
      id: 'listUserSessions',
      tag: 'Users',
      summary: 'List the sessions of a user that have not ended, newest first',
      answer: data(z.array(seenView), [exampleSeen]),
    }),
    requires('users:read'),
    validate('param', userPath),
    async (c) => {
      const { principal } = c.var
      const user = await visibleUser(deps.users, c.req.valid('param').id, principal)
      const found = await deps.sessions.seen.list(user.id, markOf(user), earliest(deps))
      return ok(c, found.map(viewFor(principal.kind === 'user' ? principal.jti : undefined)))
    },
  )

const endOfUserRoute = (deps: LoginDeps) =>
  new Hono<ControlEnv>().delete(
    '/users/:id/sessions',
    describeRoute({
      id: 'endUserSessions',
      tag: 'Users',
      summary: 'End all sessions of a user',
      answer: data(ended, { ended: 2 }),
    }),
    requires('users:write'),
    validate('param', userPath),
    async (c) => {
      const user = await visibleUser(deps.users, c.req.valid('param').id, c.var.principal)
      return ok(c, {
        ended: await deps.sessions.seen.endAll(user.id, undefined, earliest(deps)),
      })
    },
  )

const markOf = ({ password_hash: hash }: UserRow): string => fingerprint(hash)

const viewFor = (own: string | undefined) => (session: SeenSession) => ({
  session_id: session.jti,
  is_current: session.jti === own,
  since: timeToText(session.begun_at),
  last_seen_at: timeToText(session.last_seen_at),
  expires_at: timeToText(session.expires_at),
  address: session.address,
  user_agent: session.user_agent,
  identity_provider_id: session.identity_provider_id,
})

function person(c: Context<ControlEnv>): UserPrincipal {
  const { principal } = c.var
  if (principal.kind === 'user') return principal
  throw new ApiError(400, 'not_a_session', 'An application key has no sessions')
}
