/**
 * Sessions of people. The token contains only the subject; role, tenant and active flag are read
 * from the row on each request, so that a change takes effect from the next one.
 */
import { createHmac, hash, timingSafeEqual } from 'node:crypto'
import { z } from 'zod'
import type { Store } from '../../schema/storage/store.ts'
import { DatabaseRefused } from '../../schema/sql/failure.ts'
import { execute, first, prepare, type Prepared, transaction } from '../../schema/sql/query.ts'
import type { CustomerPrincipal, Presented, Principal, UserPrincipal } from './principal.ts'
import { permissionsOf, roleScopes } from './scopes.ts'
import { SeenSessions, type SessionOrigin } from './seen-sessions.ts'
import type { CustomerLogin, UserRow, UserStore } from './user-store.ts'

export const SESSION_SECONDS = 3_600
/** Longest time from the login, however often the session is renewed. */
const LONGEST_SESSION_SECONDS = 12 * 3_600

const rejected: Presented = { kind: 'rejected' }

export class Sessions {
  readonly #store: Store
  readonly #users: UserStore
  readonly #readSecret: () => Promise<string>
  #secret: string | undefined
  readonly #randomBytes: (size: number) => Buffer
  readonly #denied: Prepared<{ jti: string }, { jti: string }>
  /** The sessions of users as they are listed. */
  readonly seen: SeenSessions

