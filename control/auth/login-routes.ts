/** Login and logout of people: staff under `/auth`, customers under `/client/auth`. */
import { type Context, Hono } from 'hono'
import { z } from 'zod'
import { earliest, latest } from '../../schema/clock.ts'
import { timeToText } from '../../schema/columns.ts'
import { sourceKey } from '../../schema/net/ip-address.ts'
import {
  clearSessionCookie,
  isBySessionCookie,
  isFromOwnPage,
  setSessionCookie,
} from './authenticate.ts'
import { hashPassword, type Lane, MAX_PASSWORD_LENGTH, newPassword } from './passwords.ts'
import type { Principal } from './principal.ts'
import { customerOf, openToAll, requiresCredential, requiresCustomer } from './requires.ts'
import { actorOfUser, SESSION_SECONDS } from './sessions.ts'
import {
  challengeOf,
  challengeView,
  checkOwn,
  exampleOpened,
  exampleToken,
  guardedLogin,
  type LoginDeps,
  openSession,
  originOf,
  sessionView,
  tokenView,
} from './sign-in.ts'
import {
  type CustomerLogin,
  userFields,
  type UserRow,
  type UserStore,
  userView,
} from './user-store.ts'
import { ApiError, conflict } from '../http/api-error.ts'
import type { ControlEnv } from '../http/control-env.ts'
import { ok } from '../http/envelope.ts'
import { validate, describeRoute } from '../http/validate.ts'
import { data } from '../http/operation.ts'
import { moment } from '../http/view-fields.ts'

const customerLogin = z
  .strictObject({
    id: z.int(),
    name: z.string(),
    email: z.string().nullable(),
    role: z.literal('customer'),
  })
  .meta({ id: 'CustomerLogin' })

const { view: userSchema, example: exampleUser } = userFields

const permissions = {
  scopes: z.array(z.string()),
  permissions: z.array(z.string()).describe('The scopes with wildcards expanded.'),
  tenant_slug: z.string().nullable(),
  domain: z.string().nullable(),
}

const profileView = z
  .discriminatedUnion('kind', [
    z.strictObject({ kind: z.literal('key'), uuid: z.string(), ...permissions }),
    z.strictObject({
      kind: z.literal('user'),
      id: z.int(),
      username: z.string(),
      role: z.string(),
      is_active: z.boolean(),
      has_second_factor: z.boolean(),
      created_at: moment,
      updated_at: moment,
      ...permissions,
      expires_at: moment,
    }),
  ])
  .meta({ id: 'Profile' })

const loggedOut = z.strictObject({ logged_out: z.literal(true) })

const exampleLogin = { id: 7, name: 'Acme', email: 'billing@acme.example', role: 'customer' }

const password = z.string().min(1).max(MAX_PASSWORD_LENGTH)
const loginBody = z.strictObject({ username: z.string().min(1).max(100), password })
const ownPasswordBody = z.strictObject({ old_password: password, new_password: newPassword })
const clientLoginBody = z.strictObject({ email: z.string().min(1).max(254), password })

/** Mounted under `/api/v1`. */
export function loginRoutes(deps: LoginDeps) {
  return new Hono<ControlEnv>()
    .route('/', loginRoute(deps))
    .route('/', openSessionRoute(deps))
    .route('/', getSessionRoute(deps))
    .route('/', closeSessionRoute(deps))
    .route('/', changeOwnPasswordRoute(deps))
    .route('/', getProfileRoute(deps))
    .route('/', logoutRoute(deps))
}

const loginRoute = (deps: LoginDeps) =>
  new Hono<ControlEnv>().post(
    '/auth/login',
    describeRoute({
      id: 'login',
      tag: 'Sessions',
      summary: 'Log in as staff. Where a second factor is asked for, the answer is a challenge.',
      body: { username: 'ada', password: 'correct horse' },
      answer: data(z.union([tokenView(userSchema), challengeView]), exampleToken(exampleUser)),
      refusals: [401],
    }),
    openToAll(),
    validate('json', loginBody),
    async (c) => {
      const user = await userOf(c, deps, c.req.valid('json'))
      const challenge = await challengeOf(deps, user, 'token')
      return ok(c, challenge ?? (await openSession(c, deps, user, 'token')))
    },
  )

