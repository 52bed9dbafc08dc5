/** The second factor: at the sign-in, in the account of a user, and for administrators. */
import { type Context, Hono } from 'hono'
import { renderSVG } from 'uqr'
import { z } from 'zod'
import { latest } from '../../schema/clock.ts'
import { timeToText } from '../../schema/columns.ts'
import { ApiError, badRequest, conflict } from '../http/api-error.ts'
import type { ControlEnv } from '../http/control-env.ts'
import { ok } from '../http/envelope.ts'
import { data } from '../http/operation.ts'
import { describeRoute, validate } from '../http/validate.ts'
import { moment } from '../http/view-fields.ts'
import { isFromOwnPage } from './authenticate.ts'
import { refusePersonBy } from './issue-key.ts'
import { MAX_PASSWORD_LENGTH } from './passwords.ts'
import type { Principal, UserPrincipal } from './principal.ts'
import { openToAll, requires, requiresCredential } from './requires.ts'
import type { Enrolment } from './second-factors.ts'
import { actorOfUser } from './sessions.ts'
import { MAX_CHALLENGE_LENGTH, type SessionCarrier } from './sign-in-challenges.ts'
import {
  checkOwn,
  exampleOpened,
  exampleToken,
  guessIn,
  type LoginDeps,
  openSession,
  sessionView,
  tokenView,
} from './sign-in.ts'
import { userFields, type UserRow } from './user-store.ts'

const password = z.string().min(1).max(MAX_PASSWORD_LENGTH).meta({ format: 'password' })
const code = z
  .string()
  .min(6)
  .max(20)
  .describe('Six digits of the authenticator, or a recovery code. It is used up.')
const challenge = z.string().min(1).max(MAX_CHALLENGE_LENGTH)

const recoveryCodes = z
  .array(z.string())
  .describe('Each opens one session without the authenticator. Shown once.')

const newCodes = recoveryCodes
  .nullable()
  .describe('Null, unless this code has turned the second factor on. Shown once.')

const enrolmentView = z
  .strictObject({
    secret: z.string().describe('To be typed into an authenticator, in base32. Shown once.'),
    otpauth_url: z.string(),
    qr_svg: z.string().describe('The same URL as a picture, for the camera of a telephone.'),
  })
  .meta({ id: 'SecondFactorEnrolment' })

export type EnrolmentView = z.output<typeof enrolmentView>

const exampleEnrolment = {
  secret: 'JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP',
  otpauth_url:
    'otpauth://totp/Tollgate:ada?issuer=Tollgate&secret=JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP',
  qr_svg: '<svg xmlns="http://www.w3.org/2000/svg"/>',
}

const stateView = z
  .strictObject({
    is_on: z.boolean(),
    since: moment.nullable(),
    recovery_codes_left: z.int().min(0),
    is_required: z.boolean().describe('The tenant or the platform asks it of this user.'),
  })
  .meta({ id: 'SecondFactor' })

export type SecondFactorStateView = z.output<typeof stateView>

const exampleState = { is_on: false, since: null, recovery_codes_left: 0, is_required: false }

const policyView = z
  .strictObject({ is_second_factor_required: z.boolean() })
  .meta({ id: 'SignInPolicy' })

export type SignInPolicyView = z.output<typeof policyView>

const challengeBody = { challenge: 'eyJ1c2VyIjoxfQ.c2lnbmF0dXJl' }
const codeBody = { ...challengeBody, code: '123456' }

/** Mounted under `/api/v1`. */
export const secondFactorRoutes = (deps: LoginDeps) =>
  new Hono<ControlEnv>()
    .route('/', codeOfSessionRoute(deps))
    .route('/', codeOfLoginRoute(deps))
    .route('/', enrolAtSignInRoute(deps))
    .route('/', getSecondFactorRoute(deps))
    .route('/', enrolRoute(deps))
    .route('/', confirmRoute(deps))
    .route('/', renewCodesRoute(deps))
    .route('/', removeRoute(deps))
    .route('/', getPolicyRoute(deps))
    .route('/', setPolicyRoute(deps))

const codeOfSessionRoute = (deps: LoginDeps) =>
  new Hono<ControlEnv>().post(
    '/auth/session/code',
    describeRoute({
      id: 'openSessionByCode',
      tag: 'Sessions',
      summary: 'Sign in to the console with the second factor, after its password',
      body: codeBody,
      answer: data(sessionView.extend({ recovery_codes: newCodes }), {
        ...exampleOpened,
        recovery_codes: null,
      }),
      refusals: [401],
    }),
    openToAll(),
    validate('json', z.strictObject({ challenge, code })),
    async (c) => {
      if (!isFromOwnPage(c))
        throw new ApiError(403, 'other_page', 'Only the page of this console may open its session')
      return ok(c, await openByCode(c, deps, c.req.valid('json'), 'cookie'))
    },
  )

