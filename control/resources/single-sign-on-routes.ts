/**
 * Signing in by an identity provider. Both addresses are opened by a browser, so each answer sends
 * it on: to the provider, into the console, or to its sign-in with the reason of a refusal.
 */
import { type Context, Hono } from 'hono'
import { deleteCookie, getCookie, setCookie } from 'hono/cookie'
import { z } from 'zod'
import { type Clocks, latest } from '../../schema/clock.ts'
import type { Log } from '../../schema/contracts/log.ts'
import { auditedActor, auditEntry, type AuditLog, digestOf } from '../changes/audit.ts'
import { ApiError, notFound } from '../http/api-error.ts'
import type { ControlEnv } from '../http/control-env.ts'
import { ok } from '../http/envelope.ts'
import { data, text } from '../http/operation.ts'
import { describeRoute, validate } from '../http/validate.ts'
import { setSessionCookie } from '../auth/authenticate.ts'
import { openToAll } from '../auth/requires.ts'
import { actorOfUser, type Sessions } from '../auth/sessions.ts'
import { originOf } from '../auth/sign-in.ts'
import { type UserRow, userView } from '../auth/user-store.ts'
import type { IdentityStore, ProviderRow } from '../auth/single-sign-on/identity-store.ts'
import type { ProvidedIdentity, ProviderClients } from '../auth/single-sign-on/provider-clients.ts'
import { mappingFor, usernameIn } from '../auth/single-sign-on/role-mappings.ts'
import {
  ATTEMPT_SECONDS,
  isEqual,
  type SignInAttempt,
  type SignInAttempts,
} from '../auth/single-sign-on/sign-in-attempts.ts'

const CALLBACK_PATH = '/api/v1/auth/callback'

export interface SingleSignOnDeps extends Clocks {
  readonly sessions: Sessions
  readonly identities: IdentityStore
  readonly clients: ProviderClients
  readonly attempts: SignInAttempts
  readonly audit: Pick<AuditLog, 'record'>
  readonly log: Log
  readonly settings: { readonly publicUrl?: string | undefined }
}

/** Why the browser comes back without a session. */
type Problem =
  | 'expired'
  | 'provider_unavailable'
  | 'provider_refused'
  | 'no_role'
  | 'inactive'
  | 'unknown_tenant'
  | 'last_admin'
  | 'no_name'
  | 'too_many_users'

const offeredView = z
  .strictObject({ id: z.int(), name: z.string(), start_url: z.string() })
  .meta({ id: 'OfferedIdentityProvider' })

export type OfferedProvider = z.output<typeof offeredView>

const exampleOffered = {
  id: 1,
  name: 'Company login',
  start_url: 'https://tollgate.example/api/v1/auth/providers/1/start',
}

const sentOn = { ...text('text/html', '<!doctype html>'), status: 302 as const }

const providerPath = z.strictObject({ id: z.string().max(20) })

const answerQuery = z.object({
  code: z.string().max(4_000).optional(),
  state: z.string().max(200).optional(),
  error: z.string().max(200).optional(),
})

/**
 * The address to which a provider sends the browser back; undefined: `PUBLIC_URL` is not set. Each
 * has its own (RFC 9700 §4.4): else a provider of one tenant could send visitors on to another
 * provider, whose code would come back as its own.
 */
export const redirectUriOf = (publicUrl: string | undefined, id: number): string | undefined =>
  publicUrl === undefined ? undefined : `${publicUrl.replace(/\/$/, '')}${CALLBACK_PATH}/${id}`

/** Mounted under `/api/v1`. */
export const singleSignOnRoutes = (deps: SingleSignOnDeps) =>
  new Hono<ControlEnv>()
    .route('/', offeredRoute(deps))
    .route('/', startRoute(deps))
    .route('/', callbackRoute(deps))