const openSessionRoute = (deps: LoginDeps) =>
  new Hono<ControlEnv>().post(
    '/auth/session',
    describeRoute({
      id: 'openSession',
      tag: 'Sessions',
      summary:
        'Sign in to the console: the session is a cookie that scripts cannot read. Where a ' +
        'second factor is asked for, the answer is a challenge.',
      body: { username: 'ada', password: 'correct horse' },
      answer: data(z.union([sessionView, challengeView]), exampleOpened),
      refusals: [401],
    }),
    openToAll(),
    validate('json', loginBody),
    async (c) => {
      // A page of another site must not sign its visitor in as another user.
      if (!isFromOwnPage(c))
        throw new ApiError(403, 'other_page', 'Only the page of this console may open its session')
      const user = await userOf(c, deps, c.req.valid('json'))
      const challenge = await challengeOf(deps, user, 'cookie')
      return ok(c, challenge ?? (await openSession(c, deps, user, 'cookie')))
    },
  )

const getSessionRoute = (deps: LoginDeps) =>
  new Hono<ControlEnv>().get(
    '/auth/session',
    describeRoute({
      id: 'getSession',
      tag: 'Sessions',
      summary:
        'Get the user of this session; null without a session. Renews a session by ' +
        'cookie of which less than half is left.',
      answer: data(z.strictObject({ profile: profileView.nullable() }), { profile: null }),
    }),
    openToAll(),
    async (c) => {
      const presented = c.get('presented')
      if (presented.kind !== 'accepted' || presented.principal.kind !== 'user')
        return ok(c, { profile: null })
      const renewed = isBySessionCookie(c)
        ? await deps.sessions.renewed(presented.principal, latest(deps))
        : undefined
      if (renewed !== undefined) setSessionCookie(c, renewed)
      return ok(c, { profile: await profile(presented.principal, deps.users) })
    },
  )

const closeSessionRoute = (deps: LoginDeps) =>
  new Hono<ControlEnv>().delete(
    '/auth/session',
    describeRoute({
      id: 'closeSession',
      tag: 'Sessions',
      summary: 'Sign out of the console',
      answer: data(loggedOut, { logged_out: true }),
    }),
    requiresCredential(),
    async (c) => {
      await endSession(deps, c.var.principal)
      clearSessionCookie(c)
      return ok(c, { logged_out: true })
    },
  )

const changeOwnPasswordRoute = (deps: LoginDeps) =>
  new Hono<ControlEnv>().put(
    '/auth/password',
    describeRoute({
      id: 'changeOwnPassword',
      tag: 'Sessions',
      summary:
        'Change the own password. It ends all sessions of the user but this one, which ' +
        'goes on with a new token: in the cookie of the console, else in the answer.',
      body: { old_password: 'correct horse', new_password: 'battery staple' },
      answer: data(
        z.strictObject({
          user: userSchema,
          token: z.string().nullable().describe('A JWT; null when the session is a cookie.'),
          expires_in: z.int().describe('Lifetime in seconds.'),
        }),
        { user: exampleUser, token: 'eyJhbGciOiJIUzI1NiJ9.e30.x', expires_in: SESSION_SECONDS },
      ),
      refusals: [409],
    }),
    requiresCredential(),
    validate('json', ownPasswordBody),
    async (c) => {
      const { principal } = c.var
      if (principal.kind !== 'user')
        throw new ApiError(400, 'not_a_session', 'An application key has no password')
      const { old_password: old, new_password: next } = c.req.valid('json')
      const before = await checkOwn(c, deps, principal.userId, old, 'old_password')
      const passwordHash = await hashPassword(next)
      const changed = await deps.users.changePassword(before, passwordHash, deps.now())
      if (changed === undefined)
        throw conflict('password_changed', 'The password was changed at the same time')
      c.set('change', { before: userView(before), after: userView(changed) })
      const isCookie = isBySessionCookie(c)
      const token = isCookie
        ? await deps.sessions.renewableForUser(changed, latest(deps), originOf(c))
        : await deps.sessions.forUser(changed, latest(deps), originOf(c))
      if (isCookie) setSessionCookie(c, token)
      return ok(c, {
        user: userView(changed),
        token: isCookie ? null : token,
        expires_in: SESSION_SECONDS,
      })
    },
  )

