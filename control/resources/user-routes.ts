/** `/users`: staff accounts. Requires `users:read` or `users:write` (admins). */
import { type Context, Hono } from 'hono'
import { z } from 'zod'
import { toFlag } from '../../schema/columns.ts'
import type { Store } from '../../schema/storage/store.ts'
import { first, transaction } from '../../schema/sql/query.ts'
import { ApiError, badRequest, conflict, notFound } from '../http/api-error.ts'
import { viewEffect } from '../changes/field-words.ts'
import { quoted } from '../http/clean-text.ts'
import type { ControlEnv } from '../http/control-env.ts'
import { created, offsetOf, ok, pageMeta, pageQuery } from '../http/envelope.ts'
import { refuseOtherVersion, showVersion, versioned, versionOf } from '../http/precondition.ts'
import { validate, describeRoute } from '../http/validate.ts'
import { writeWithinLimits } from '../auth/tenant-limits.ts'
import type { Principal } from '../auth/principal.ts'
import { refusePersonBy } from '../auth/issue-key.ts'
import { requires } from '../auth/requires.ts'
import { repeatable } from '../auth/idempotency.ts'
import { mayGrant, roleScopes } from '../auth/scopes.ts'
import type { SecondFactors } from '../auth/second-factors.ts'
import type { Sessions } from '../auth/sessions.ts'
import { wrongTenant } from '../auth/tenants.ts'
import { hashPassword } from '../auth/passwords.ts'
import {
  userFields,
  type UserRow,
  type UserStore,
  userView,
  visibleUser,
} from '../auth/user-store.ts'
import { data, list } from '../http/operation.ts'
import { deleted } from '../http/resource-operations.ts'

const { body: newUserBody, view: userSchema, example: exampleUser } = userFields
const { password, role } = newUserBody.shape
const userPatch = z.strictObject({ password, role, is_active: z.boolean() }).partial()
const userPath = z.strictObject({ id: z.string().max(20) })
const userQuery = z.strictObject({ ...pageQuery, search: z.string().max(100).optional() })

interface UserRoutesDeps {
  readonly store: Store
  readonly users: UserStore
  readonly factors: SecondFactors
  readonly sessions: Sessions
  readonly now: () => number
}

export function userRoutes(deps: UserRoutesDeps) {
  return new Hono<ControlEnv>()
    .route('/', createUserRoute(deps))
    .route('/', listUsersRoute(deps))
    .route('/', getUserRoute(deps))
    .route('/', updateUserRoute(deps))
    .route('/', deleteUserRoute(deps))
    .route('/', resetSecondFactorRoute(deps))
}

const createUserRoute = ({ store, users, now }: UserRoutesDeps) =>
  new Hono<ControlEnv>().post(
    '/users',
    describeRoute({
      id: 'createUser',
      tag: 'Users',
      summary: 'Create a staff account',
      body: { username: 'ada', password: 'correct horse', role: 'operator' },
      answer: data(userSchema, exampleUser, 201),
      refusals: [409],
    }),
    requires('users:write'),
    validate('json', newUserBody),
    repeatable(),
    async (c) => {
      const body = c.req.valid('json')
      const { principal } = c.var
      refuseEscalation(principal, body.role)
      refusePersonBy(principal)
      const passwordHash = await hashPassword(body.password)
      const user = await writeWithinLimits(store, principal, ['users'], async () =>
        users.insert({
          username: body.username,
          role: body.role,
          tenant_id: await tenantFor(store, body.tenant_slug, principal),
          is_active: toFlag(body.is_active),
          password_hash: passwordHash,
          created_at: now(),
          updated_at: now(),
        }),
      )
      if (user === undefined)
        throw conflict('username_taken', 'A user with this name already exists')
      noteUser(c, null, user)
      return created(c, `/api/v1/users/${user.id}`, userView(user))
    },
  )

const listUsersRoute = ({ users }: UserRoutesDeps) =>
  new Hono<ControlEnv>().get(
    '/users',
    describeRoute({
      id: 'listUsers',
      tag: 'Users',
      summary: 'List staff accounts',
      answer: list(userSchema, exampleUser),
    }),
    requires('users:read'),
    validate('query', userQuery),
    async (c) => {
      const { search, ...page } = c.req.valid('query')
      const filter = { tenantId: c.var.principal.tenantId, search }
      const slice = { limit: page.limit, offset: offsetOf(page) }
      const { rows, total } = await users.list(filter, slice)
      return ok(c, rows.map(userView), pageMeta(page, total))
    },
  )

const getUserRoute = ({ users }: UserRoutesDeps) =>
  new Hono<ControlEnv>().get(
    '/users/:id',
    describeRoute({
      id: 'getUser',
      tag: 'Users',
      summary: 'Get a staff account',
      answer: data(userSchema, exampleUser),
    }),
    requires('users:read'),
    versioned(),
    validate('param', userPath),
    async (c) => {
      const user = await visibleUser(users, c.req.valid('param').id, c.var.principal)
      showVersion(c, versionOfUser(user))
      return ok(c, userView(user))
    },
  )

