/**
 * The second factor of users: codes of an authenticator (TOTP, RFC 6238), and recovery codes for
 * the day on which it is lost. Every code is accepted once, on all instances together.
 */
import { createHash } from 'node:crypto'
import { Secret, TOTP } from 'otpauth'
import { toFlag } from '../../schema/columns.ts'
import type { Store } from '../../schema/storage/store.ts'
import { all, execute, first, transaction } from '../../schema/sql/query.ts'
import type { LoginGuard } from './login-guard.ts'
import type { UserRow } from './user-store.ts'

const PERIOD_SECONDS = 30
/** Clocks of telephones are as far off as this many periods. */
const WINDOW = 1
const DIGITS = 6
/** As long as the HMAC (RFC 4226 §4). */
const SECRET_BYTES = 20
const RECOVERY_CODES = 10

/** The secret of an authenticator that has still to be confirmed. Shown once. */
export interface Enrolment {
  readonly secret: string
  readonly uri: string
}

export interface FactorState {
  readonly confirmedAt: number | null
  readonly recoveryCodesLeft: number
}

interface SecondFactorsDeps {
  readonly store: Store
  readonly randomBytes: (size: number) => Buffer
  /** Counts guesses of one address; and those of all addresses together. */
  readonly guard: LoginGuard
  readonly guardOfAll: LoginGuard
}

interface Guess {
  readonly code: string
  readonly address: string
  /** Milliseconds UTC, of which a code is made. */
  readonly now: number
  readonly steadyNow: number
}

export class SecondFactors {
  readonly #store: Store
  readonly #deps: SecondFactorsDeps

  constructor(deps: SecondFactorsDeps) {
    this.#deps = deps
    this.#store = deps.store
  }