const getProfileRoute = ({ users }: LoginDeps) =>
  new Hono<ControlEnv>().get(
    '/auth/me',
    describeRoute({
      id: 'getProfile',
      tag: 'Sessions',
      summary: 'Get the principal of the presented credential',
      answer: data(profileView, {
        kind: 'key',
        uuid: '0b4c1c1e-7f0a-4a37-9d1f-0f6a5f5e9c11',
        scopes: ['*:read'],
        permissions: ['calls:read'],
        tenant_slug: null,
        domain: null,
      }),
    }),
    requiresCredential(),
    async (c) => ok(c, await profile(c.var.principal, users)),
  )

const logoutRoute = (deps: LoginDeps) =>
  new Hono<ControlEnv>().post(
    '/auth/logout',
    describeRoute({
      id: 'logout',
      tag: 'Sessions',
      summary: 'Log out: end this session',
      answer: data(loggedOut, { logged_out: true }),
    }),
    requiresCredential(),
    async (c) => {
      await endSession(deps, c.var.principal)
      return ok(c, { logged_out: true })
    },
  )

/** Mounted under `/api/client`. */
export function clientLoginRoutes(deps: LoginDeps) {
  const { users, sessions } = deps
  return new Hono<ControlEnv>()
    .post(
      '/auth/login',
      describeRoute({
        id: 'loginCustomer',
        tag: 'Sessions',
        summary: 'Log in as a customer',
        body: { email: 'billing@acme.example', password: 'correct horse' },
        answer: data(tokenView(customerLogin), exampleToken(exampleLogin)),
        refusals: [401],
      }),
      openToAll(),
      validate('json', clientLoginBody),
      async (c) => {
        const { email, password } = c.req.valid('json')
        const known = await users.customersByEmail(email, c.req.header('x-tenant-slug'))
        const customer = await check(c, deps, 'customers', { name: email, password }, known)
        c.set('loginActor', `customer:${customer.id}`)
        const token = await sessions.forCustomer(
          customer,
          customer.password_hash ?? '',
          latest(deps),
        )
        return tokenAnswer(c, token, customerView(customer))
      },
    )
    .get(
      '/auth/me',
      describeRoute({
        id: 'getCustomerProfile',
        tag: 'Sessions',
        summary: 'Get the customer of this session',
        answer: data(customerLogin, exampleLogin),
      }),
      requiresCustomer(),
      async (c) => {
        const customer = await users.customerById(customerOf(c.var.principal).customerId)
        if (customer === undefined) throw wrongLogin()
        return ok(c, customerView(customer))
      },
    )
    .post(
      '/auth/logout',
      describeRoute({
        id: 'logoutCustomer',
        tag: 'Sessions',
        summary: 'Log out: end this customer session',
        answer: data(loggedOut, { logged_out: true }),
      }),
      requiresCustomer(),
      async (c) => {
        await sessions.end(customerOf(c.var.principal), earliest(deps))
        return ok(c, { logged_out: true })
      },
    )
}

/** Verifies the name and the password of a login body. */
async function userOf(
  c: Context<ControlEnv>,
  deps: LoginDeps,
  { username: name, password }: z.output<typeof loginBody>,
): Promise<UserRow> {
  const known = await deps.users.byUsername(name, c.req.header('x-tenant-slug'))
  const user = await check(c, deps, 'staff', { name, password }, known)
  c.set('loginActor', actorOfUser(user))
  return user
}

async function endSession(deps: LoginDeps, principal: Principal): Promise<void> {
  if (principal.kind !== 'user')
    throw new ApiError(400, 'not_a_session', 'An application key cannot log out; revoke it')
  await deps.sessions.end(principal, earliest(deps))
}

