/** Application keys in the database. Every write clears the cache before it resolves. */
import { type Insertable, type RawBuilder, type Selectable, sql, type Updateable } from 'kysely'
import { fromFlag, toFlag } from '../../schema/columns.ts'
import type { ApplicationKeyTable } from '../../schema/database.ts'
import type { Store } from '../../schema/open.ts'
import { prepare, type Prepared } from '../../schema/sql/prepared.ts'
import { all, execute, first, insert, transaction } from '../../schema/sql/query.ts'
import { readApart } from '../../schema/sql/read-apart.ts'
import type { AppKey, KeyKind, KeyState } from './app-key.ts'
import { ApiError } from '../http/api-error.ts'
import { likePattern } from '../http/page.ts'

/** A token that starts with the wanted prefix: a key's own, or one in its grace period. */
export interface Candidate {
  readonly key_id: number
  readonly key_hash: Buffer
  readonly token_expires_at: number | null
}

export interface KeyFilter {
  /** Only keys of this tenant; null for those of all tenants and global ones. */
  readonly tenantId: number | null
  /** Only keys of this domain; null for all domains. */
  readonly domain: string | null
  /** Within that, only keys of the tenant with this slug. */
  readonly tenantSlug?: string | undefined
  readonly id?: number | undefined
  /** The exact name. */
  readonly name?: string | undefined
  /** Part of name, description or owner, or of the columns in `searchIn`. */
  readonly search?: string | undefined
  readonly searchIn?: readonly SearchableColumn[] | undefined
  readonly state?: KeyState | undefined
  readonly kinds?: readonly KeyKind[] | undefined
}

/** Maximum tokens of one key in their grace period; a further one evicts the oldest. */
const MAX_PREVIOUS_TOKENS = 10

type OnRevoked = (key: AppKey) => void | Promise<void>

export class KeyStore {
  readonly #store: Store
  readonly #cache: { clear(): void }
  readonly #onRevoked: OnRevoked
  readonly #candidates: Prepared<{ prefix: string }, Candidate>
  readonly #byId: Prepared<{ id: number }, KeyRow>

