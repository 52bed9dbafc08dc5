/**
 * Sessions of people. The token contains only the subject; role, tenant and active flag are read from the
 * row on each request, so that a change takes effect from the next one.
 */
import { hash } from 'node:crypto'
import type { Store } from '../../schema/open.ts'
import { prepare, type Prepared } from '../../schema/sql/prepared.ts'
import { execute, transaction } from '../../schema/sql/query.ts'
import type { CustomerPrincipal, Presented, Principal, UserPrincipal } from './principal.ts'
import { permissionsOf, roleScopes } from './scopes.ts'
import { signJwt, verifyJwt, type Claims } from './jwt.ts'
import type { CustomerLogin, UserRow, UserStore } from './user-store.ts'

export const SESSION_SECONDS = 3_600
/** From the login, however often the session is renewed. */
const LONGEST_SESSION_SECONDS = 12 * 3_600

const rejected: Presented = { kind: 'rejected' }

export class Sessions {
  readonly #store: Store
  readonly #users: UserStore
  readonly #readSecret: () => Promise<string>
  #secret: string | undefined
  readonly #randomBytes: (size: number) => Buffer
  readonly #denied: Prepared<{ jti: string }, { jti: string }>

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
    this.#denied = prepare(store, (db, param) =>
      db.selectFrom('jwt_denylist').select('jti').where('jti', '=', param('jti')),
    )
  }

  /** Reads the secret ahead, so that a damaged one is reported at the start. */
  async prepare(): Promise<void> {
    await this.#signingSecret()
  }

  forUser(user: UserRow, now: number): Promise<string> {
    return this.#sign('user', user.id, fingerprint(user.password_hash), now)
  }

  /** That of a console, which `renewed` makes last longer. */
  renewableForUser(user: UserRow, now: number): Promise<string> {
    const beginning = { jti: this.#newId(), authenticatedAt: Math.floor(now / 1_000) }
    return this.#sign('user', user.id, fingerprint(user.password_hash), now, beginning)
  }

  /**
   * A token that expires later, once less than half of the session is left; undefined when it is too early, or when
   * the session has lasted as long as it may. All tokens of a session have one `jti`: its end is the end of all.
   * Nothing is read again: a password that has changed since the request was authenticated ends this token, too.
   */
  async renewed(
    { userId, jti, expiresAt, latestExpiresAt, passwordMark }: UserPrincipal,
    now: number,
  ): Promise<string | undefined> {
    const isDue = expiresAt - now < (SESSION_SECONDS * 1_000) / 2
    if (!isDue || expiresAt >= latestExpiresAt) return undefined
    const authenticatedAt = latestExpiresAt / 1_000 - LONGEST_SESSION_SECONDS
    return this.#sign('user', userId, passwordMark, now, { jti, authenticatedAt })
  }

  /** `passwordHash` is the one that the login has just verified. */
  forCustomer(customer: CustomerLogin, passwordHash: string, now: number): Promise<string> {
    return this.#sign('customer', customer.id, fingerprint(passwordHash), now)
  }

  async verify(token: string, now: number): Promise<Presented> {
    const claims = verifyJwt(token, await this.#signingSecret(), now)
    if (claims === undefined) return rejected
    if ((await this.#denied.get({ jti: claims.jti })) !== undefined) return rejected
    const principal = await (claims.kind === 'user' ? this.#user(claims) : this.#customer(claims))
    return principal === undefined ? rejected : { kind: 'accepted', principal }
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
    })
  }

  async #sign(
    kind: Claims['kind'],
    id: number,
    passwordMark: string,
    now: number,
    renewable?: { readonly jti: string; readonly authenticatedAt: number },
  ): Promise<string> {
    const iat = Math.floor(now / 1_000)
    const latest = (renewable?.authenticatedAt ?? Infinity) + LONGEST_SESSION_SECONDS
    const claims: Claims = {
      iss: 'tollgate',
      sub: String(id),
      kind,
      jti: renewable?.jti ?? this.#newId(),
      iat,
      exp: Math.min(iat + SESSION_SECONDS, latest),
      ...(renewable && { auth_time: renewable.authenticatedAt }),
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
    const scopeLabels = roleScopes[user.role]
    return {
      kind: 'user',
      actor: actorOfUser(user),
      userId: user.id,
      username: user.username,
      role: user.role,
      jti: claims.jti,
      expiresAt: claims.exp * 1_000,
      latestExpiresAt: latestExpiryOf(claims) * 1_000,
      passwordMark: claims.pwd,
      scopeLabels,
      scopes: permissionsOf(user.role),
      tenantId: user.tenant_id,
      tenantSlug: user.tenant_slug,
      domain: null,
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

const latestExpiryOf = ({ auth_time: authenticatedAt, exp }: Claims): number =>
  authenticatedAt === undefined ? exp : authenticatedAt + LONGEST_SESSION_SECONDS

/** Tenants may have users with the same name; names contain no slash. */
export const actorOfUser = ({ username, tenant_slug: slug }: UserRow): string =>
  slug === null ? `user:${username}` : `user:${slug}/${username}`

/** An argon2id hash contains a random salt: part of its digest reveals nothing about the password. */
const fingerprint = (passwordHash: string): string =>
  hash('sha256', passwordHash, 'base64url').slice(0, 16)