type Login = Pick<CustomerLogin, 'is_active' | 'password_hash' | 'tenant_id'>

/**
 * Always verifies at least this many passwords, so that timing does not reveal whether two tenants
 * have the name.
 */
const LEAST_CHECKED = 2

/** Longer than any slug; limits how much of an untrusted text is remembered. */
const MAX_SLUG_LENGTH = 64

/**
 * Returns the one of `known`, which all have this name, whose password matches. Throws when there
 * is none or the pair is locked. Checks the lock again after the slow check: of many attempts at
 * once, only five may learn whether they were right.
 */
async function check<Row extends Login>(
  c: Context<ControlEnv>,
  { passwords, guard, steadyNow }: LoginDeps,
  lane: Lane,
  { name, password }: { readonly name: string; readonly password: string },
  known: readonly Row[],
): Promise<Row> {
  const address = c.get('clientAddress')
  const asker = { lane, source: sourceKey(address) }
  const slug = c.req.header('x-tenant-slug')?.slice(0, MAX_SLUG_LENGTH)
  // A success in one tenant says nothing about other users with the same name.
  const pair = guardedLogin(lane, slug, name)
  await guard.refuseLocked(pair, address, steadyNow())
  const matching: Row[] = []
  for (const row of known)
    if (await passwords.matches(password, row.is_active ? row.password_hash : null, asker))
      matching.push(row)
  for (let checked = known.length; checked < LEAST_CHECKED; checked += 1)
    await passwords.matches(password, null, asker)
  await guard.refuseLocked(pair, address, steadyNow())
  // A password of a user with the same name is also a guess at the others; it must be counted for
  // them too.
  const lockedRows: Row[] = []
  for (const row of known.length > 1 ? known : [])
    if (await guard.isLocked(pairOfRow(lane, row, name), address, steadyNow())) lockedRows.push(row)
  const [row, second] = matching.filter((each) => !lockedRows.includes(each))
  if (row === undefined) {
    await guard.failed(pair, address, steadyNow())
    for (const each of lockedRows)
      await guard.refuseLocked(pairOfRow(lane, each, name), address, steadyNow())
    throw wrongLogin()
  }
  if (known.length === 1) guard.succeeded(pair, address)
  for (const each of known.length === 1 ? [] : known) {
    const ofRow = pairOfRow(lane, each, name)
    if (lockedRows.includes(each)) continue
    if (matching.includes(each)) guard.succeeded(ofRow, address)
    else await guard.failed(ofRow, address, steadyNow())
  }
  if (second === undefined || row.tenant_id === null) return row
  throw new ApiError(
    400,
    'tenant_required',
    'Several tenants know this login: name one in X-Tenant-Slug',
  )
}

const pairOfRow = (lane: Lane, { tenant_id: tenantId }: Login, name: string): string =>
  `${lane} of tenant ${tenantId ?? 0}/${name}`

/** A wrong name and a wrong password get the same response. */
const wrongLogin = (): ApiError =>
  new ApiError(401, 'invalid_credentials', 'Username or password is wrong', {
    headers: { 'WWW-Authenticate': 'Bearer' },
  })

const tokenAnswer = (c: Context<ControlEnv>, token: string, user: unknown): Response =>
  ok(c, { token, token_type: 'Bearer', expires_in: SESSION_SECONDS, user })

const customerView = (customer: CustomerLogin) => ({
  id: customer.id,
  name: customer.name,
  email: customer.email,
  role: 'customer',
})

/** Describes the presented credential of a person or a key. */
async function profile(principal: Principal, users: UserStore) {
  const shared = {
    scopes: principal.scopeLabels,
    permissions: [...principal.scopes],
    tenant_slug: principal.tenantSlug,
    domain: principal.domain,
  }
  if (principal.kind === 'key') return { kind: 'key', uuid: principal.uuid, ...shared }
  if (principal.kind === 'customer') return { kind: 'customer', email: principal.email, ...shared }
  const user = await users.byId(principal.userId)
  return {
    kind: 'user',
    ...(user && userView(user)),
    ...shared,
    expires_at: timeToText(principal.expiresAt),
  }
}