const offeredRoute = ({ identities, settings: { publicUrl } }: SingleSignOnDeps) =>
  new Hono<ControlEnv>().get(
    '/auth/providers',
    describeRoute({
      id: 'listOfferedProviders',
      tag: 'Sessions',
      summary:
        'List the identity providers by which users of the platform, or of a tenant, sign in',
      answer: data(z.array(offeredView), [exampleOffered]),
    }),
    openToAll(),
    validate('query', z.strictObject({ tenant: z.string().max(63).optional() })),
    async (c) => {
      if (publicUrl === undefined) return ok(c, [])
      const offered = await identities.offered(c.req.valid('query').tenant)
      const start = `${publicUrl.replace(/\/$/, '')}/api/v1/auth/providers`
      return ok(
        c,
        offered.map(({ id, name }) => ({ id, name, start_url: `${start}/${id}/start` })),
      )
    },
  )

const startRoute = (deps: SingleSignOnDeps) =>
  new Hono<ControlEnv>().get(
    '/auth/providers/:id/start',
    describeRoute({
      id: 'startSingleSignOn',
      tag: 'Sessions',
      summary: 'Send a browser to an identity provider',
      answer: sentOn,
      refusals: [404],
    }),
    openToAll(),
    validate('param', providerPath),
    async (c) => {
      const { id } = c.req.valid('param')
      const provider = /^[1-9]\d{0,14}$/.test(id)
        ? await deps.identities.provider(Number(id))
        : undefined
      const redirectUri = redirectUriOf(deps.settings.publicUrl, Number(id))
      if (provider === undefined || redirectUri === undefined) throw notFound('Identity provider')
      const { cookie, attempt } = await deps.attempts.begin(provider.id, latest(deps))
      try {
        const url = await deps.clients.authorizationUrl(provider, redirectUri, attempt)
        setCookie(c, nameOf(deps), cookie, { ...attributesOf(deps), maxAge: ATTEMPT_SECONDS })
        return sendOn(c, url)
      } catch (error) {
        deps.log('warn', 'single sign-on: a provider cannot be reached', {
          provider: provider.name,
          error: reasonOf(error),
        })
        return sendBack(c, 'provider_unavailable')
      }
    },
  )

const callbackRoute = (deps: SingleSignOnDeps) =>
  new Hono<ControlEnv>().get(
    '/auth/callback/:id',
    describeRoute({
      id: 'finishSingleSignOn',
      tag: 'Sessions',
      summary: 'The address to which identity providers send the browser back',
      answer: sentOn,
    }),
    openToAll(),
    validate('param', providerPath),
    validate('query', answerQuery),
    async (c) => {
      const cookie = getCookie(c, nameOf(deps))
      deleteCookie(c, nameOf(deps), attributesOf(deps))
      const { state, error } = c.req.valid('query')
      const attempt = cookie && (await deps.attempts.open(cookie, latest(deps)))
      const isAsked = attempt && String(attempt.providerId) === c.req.valid('param').id
      const provider = isAsked && (await deps.identities.provider(attempt.providerId))
      if (!attempt || !provider || state === undefined || !isEqual(state, attempt.state))
        return sendBack(c, 'expired')
      const outcome =
        error === undefined
          ? await signedIn(c, deps, provider, attempt)
          : refused(deps, provider, 'provider_refused', error)
      await record(c, deps, provider, outcome)
      if (outcome.kind === 'refused') return sendBack(c, outcome.problem)
      const origin = { ...originOf(c), identityProviderId: provider.id }
      const token = await deps.sessions.renewableForUser(outcome.user, latest(deps), origin)
      setSessionCookie(c, token, isSecure(deps))
      return sendOn(c, '/console')
    },
  )

type Outcome =
  | { readonly kind: 'user'; readonly user: UserRow }
  | { readonly kind: 'refused'; readonly problem: Problem; readonly user?: UserRow | undefined }