  async stateOf(userId: number): Promise<FactorState> {
    const row = await this.#row(userId)
    const codes = this.#store.db
      .selectFrom('user_recovery_code')
      .select('code_hash')
      .where('user_id', '=', userId)
    const confirmedAt = row?.confirmed_at ?? null
    const left = confirmedAt === null ? 0 : (await all(this.#store, codes)).length
    return { confirmedAt, recoveryCodesLeft: left }
  }

  async isConfirmed(userId: number): Promise<boolean> {
    return (await this.#row(userId))?.confirmed_at != null
  }

  /** Undefined: the user has one already. A secret that nobody has confirmed is replaced. */
  async enrol(user: UserRow, now: number): Promise<Enrolment | undefined> {
    const bytes = Uint8Array.from(this.#deps.randomBytes(SECRET_BYTES))
    const secret = new Secret({ buffer: bytes.buffer }).base32
    const sealed = this.#store.secrets.seal(placeOf(user.id), secret)
    const { db } = this.#store
    const row = { user_id: user.id, secret: sealed, last_step: -1, created_at: now }
    return transaction(this.#store, async () => {
      if (await this.isConfirmed(user.id)) return undefined
      await this.remove(user.id)
      await execute(
        this.#store,
        db.insertInto('user_second_factor').values({ ...row, confirmed_at: null }),
      )
      return { secret, uri: authenticator(user, secret).toString() }
    })
  }

  /**
   * Turns the second factor on by its first code. Resolves with the recovery codes, which are shown
   * once; undefined: the code is wrong, or there is nothing to confirm.
   */
  async confirm(user: UserRow, guess: Guess): Promise<readonly string[] | undefined> {
    await this.#admit(user, guess)
    const confirmed = await transaction(this.#store, async () => {
      const row = await this.#row(user.id)
      if (row === undefined || row.confirmed_at !== null) return undefined
      if (!(await this.#usesStep(user, row.secret, guess))) return undefined
      const update = this.#store.db.updateTable('user_second_factor')
      const change = update.set({ confirmed_at: guess.now }).where('user_id', '=', user.id)
      await execute(this.#store, change)
      return this.renewCodes(user.id)
    })
    if (confirmed !== undefined) this.#succeeded(user, guess)
    return confirmed
  }

  /**
   * Whether this is a code of the user's authenticator, or a recovery code. It is used up. Rejects
   * with 429 after too many guesses.
   */
  async accepts(user: UserRow, guess: Guess): Promise<boolean> {
    await this.#admit(user, guess)
    const isRight = isOfAuthenticator(guess.code)
      ? await this.#acceptsCode(user, guess)
      : await this.#acceptsRecovery(user.id, guess.code)
    if (isRight) this.#succeeded(user, guess)
    return isRight
  }

  /** Replaces all recovery codes. Resolves with the new ones, of which only hashes are stored. */
  async renewCodes(userId: number): Promise<readonly string[]> {
    const codes = Array.from({ length: RECOVERY_CODES }, () =>
      recoveryCode(this.#deps.randomBytes(CODE_CHARACTERS)),
    )
    const { db } = this.#store
    await transaction(this.#store, async () => {
      await execute(this.#store, db.deleteFrom('user_recovery_code').where('user_id', '=', userId))
      const rows = codes.map((code) => ({ user_id: userId, code_hash: hashOf(userId, code) }))
      await execute(this.#store, db.insertInto('user_recovery_code').values(rows))
    })
    return codes
  }

  /** False: the user had none. */
  remove(userId: number): Promise<boolean> {
    return removeSecondFactor(this.#store, userId)
  }

  /** Whether the users of a tenant, or of the platform, must have one. */
  async isRequired(tenantId: number | null): Promise<boolean> {
    const query = this.#store.db
      .selectFrom('sign_in_policy')
      .select('is_second_factor_required')
      .where('tenant_id', tenantId === null ? 'is' : '=', tenantId)
    return (await first(this.#store, query))?.is_second_factor_required === 1
  }

  async require(tenantId: number | null, isRequired: boolean, now: number): Promise<void> {
    const { db } = this.#store
    const value = { is_second_factor_required: toFlag(isRequired), updated_at: now }
    await transaction(this.#store, async () => {
      const policy = db.updateTable('sign_in_policy').set(value)
      const ofTenant = policy.where('tenant_id', tenantId === null ? 'is' : '=', tenantId)
      if ((await execute(this.#store, ofTenant)) > 0) return
      const row = { ...value, tenant_id: tenantId }
      await execute(this.#store, db.insertInto('sign_in_policy').values(row))
    })
  }

  async #acceptsCode(user: UserRow, guess: Guess): Promise<boolean> {
    const row = await this.#row(user.id)
    return row !== undefined && row.confirmed_at !== null
      ? this.#usesStep(user, row.secret, guess)
      : false
  }

  /** The condition of the UPDATE lets one of several requests with the same code pass. */
  async #usesStep(user: UserRow, sealed: string, { code, now }: Guess): Promise<boolean> {
    const secret = this.#store.secrets.open(placeOf(user.id), sealed)
    if (secret === undefined) return false
    const token = compact(code)
    const delta = authenticator(user, secret).validate({ token, timestamp: now, window: WINDOW })
    if (delta === null) return false
    const step = Math.floor(now / (PERIOD_SECONDS * 1_000)) + delta
    const update = this.#store.db.updateTable('user_second_factor').set({ last_step: step })
    const unused = update.where('user_id', '=', user.id).where('last_step', '<', step)
    return (await execute(this.#store, unused)) > 0
  }

  async #acceptsRecovery(userId: number, code: string): Promise<boolean> {
    const removal = this.#store.db
      .deleteFrom('user_recovery_code')
      .where('user_id', '=', userId)
      .where('code_hash', '=', hashOf(userId, code))
    return (await execute(this.#store, removal)) > 0
  }

  #row(userId: number) {
    const query = this.#store.db.selectFrom('user_second_factor').selectAll()
    return first(this.#store, query.where('user_id', '=', userId))
  }

  /** Counts a guess before it is judged: of many at once, no more than the limit are. */
  async #admit({ id }: UserRow, { address, steadyNow }: Guess): Promise<void> {
    await this.#deps.guard.failed(guardName(id), address, steadyNow)
    await this.#deps.guardOfAll.failed(guardName(id), ANYWHERE, steadyNow)
  }

  #succeeded({ id }: UserRow, { address }: Guess): void {
    this.#deps.guard.succeeded(guardName(id), address)
    this.#deps.guardOfAll.succeeded(guardName(id), ANYWHERE)
  }
}

/** False: the user had none. */
export const removeSecondFactor = (store: Store, userId: number): Promise<boolean> =>
  transaction(store, async () => {
    const { db } = store
    await execute(store, db.deleteFrom('user_recovery_code').where('user_id', '=', userId))
    const removal = db.deleteFrom('user_second_factor').where('user_id', '=', userId)
    return (await execute(store, removal)) > 0
  })

/** Stands for all addresses together. */
const ANYWHERE = '0.0.0.0'

const guardName = (userId: number): string => `code of user ${userId}`

const placeOf = (userId: number) =>
  ({ table: 'user_second_factor', column: 'secret', row: userId }) as const

const authenticator = ({ username, tenant_slug: slug }: UserRow, secret: string): TOTP =>
  new TOTP({
    issuer: 'Tollgate',
    label: slug === null ? username : `${slug}/${username}`,
    algorithm: 'SHA1',
    digits: DIGITS,
    period: PERIOD_SECONDS,
    secret: Secret.fromBase32(secret),
  })

const compact = (code: string): string => code.replaceAll(/[\s-]/g, '').toLowerCase()

const isOfAuthenticator = (code: string): boolean => /^\d{6}$/.test(compact(code))

/** Without characters that look alike: 59 bits together. */
const alphabet = 'abcdefghjkmnpqrstuvwxyz23456789'
const CODE_CHARACTERS = 12

function recoveryCode(bytes: Buffer): string {
  const characters = [...bytes].map((byte) => alphabet[byte % alphabet.length])
  return characters.join('').replace(/^(.{4})(.{4})(.{4})$/, '$1-$2-$3')
}

const hashOf = (userId: number, code: string): Buffer =>
  createHash('sha256')
    .update(`${userId} ${compact(code)}`)
    .digest()