  constructor(
    store: Store,
    users: UserStore,
    readSecret: () => Promise<string>,
    randomBytes: (size: number) => Buffer,
  ) {
    this.#store = store
    this.#users = users
    this.#readSecret = readSecret
    this.#randomBytes = randomBytes
    this.seen = new SeenSessions(store)
    this.#denied = prepare(store, (db, param) =>
      db.selectFrom('jwt_denylist').select('jti').where('jti', '=', param('jti')),
    )
  }

  /** Reads the secret ahead, so that a damaged one is reported at the start. */
  async prepare(): Promise<void> {
    await this.#signingSecret()
  }

  forUser(user: UserRow, now: number, origin = unknownOrigin): Promise<string> {
    return this.#begin(user, now, origin, { jti: this.#newId() })
  }

  /** The token of a console session, which `renewed` extends. */
  renewableForUser(user: UserRow, now: number, origin = unknownOrigin): Promise<string> {
    const beginning = { jti: this.#newId(), authenticatedAt: Math.floor(now / 1_000) }
    return this.#begin(user, now, origin, beginning)
  }

  /**
   * A token that expires later, once less than half of the session is left; undefined when it is
   * too early, or when the session has lasted as long as it may. All tokens of a session have one
   * `jti`: its end is the end of all. Nothing is read again: a password that has changed since the
   * request was authenticated ends this token, too.
   */
  async renewed(
    { userId, jti, expiresAt, latestExpiresAt, passwordMark }: UserPrincipal,
    now: number,
  ): Promise<string | undefined> {
    const isDue = expiresAt - now < (SESSION_SECONDS * 1_000) / 2
    if (!isDue || expiresAt >= latestExpiresAt) return undefined
    const authenticatedAt = latestExpiresAt / 1_000 - LONGEST_SESSION_SECONDS
    await this.seen.extend(jti, Math.min(now + SESSION_SECONDS * 1_000, latestExpiresAt))
    return this.#sign('user', userId, passwordMark, now, { jti, authenticatedAt })
  }

  /** `passwordHash` is the one that the login has just verified. */
  forCustomer(customer: CustomerLogin, passwordHash: string, now: number): Promise<string> {
    return this.#sign('customer', customer.id, fingerprint(passwordHash), now)
  }

  /** @param address of the request; absent: it is no use of the session. */
  async verify(token: string, now: number, address?: string): Promise<Presented> {
    const claims = verifyJwt(token, await this.#signingSecret(), now)
    if (claims === undefined) return rejected
    if ((await this.#denied.get({ jti: claims.jti })) !== undefined) return rejected
    const principal = await (claims.kind === 'user' ? this.#user(claims) : this.#customer(claims))
    if (principal === undefined) return rejected
    if (claims.kind === 'user' && address !== undefined) this.seen.note(claims.jti, address, now)
    return { kind: 'accepted', principal }
  }

  /** Ends one session; its `jti` is stored until its last token would have expired. */
  async end(principal: UserPrincipal | CustomerPrincipal, now: number): Promise<void> {
    const { db } = this.#store
    const lastsUntil = principal.kind === 'user' ? principal.latestExpiresAt : principal.expiresAt
    const ended = { jti: principal.jti, expires_at: lastsUntil }
    const insert = db.insertInto('jwt_denylist').values(ended)
    await transaction(this.#store, async () => {
      await execute(this.#store, db.deleteFrom('jwt_denylist').where('expires_at', '<=', now))
      await execute(
        this.#store,
        insert.onConflict((conflict) => conflict.doNothing()),
      )
      const seen = db.deleteFrom('user_session').where('jti', '=', principal.jti)
      await execute(this.#store, seen)
    })
  }

  async #begin(
    user: UserRow,
    now: number,
    origin: SessionOrigin,
    { jti, authenticatedAt }: { readonly jti: string; readonly authenticatedAt?: number },
  ): Promise<string> {
    const mark = fingerprint(user.password_hash)
    const expiresAt = now + SESSION_SECONDS * 1_000
    const row = { jti, user_id: user.id, password_mark: mark, expires_at: expiresAt }
    await this.seen.begin(row, origin, now)
    return this.#sign('user', user.id, mark, now, { jti, authenticatedAt })
  }

  async #sign(
    kind: Claims['kind'],
    id: number,
    passwordMark: string,
    now: number,
    { jti, authenticatedAt }: { jti?: string; authenticatedAt?: number | undefined } = {},
  ): Promise<string> {
    const iat = Math.floor(now / 1_000)
    const latest = (authenticatedAt ?? Infinity) + LONGEST_SESSION_SECONDS
    const claims: Claims = {
      iss: 'tollgate',
      sub: String(id),
      kind,
      jti: jti ?? this.#newId(),
      iat,
      exp: Math.min(iat + SESSION_SECONDS, latest),
      ...(authenticatedAt !== undefined && { auth_time: authenticatedAt }),
      pwd: passwordMark,
    }
    return signJwt(claims, await this.#signingSecret())
  }

  async #signingSecret(): Promise<string> {
    return (this.#secret ??= await this.#readSecret())
  }

  #newId(): string {
    return this.#randomBytes(16).toString('base64url')
  }

  async #user(claims: Claims): Promise<Principal | undefined> {
    const user = await this.#users.byId(Number(claims.sub))
    if (user === undefined || user.is_active === 0) return undefined
    if (fingerprint(user.password_hash) !== claims.pwd) return undefined
    return {
      ...rightsOf(user),
      jti: claims.jti,
      expiresAt: claims.exp * 1_000,
      latestExpiresAt: latestExpiryOf(claims) * 1_000,
      passwordMark: claims.pwd,
    }
  }

  async #customer(claims: Claims): Promise<Principal | undefined> {
    const customer = await this.#users.customerById(Number(claims.sub))
    if (customer === undefined || customer.is_active === 0) return undefined
    if (customer.password_hash === null) return undefined
    if (fingerprint(customer.password_hash) !== claims.pwd) return undefined
    return {
      kind: 'customer',
      actor: `customer:${customer.id}`,
      customerId: customer.id,
      email: customer.email ?? '',
      jti: claims.jti,
      expiresAt: claims.exp * 1_000,
      scopeLabels: roleScopes.customer,
      scopes: permissionsOf('customer'),
      tenantId: customer.tenant_id,
      tenantSlug: null,
      domain: null,
    }
  }
}

/** A session that no request opens, such as one of a test. */
const unknownOrigin: SessionOrigin = { address: '', userAgent: undefined }

const latestExpiryOf = ({ auth_time: authenticatedAt, exp }: Claims): number =>
  authenticatedAt === undefined ? exp : authenticatedAt + LONGEST_SESSION_SECONDS

/** Who a user is, and what the user may do now. */
export const rightsOf = (user: UserRow) => ({
  kind: 'user' as const,
  actor: actorOfUser(user),
  userId: user.id,
  username: user.username,
  role: user.role,
  scopeLabels: roleScopes[user.role],
  scopes: permissionsOf(user.role),
  tenantId: user.tenant_id,
  tenantSlug: user.tenant_slug,
  domain: null,
})

/** Tenants may have users with the same name; names contain no slash. */
export const actorOfUser = ({ username, tenant_slug: slug }: UserRow): string =>
  slug === null ? `user:${username}` : `user:${slug}/${username}`

/**
 * An argon2id hash contains a random salt: part of its digest reveals nothing about the password.
 */
export const fingerprint = (passwordHash: string): string =>
  hash('sha256', passwordHash, 'base64url').slice(0, 16)

const header = Buffer.from('{"alg":"HS256","typ":"JWT"}').toString('base64url')

/** Tolerance for a clock that is being corrected. */
const LEEWAY_MS = 2_000

const claimsForm = z.strictObject({
  iss: z.literal('tollgate'),
  sub: z.string(),
  /** The subject: `user:<id>` or `customer:<id>`. */
  kind: z.enum(['user', 'customer']),
  jti: z.string(),
  /** Seconds since the epoch, as for `exp`. */
  iat: z.number(),
  exp: z.number(),
  /** When the password was checked: only the token of a session that may be renewed has it. */
  auth_time: z.number().optional(),
  /** Changes with the password, which ends every session. */
  pwd: z.string(),
})
export type Claims = z.output<typeof claimsForm>

/**
 * JSON Web Tokens (RFC 7519) for people, HS256 only. The header is compared as constant text, so no
 * token can choose its algorithm. A synchronous HMAC takes 3 µs, WebCrypto 68 µs.
 */
export function signJwt(claims: Claims, secret: string): string {
  const payload = Buffer.from(JSON.stringify(claims)).toString('base64url')
  return `${header}.${payload}.${signature(`${header}.${payload}`, secret).toString('base64url')}`
}

/**
 * Returns the claims of a token that this service signed and that has not expired at `now`
 * (milliseconds). Rejects a token from the future: it was signed before the clock was set back and
 * would live too long.
 */
export function verifyJwt(token: string, secret: string, now: number): Claims | undefined {
  const [head, payload = '', signed = ''] = token.split('.')
  if (head !== header) return undefined
  const expected = signature(`${header}.${payload}`, secret)
  const presented = Buffer.from(signed, 'base64url')
  if (presented.length !== expected.length || !timingSafeEqual(presented, expected))
    return undefined
  const claims = claimsForm.safeParse(JSON.parse(Buffer.from(payload, 'base64url').toString()))
  if (!claims.success) return undefined
  const { iat, exp } = claims.data
  return iat * 1_000 <= now + LEEWAY_MS && now < exp * 1_000 ? claims.data : undefined
}

const signature = (text: string, secret: string): Buffer =>
  createHmac('sha256', secret).update(text).digest()

const NAME = 'jwt_secret'
const secretRef = { table: 'setting', column: 'value', row: NAME } as const

/**
 * Returns the configured secret, or one that is generated at the first start and stored in the
 * database.
 */
export async function jwtSecret(
  store: Store,
  configured: string | undefined,
  randomBytes: (size: number) => Buffer,
): Promise<string> {
  if (configured !== undefined) return configured
  return transaction(store, async () => {
    const query = store.db.selectFrom('setting').select('value').where('name', '=', NAME)
    const stored = (await first(store, query))?.value
    if (stored !== undefined) return opened(store, stored)
    const value = randomBytes(48).toString('base64url')
    const row = { name: NAME, value: store.secrets.seal(secretRef, value) }
    await execute(store, store.db.insertInto('setting').values(row))
    return value
  })
}

function opened(store: Store, stored: string): string {
  const value = store.secrets.open(secretRef, stored)
  if (value === undefined)
    throw new DatabaseRefused(`cannot use the database: its ${NAME} is damaged`)
  return value
}