const codeOfLoginRoute = (deps: LoginDeps) =>
  new Hono<ControlEnv>().post(
    '/auth/login/code',
    describeRoute({
      id: 'loginByCode',
      tag: 'Sessions',
      summary: 'Log in as staff with the second factor, after its password',
      body: codeBody,
      answer: data(tokenView(userFields.view).extend({ recovery_codes: newCodes }), {
        ...exampleToken(userFields.example),
        recovery_codes: null,
      }),
      refusals: [401],
    }),
    openToAll(),
    validate('json', z.strictObject({ challenge, code })),
    async (c) => ok(c, await openByCode(c, deps, c.req.valid('json'), 'token')),
  )

/** The first right code of a user who must have a second factor turns it on. */
async function openByCode(
  c: Context<ControlEnv>,
  deps: LoginDeps,
  given: { readonly challenge: string; readonly code: string },
  carrier: SessionCarrier,
) {
  const user = await challenged(c, deps, given.challenge, [carrier])
  const guess = guessIn(c, deps, given.code)
  const isConfirmed = await deps.factors.isConfirmed(user.id)
  const codes = isConfirmed ? undefined : await deps.factors.confirm(user, guess)
  const isRight = isConfirmed ? await deps.factors.accepts(user, guess) : codes !== undefined
  if (!isRight) throw unauthorized('invalid_code', 'The code is wrong, or was used before')
  return { ...(await openSession(c, deps, user, carrier)), recovery_codes: codes ?? null }
}

const enrolAtSignInRoute = (deps: LoginDeps) =>
  new Hono<ControlEnv>().post(
    '/auth/login/enrolment',
    describeRoute({
      id: 'enrolAtSignIn',
      tag: 'Sessions',
      summary: 'Set up the second factor that is asked of a user, before the first session',
      body: challengeBody,
      answer: data(enrolmentView, exampleEnrolment),
      refusals: [401, 409],
    }),
    openToAll(),
    validate('json', z.strictObject({ challenge })),
    async (c) => {
      const user = await challenged(c, deps, c.req.valid('json').challenge, ['cookie', 'token'])
      return ok(c, shownEnrolment(await deps.factors.enrol(user, deps.now())))
    },
  )

const getSecondFactorRoute = (deps: LoginDeps) =>
  new Hono<ControlEnv>().get(
    '/auth/second-factor',
    describeRoute({
      id: 'getSecondFactor',
      tag: 'Sessions',
      summary: 'Get whether the own sign-in has a second factor',
      answer: data(stateView, exampleState),
      refusals: [400],
    }),
    requiresCredential(),
    async (c) => {
      const user = await ownUser(c, deps)
      const { confirmedAt, recoveryCodesLeft } = await deps.factors.stateOf(user.id)
      return ok(c, {
        is_on: confirmedAt !== null,
        since: confirmedAt === null ? null : timeToText(confirmedAt),
        recovery_codes_left: recoveryCodesLeft,
        is_required: await deps.factors.isRequired(user.tenant_id),
      })
    },
  )

const enrolRoute = (deps: LoginDeps) =>
  new Hono<ControlEnv>().post(
    '/auth/second-factor',
    describeRoute({
      id: 'enrolSecondFactor',
      tag: 'Sessions',
      summary: 'Begin to set up the own second factor: a code of it turns it on',
      body: { password: 'correct horse' },
      answer: data(enrolmentView, exampleEnrolment),
      refusals: [409],
    }),
    requiresCredential(),
    validate('json', z.strictObject({ password })),
    async (c) => {
      const { userId } = personOf(c.var.principal)
      const user = await checkOwn(c, deps, userId, c.req.valid('json').password)
      return ok(c, shownEnrolment(await deps.factors.enrol(user, deps.now())))
    },
  )

const confirmRoute = (deps: LoginDeps) =>
  new Hono<ControlEnv>().post(
    '/auth/second-factor/confirmation',
    describeRoute({
      id: 'confirmSecondFactor',
      tag: 'Sessions',
      summary: 'Turn the own second factor on with its first code',
      body: { code: '123456' },
      answer: data(z.strictObject({ recovery_codes: recoveryCodes }), exampleCodes),
    }),
    requiresCredential(),
    validate('json', z.strictObject({ code })),
    async (c) => {
      const user = await ownUser(c, deps)
      const guess = guessIn(c, deps, c.req.valid('json').code)
      const codes = await deps.factors.confirm(user, guess)
      if (codes === undefined) throw wrongCode()
      c.set('change', { before: factorIs(false), after: factorIs(true) })
      return ok(c, { recovery_codes: codes })
    },
  )