async function signedIn(
  c: Context<ControlEnv>,
  deps: SingleSignOnDeps,
  provider: ProviderRow,
  attempt: SignInAttempt,
): Promise<Outcome> {
  const answered = new URL(redirectUriOf(deps.settings.publicUrl, provider.id) ?? c.req.url)
  answered.search = new URL(c.req.url).search
  let identity: ProvidedIdentity
  try {
    identity = await deps.clients.identityFrom(provider, answered, attempt)
  } catch (error) {
    return refused(deps, provider, 'provider_unavailable', reasonOf(error))
  }
  const { claims, subject } = identity
  const mapping = mappingFor(claims, provider.role_claim, provider.mappings)
  if (mapping === undefined) return withoutRole(deps, provider, subject)
  try {
    const username = usernameIn(claims, provider.username_claim, subject)
    const found = { subject, username, mapping }
    const outcome = await deps.identities.signIn(provider, found, deps.now())
    if (outcome.kind === 'user') return outcome
    // Open sessions may do what the provider has said before, and no longer says.
    if (outcome.why !== 'last_admin') await endSessionsOfSubject(deps, provider, subject)
    return refused(deps, provider, outcome.why, 'refused here')
  } catch (error) {
    if (!(error instanceof ApiError) || error.code !== 'too_many_users') throw error
    return refused(deps, provider, 'too_many_users', error.message)
  }
}

/** Whoever has lost the role loses the sessions that are open, too. */
async function withoutRole(
  deps: SingleSignOnDeps,
  provider: ProviderRow,
  subject: string,
): Promise<Outcome> {
  const user = await endSessionsOfSubject(deps, provider, subject)
  return { kind: 'refused', problem: 'no_role', user }
}

async function endSessionsOfSubject(
  { identities, sessions, now }: SingleSignOnDeps,
  provider: ProviderRow,
  subject: string,
): Promise<UserRow | undefined> {
  const user = await identities.find(provider, subject)
  if (user !== undefined) await sessions.seen.endAll(user.id, undefined, now())
  return user
}

function refused(
  { log }: SingleSignOnDeps,
  provider: ProviderRow,
  problem: Problem,
  error: string,
): Outcome {
  log('warn', 'single sign-on: refused', { provider: provider.name, problem, error })
  return { kind: 'refused', problem }
}

/** A GET is in no audit log by itself; a sign-in is, as one with a password. */
function record(
  c: Context<ControlEnv>,
  { audit, now }: SingleSignOnDeps,
  provider: ProviderRow,
  outcome: Outcome,
): Promise<void> {
  const { user } = outcome
  const code = outcome.kind === 'refused' ? outcome.problem : null
  return audit.record(
    auditEntry({
      at: now(),
      by: {
        ...auditedActor(undefined),
        actor: user === undefined ? 'anonymous' : actorOfUser(user),
        tenant_id: provider.tenant_id,
      },
      address: c.get('clientAddress'),
      action: `GET ${CALLBACK_PATH}`,
      target: `identity provider ${provider.name}`,
      status: code === null ? 200 : 403,
      code,
      digests: {
        before: null,
        after: code === null && user !== undefined ? digestOf(userView(user)) : null,
      },
      correlationId: c.get('correlationId'),
    }),
  )
}

/** The browser shows why in the sign-in of the console, where passwords work as ever. */
const sendBack = (c: Context<ControlEnv>, problem: Problem): Response =>
  sendOn(c, `/console?sign_in=${problem}`)

const sendOn = (c: Context<ControlEnv>, url: string): Response => {
  c.header('Location', url)
  c.header('Cache-Control', 'no-store')
  c.header('Referrer-Policy', 'no-referrer')
  return c.html('<!doctype html><title>Tollgate</title>', 302)
}

const isSecure = ({ settings: { publicUrl } }: SingleSignOnDeps): boolean =>
  publicUrl?.startsWith('https:') ?? false

const nameOf = (deps: SingleSignOnDeps): string =>
  isSecure(deps) ? '__Host-tollgate_sign_in' : 'tollgate_sign_in'

/** Lax: the browser comes from the page of the provider. */
const attributesOf = (deps: SingleSignOnDeps) =>
  ({ path: '/', httpOnly: true, sameSite: 'Lax', secure: isSecure(deps) }) as const

const MAX_REASON_LENGTH = 200

const reasonOf = (error: unknown): string => {
  const { message, cause } = error instanceof Error ? error : new Error(String(error))
  const inner = cause instanceof Error ? `: ${cause.message}` : ''
  return `${message}${inner}`.slice(0, MAX_REASON_LENGTH)
}