  /** `onRevoked` runs once per key, in the transaction that revokes it. */
  constructor(store: Store, cache: { clear(): void }, onRevoked: OnRevoked = () => undefined) {
    this.#store = store
    this.#cache = cache
    this.#onRevoked = onRevoked
    this.#candidates = prepare(store, (db, param) =>
      db
        .selectFrom('application_key')
        .select(['id as key_id', 'key_hash', sql<number | null>`NULL`.as('token_expires_at')])
        .where('key_prefix', '=', param('prefix'))
        .unionAll(
          db
            .selectFrom('application_key_previous')
            .select(['application_key_id as key_id', 'key_hash', 'expires_at as token_expires_at'])
            .where('key_prefix', '=', param('prefix')),
        ),
    )
    this.#byId = prepare(store, (_, param) => this.#rows().where('key.id', '=', param('id')))
  }

  /** Returns all tokens with this prefix; prefixes are not unique. */
  candidates(prefix: string): Promise<readonly Candidate[]> {
    return this.#candidates.all({ prefix })
  }

  async byId(id: number): Promise<AppKey | undefined> {
    const row = await this.#byId.get({ id })
    return row && toKey(row)
  }

  /** Keys outside `tenantId` do not exist for the caller; null for all keys. */
  async byUuid(uuid: string, tenantId: number | null): Promise<AppKey | undefined> {
    let query = this.#rows().where('key.uuid', '=', uuid)
    if (tenantId !== null) query = query.where('key.tenant_id', '=', tenantId)
    const row = await first(this.#store, query)
    return row && toKey(row)
  }

  list(filter: KeyFilter, now: number, page: { limit: number; offset: number }) {
    const matching = this.#matching(filter, now)
    const count = matching.clearSelect().select((key) => key.fn.countAll<number>().as('total'))
    const rows = matching.orderBy('key.id').limit(page.limit).offset(page.offset)
    return readApart(this.#store, filter.tenantId, async () => ({
      keys: (await all(this.#store, rows)).map(toKey),
      total: (await first(this.#store, count))?.total ?? 0,
    }))
  }

  /** Runs `work`, which reads and writes keys, in a transaction. All keys are read again afterwards. */
  async atomically<T>(work: () => Promise<T>): Promise<T> {
    try {
      const done = await transaction(this.#store, work)
      // In the transaction of a caller, others read the keys as they were until that is committed.
      this.#store.statements.afterCommit(() => this.#cache.clear())
      return done
    } catch (error) {
      // A refusal has changed no key; of another error it is not known.
      if (!(error instanceof ApiError)) this.#cache.clear()
      throw error
    }
  }

  /** Returns `'name_taken'` when the tenant has a key with this name, even a revoked one. */
  insert(key: NewKey): Promise<AppKey | 'name_taken'> {
    return this.atomically(async () => {
      if (await this.#isNameTaken(key.name, key.tenantId, undefined)) return 'name_taken'
      const row = this.#store.db.insertInto('application_key').values(toRow(key))
      return this.#existing(await insert(this.#store, row.returning('id')))
    })
  }

  update(key: AppKey, change: KeyChange): Promise<AppKey | 'name_taken'> {
    return this.atomically(async () => {
      if (change.name !== undefined && (await this.#isNameTaken(change.name, key.tenantId, key.id)))
        return 'name_taken'
      const columns = changedColumns(change)
      if (Object.keys(columns).length > 0) {
        const update = this.#store.db.updateTable('application_key').set(columns)
        await execute(this.#store, update.where('id', '=', key.id))
      }
      return this.#existing(key.id)
    })
  }

  /** Takes effect with the next request on this node, and within a second on the others; null: it is resumed. */
  setSuspension(
    key: AppKey,
    suspension: { readonly at: number; readonly by: string } | null,
  ): Promise<AppKey> {
    return this.atomically(async () => {
      const columns = { suspended_at: suspension?.at ?? null, suspended_by: suspension?.by ?? null }
      const update = this.#store.db.updateTable('application_key').set(columns)
      await execute(this.#store, update.where('id', '=', key.id))
      return this.#existing(key.id)
    })
  }

  /** Permanent, and ends all tokens in their grace period. Safe to repeat: the first time is kept. */
  revoke(key: AppKey, now: number): Promise<AppKey> {
    return this.atomically(async () => {
      const changes = await execute(
        this.#store,
        this.#store.db
          .updateTable('application_key')
          .set({ revoked_at: now, is_active: 0 })
          .where('id', '=', key.id)
          .where('revoked_at', 'is', null),
      )
      const revoked = await this.#existing(key.id)
      if (changes > 0) await this.#onRevoked(revoked)
      return revoked
    })
  }

  /** The new token replaces the key's token; every older one ends at `graceEndsAt` or earlier. */
  rotate(
    key: AppKey,
    keyPrefix: string,
    keyHash: Buffer,
    graceEndsAt: number,
    now: number,
  ): Promise<AppKey> {
    const { db } = this.#store
    return this.atomically(async () => {
      const old = await first(
        this.#store,
        db
          .selectFrom('application_key')
          .select(['key_prefix', 'key_hash'])
          .where('id', '=', key.id),
      )
      const previous = db
        .updateTable('application_key_previous')
        .set({
          expires_at: graceEndsAt,
        })
        .where('application_key_id', '=', key.id)
        .where('expires_at', '>', graceEndsAt)
      await execute(this.#store, previous)
      if (old && graceEndsAt > now)
        await execute(
          this.#store,
          db
            .insertInto('application_key_previous')
            .values({ ...old, application_key_id: key.id, expires_at: graceEndsAt }),
        )
      const renewed = { key_prefix: keyPrefix, key_hash: keyHash }
      const update = db.updateTable('application_key').set(renewed)
      await execute(this.#store, update.where('id', '=', key.id))
      await this.#dropPrevious(key.id, now)
      return this.#existing(key.id)
    })
  }

  async #dropPrevious(keyId: number, now: number): Promise<void> {
    const { db } = this.#store
    const newest = db
      .selectFrom('application_key_previous')
      .select('id')
      .where('application_key_id', '=', keyId)
      .where('expires_at', '>', now)
      .orderBy('id', 'desc')
      .limit(MAX_PREVIOUS_TOKENS)
    await execute(
      this.#store,
      db
        .deleteFrom('application_key_previous')
        .where('application_key_id', '=', keyId)
        .where('id', 'not in', newest),
    )
  }

  async #existing(id: number): Promise<AppKey> {
    const key = await this.byId(id)
    if (key === undefined) throw new Error(`application key ${id} vanished inside its transaction`)
    return key
  }

  #rows() {
    return this.#store.db
      .selectFrom('application_key as key')
      .leftJoin('tenant', 'tenant.id', 'key.tenant_id')
      .selectAll('key')
      .select('tenant.slug as tenant_slug')
  }

  #matching(filter: KeyFilter, now: number) {
    let query = this.#rows()
    if (filter.tenantId !== null) query = query.where('key.tenant_id', '=', filter.tenantId)
    if (filter.domain !== null) query = query.where('key.domain', '=', filter.domain)
    if (filter.tenantSlug !== undefined) query = query.where('tenant.slug', '=', filter.tenantSlug)
    if (filter.kinds !== undefined) query = query.where('key.kind', 'in', filter.kinds)
    if (filter.id !== undefined) query = query.where('key.id', '=', filter.id)
    if (filter.name !== undefined) query = query.where('key.name', '=', filter.name)
    if (filter.search !== undefined) query = query.where(mentions(filter.search, filter.searchIn))
    return filter.state === undefined ? query : query.where(inState(filter.state, now))
  }

  async #isNameTaken(
    name: string,
    tenantId: number | null,
    except: number | undefined,
  ): Promise<boolean> {
    let query = this.#store.db
      .selectFrom('application_key')
      .select('id')
      .where('name', '=', name)
      .where('tenant_id', tenantId === null ? 'is' : '=', tenantId)
    if (except !== undefined) query = query.where('id', '!=', except)
    return (await first(this.#store, query)) !== undefined
  }
}

export type KeyRow = Selectable<ApplicationKeyTable> & { readonly tenant_slug: string | null }

/** Fields set at creation; the rest of a row starts with defaults. */
export type NewKey = Omit<
  AppKey,
  'id' | 'suspendedAt' | 'suspendedBy' | 'revokedAt' | 'tenantSlug' | 'requestCount' | 'lastUsedAt'
> & { readonly keyHash: Buffer }

/** Absent keeps the value; null clears it. */
export type KeyChange = Partial<
  Pick<
    AppKey,
    | 'name'
    | 'description'
    | 'scopeLabels'
    | 'rateLimitRpm'
    | 'expiresAt'
    | 'isActive'
    | 'domain'
    | 'allowedIps'
  >
>

function toKey(row: KeyRow): AppKey {
  return {
    id: row.id,
    uuid: row.uuid,
    kind: row.kind,
    name: row.name,
    description: row.description,
    keyPrefix: row.key_prefix,
    scopeLabels: readList(row.scopes),
    rateLimitRpm: row.rate_limit_rpm,
    expiresAt: row.expires_at,
    isActive: fromFlag(row.is_active),
    suspendedAt: row.suspended_at,
    suspendedBy: row.suspended_by,
    revokedAt: row.revoked_at,
    tenantId: row.tenant_id,
    tenantSlug: row.tenant_slug,
    domain: row.domain,
    allowedIps: readList(row.allowed_ips),
    ownerUsername: row.owner_username,
    requestCount: row.request_count,
    lastUsedAt: row.last_used_at,
    createdAt: row.created_at,
  }
}

function readList(json: string): readonly string[] {
  const list: unknown = JSON.parse(json)
  return Array.isArray(list) ? list.filter((item) => typeof item === 'string') : []
}

export function toRow(key: NewKey): Insertable<ApplicationKeyTable> {
  return {
    uuid: key.uuid,
    kind: key.kind,
    name: key.name,
    description: key.description,
    key_prefix: key.keyPrefix,
    key_hash: key.keyHash,
    scopes: JSON.stringify(key.scopeLabels),
    rate_limit_rpm: key.rateLimitRpm,
    expires_at: key.expiresAt,
    is_active: toFlag(key.isActive),
    suspended_at: null,
    suspended_by: null,
    revoked_at: null,
    tenant_id: key.tenantId,
    domain: key.domain,
    allowed_ips: JSON.stringify(key.allowedIps),
    owner_username: key.ownerUsername,
    last_used_at: null,
    created_at: key.createdAt,
  }
}

function changedColumns(change: KeyChange): Updateable<ApplicationKeyTable> {
  return {
    ...(change.name !== undefined && { name: change.name }),
    ...(change.description !== undefined && { description: change.description }),
    ...(change.scopeLabels !== undefined && { scopes: JSON.stringify(change.scopeLabels) }),
    ...(change.rateLimitRpm !== undefined && { rate_limit_rpm: change.rateLimitRpm }),
    ...(change.expiresAt !== undefined && { expires_at: change.expiresAt }),
    ...(change.isActive !== undefined && { is_active: toFlag(change.isActive) }),
    ...(change.domain !== undefined && { domain: change.domain }),
    ...(change.allowedIps !== undefined && { allowed_ips: JSON.stringify(change.allowedIps) }),
  }
}

export type SearchableColumn = 'name' | 'description' | 'owner_username'

/** Whether the text occurs in one of these columns, without regard to ASCII case. */
function mentions(
  search: string,
  columns: readonly SearchableColumn[] = ['name', 'description', 'owner_username'],
): RawBuilder<boolean> {
  const pattern = likePattern(search)
  const matches = columns.map(
    (column) => sql`lower(${sql.ref(`key.${column}`)}) LIKE lower(${pattern}) ESCAPE '\\'`,
  )
  return sql<boolean>`(${sql.join(matches, sql` OR `)})`
}

/** `keyStateAt` as SQL. */
function inState(state: KeyState, now: number): RawBuilder<boolean> {
  const isAlive = sql<boolean>`key.revoked_at IS NULL AND (key.expires_at IS NULL OR key.expires_at > ${now})`
  const conditions: Readonly<Record<KeyState, RawBuilder<boolean>>> = {
    revoked: sql`key.revoked_at IS NOT NULL`,
    expired: sql`key.revoked_at IS NULL AND key.expires_at <= ${now}`,
    suspended: sql`${isAlive} AND key.suspended_at IS NOT NULL`,
    active: sql`${isAlive} AND key.suspended_at IS NULL AND key.is_active = 1`,
    inactive: sql`${isAlive} AND key.suspended_at IS NULL AND key.is_active = 0`,
  }
  return conditions[state]
}