const renewCodesRoute = (deps: LoginDeps) =>
  new Hono<ControlEnv>().post(
    '/auth/second-factor/recovery-codes',
    describeRoute({
      id: 'renewRecoveryCodes',
      tag: 'Sessions',
      summary: 'Replace the own recovery codes by new ones',
      body: { password: 'correct horse', code: '123456' },
      answer: data(z.strictObject({ recovery_codes: recoveryCodes }), exampleCodes),
    }),
    requiresCredential(),
    validate('json', z.strictObject({ password, code })),
    async (c) => {
      const user = await provenUser(c, deps, c.req.valid('json'))
      return ok(c, { recovery_codes: await deps.factors.renewCodes(user.id) })
    },
  )

const removeRoute = (deps: LoginDeps) =>
  new Hono<ControlEnv>().post(
    '/auth/second-factor/removal',
    describeRoute({
      id: 'removeSecondFactor',
      tag: 'Sessions',
      summary: 'Turn the own second factor off',
      body: { password: 'correct horse', code: '123456' },
      answer: data(z.strictObject({ removed: z.literal(true) }), { removed: true }),
      refusals: [409],
    }),
    requiresCredential(),
    validate('json', z.strictObject({ password, code })),
    async (c) => {
      const user = await provenUser(c, deps, c.req.valid('json'))
      if (await deps.factors.isRequired(user.tenant_id))
        throw conflict('second_factor_required', 'A second factor is required of this user')
      await deps.factors.remove(user.id)
      c.set('change', { before: factorIs(true), after: factorIs(false) })
      return ok(c, { removed: true })
    },
  )

const getPolicyRoute = ({ factors }: LoginDeps) =>
  new Hono<ControlEnv>().get(
    '/sign-in-policy',
    describeRoute({
      id: 'getSignInPolicy',
      tag: 'Users',
      summary: 'Get what is asked of users at their sign-in: those of the tenant, or the platform',
      answer: data(policyView, { is_second_factor_required: false }),
    }),
    requires('users:read'),
    async (c) => ok(c, await policyOf(factors, c.var.principal)),
  )

const setPolicyRoute = ({ factors, now }: LoginDeps) =>
  new Hono<ControlEnv>().put(
    '/sign-in-policy',
    describeRoute({
      id: 'setSignInPolicy',
      tag: 'Users',
      summary:
        'Set what is asked of users at their sign-in. Users without a second factor set one up ' +
        'at the next one.',
      body: { is_second_factor_required: true },
      answer: data(policyView, { is_second_factor_required: true }),
    }),
    requires('users:write'),
    validate('json', policyView),
    async (c) => {
      const { principal } = c.var
      refusePersonBy(principal)
      const before = await policyOf(factors, principal)
      const after = c.req.valid('json')
      await factors.require(principal.tenantId, after.is_second_factor_required, now())
      c.set('change', { before, after })
      return ok(c, after)
    },
  )

const policyOf = async (factors: LoginDeps['factors'], { tenantId }: Principal) => ({
  is_second_factor_required: await factors.isRequired(tenantId),
})

const exampleCodes = { recovery_codes: ['abcd-efgh-jkmn'] }

/** The state that the audit log has a digest of. */
const factorIs = (isOn: boolean) => ({ is_on: isOn })

function shownEnrolment(enrolment: Enrolment | undefined) {
  if (enrolment === undefined)
    throw conflict('second_factor_on', 'The user has a second factor already')
  const { secret, uri } = enrolment
  return { secret, otpauth_url: uri, qr_svg: renderSVG(uri) }
}

async function challenged(
  c: Context<ControlEnv>,
  deps: LoginDeps,
  text: string,
  carriers: readonly SessionCarrier[],
): Promise<UserRow> {
  for (const carrier of carriers) {
    const user = await deps.challenges.open(text, carrier, latest(deps))
    if (user === undefined) continue
    c.set('loginActor', actorOfUser(user))
    return user
  }
  throw unauthorized('invalid_challenge', 'Give the password again: the challenge is not valid')
}

function personOf(principal: Principal): UserPrincipal {
  if (principal.kind === 'user') return principal
  throw new ApiError(400, 'not_a_session', 'An application key has no second factor')
}

async function ownUser(c: Context<ControlEnv>, { users }: LoginDeps): Promise<UserRow> {
  const user = await users.byId(personOf(c.var.principal).userId)
  if (user === undefined) throw unauthorized('invalid_credentials', 'The user has gone')
  return user
}

/** The user of the session, who has given the password and a code once more. */
async function provenUser(
  c: Context<ControlEnv>,
  deps: LoginDeps,
  given: { readonly password: string; readonly code: string },
): Promise<UserRow> {
  const user = await checkOwn(c, deps, personOf(c.var.principal).userId, given.password)
  if (await deps.factors.accepts(user, guessIn(c, deps, given.code))) return user
  throw wrongCode()
}

const wrongCode = (): ApiError =>
  badRequest('The body is invalid', [
    { path: 'code', message: 'is not a code of this user, or was used before' },
  ])

const unauthorized = (code: string, message: string): ApiError =>
  new ApiError(401, code, message, { headers: { 'WWW-Authenticate': 'Bearer' } })