const updateUserRoute = ({ store, users, now }: UserRoutesDeps) =>
  new Hono<ControlEnv>().patch(
    '/users/:id',
    describeRoute({
      id: 'updateUser',
      tag: 'Users',
      summary: 'Update a staff account',
      body: { role: 'auditor' },
      answer: data(userSchema, exampleUser),
      refusals: [409],
    }),
    requires('users:write'),
    versioned(),
    validate('param', userPath),
    validate('json', userPatch),
    async (c) => {
      const { principal } = c.var
      const { password, role, is_active: isActive } = c.req.valid('json')
      const passwordHash = password === undefined ? undefined : await hashPassword(password)
      const { user, changed } = await transaction(store, async () => {
        const user = await visibleUser(users, c.req.valid('param').id, principal)
        refuseOther(c, user)
        refuseEscalation(principal, user.role)
        if (role !== undefined) refuseEscalation(principal, role)
        // Deactivating a user grants nothing.
        if (password !== undefined || role !== undefined || isActive === true)
          refusePersonBy(principal)
        const change = {
          ...(passwordHash !== undefined && { password_hash: passwordHash }),
          ...(role !== undefined && { role }),
          ...(isActive !== undefined && { is_active: toFlag(isActive) }),
          updated_at: now(),
        }
        return { user, changed: await users.update(user.id, change) }
      })
      if (changed === 'last_admin') throw lastAdmin()
      if (changed === undefined) throw notFound('User')
      noteUser(c, user, changed, password === undefined ? [] : ['its password'])
      showVersion(c, versionOfUser(changed))
      return ok(c, userView(changed))
    },
  )

const deleteUserRoute = ({ store, users }: UserRoutesDeps) =>
  new Hono<ControlEnv>().delete(
    '/users/:id',
    describeRoute({
      id: 'deleteUser',
      tag: 'Users',
      summary: 'Delete a staff account',
      answer: data(deleted, { id: 1, deleted: true }),
      refusals: [409],
    }),
    requires('users:write'),
    versioned(),
    validate('param', userPath),
    async (c) => {
      const user = await transaction(store, async () => {
        const found = await visibleUser(users, c.req.valid('param').id, c.var.principal)
        refuseOther(c, found)
        refuseEscalation(c.var.principal, found.role)
        if ((await users.remove(found.id)) === 'last_admin') throw lastAdmin()
        return found
      })
      noteUser(c, user, null)
      return ok(c, { id: user.id, deleted: true })
    },
  )

const resetSecondFactorRoute = ({ store, users, factors, sessions, now }: UserRoutesDeps) =>
  new Hono<ControlEnv>().delete(
    '/users/:id/second-factor',
    describeRoute({
      id: 'resetSecondFactor',
      tag: 'Users',
      summary: 'Remove the second factor of a user who has lost it; the sessions of the user end',
      answer: data(userSchema, exampleUser),
      refusals: [409],
    }),
    requires('users:write'),
    validate('param', userPath),
    async (c) => {
      const { principal } = c.var
      const { before, after } = await transaction(store, async () => {
        const before = await visibleUser(users, c.req.valid('param').id, principal)
        refuseEscalation(principal, before.role)
        refusePersonBy(principal)
        if (!(await factors.remove(before.id)))
          throw conflict('no_second_factor', 'The user has no second factor')
        await sessions.seen.endAll(before.id, undefined, now())
        return { before, after: await visibleUser(users, c.req.valid('param').id, principal) }
      })
      noteUser(c, before, after, ['its second factor is removed'])
      return ok(c, userView(after))
    },
  )

/** @param secrets what was changed and is not shown. */
function noteUser(
  c: Context<ControlEnv>,
  from: UserRow | null,
  to: UserRow | null,
  secrets: readonly string[] = [],
): void {
  const subject = `The user ${quoted((to ?? from)?.username ?? '')}`
  const effect = viewEffect(subject, from && lasting(from), to && lasting(to), secrets)
  c.set('change', {
    before: from && userView(from),
    after: to && userView(to),
    ...(effect !== undefined && { effect }),
  })
}

const lasting = ({ username, role, is_active: isActive }: UserRow) => ({
  username,
  role,
  may_sign_in: isActive === 1,
})

/** Its last login and its second factor are no part of it. */
const versionOfUser = ({ username, role, tenant_id, is_active, updated_at }: UserRow): string =>
  versionOf([username, role, tenant_id, is_active, updated_at])

function refuseOther(c: Context<ControlEnv>, user: UserRow): void {
  const isReader = c.var.principal.scopes.has('users:read')
  const shown = isReader ? () => userView(user) : undefined
  refuseOtherVersion(c, { version: versionOfUser(user), shown })
}

/** Rejects creating, changing or deleting a user with more permissions than the credential has. */
function refuseEscalation(principal: Principal, role: UserRow['role']): void {
  if (roleScopes[role].every((label) => mayGrant(principal.scopeLabels, label))) return
  throw new ApiError(403, 'scope_escalation', 'The role has more permissions than the credential')
}

async function tenantFor(
  store: Store,
  slug: string | null | undefined,
  { tenantId }: Principal,
): Promise<number | null> {
  if (slug === undefined) return tenantId
  if (slug === null) {
    if (tenantId !== null) throw wrongTenant()
    return null
  }
  const query = store.db.selectFrom('tenant').select('id').where('slug', '=', slug)
  const tenant = await first(store, query)
  if (tenantId !== null && tenant?.id !== tenantId) throw wrongTenant()
  if (tenant !== undefined) return tenant.id
  throw badRequest('The body is invalid', [{ path: 'tenant_slug', message: 'is not a tenant' }])
}

const lastAdmin = (): ApiError =>
  conflict('last_admin', 'At least one active global admin must remain')
