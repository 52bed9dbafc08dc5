/** Application keys in the database. */
import { type Insertable, type RawBuilder, type Selectable, sql, type Updateable } from 'kysely'
import { fromFlag, toFlag } from '../../schema/columns.ts'
import type { Store } from '../../schema/storage/store.ts'
import {
  execute,
  first,
  insert,
  prepare,
  type Prepared,
  readApart,
  transaction,
} from '../../schema/sql/query.ts'
import type { AppKey, KeyKind, KeyPatch, KeyState } from './app-key.ts'
import { ApiError } from '../http/api-error.ts'
import type { FoundTable } from '../http/found-by.ts'
import { contains, pageOf, same } from '../http/rows.ts'
import type { ScopedResource } from './scopes.ts'
import type { ApplicationKeyTable } from '../../schema/tables/access.ts'

/** How a search finds keys: by what is shown of them, never by a token. */
export const foundKeys = {
  kind: 'key',
  scope: 'keys',
  table: sql.table('application_key'),
  id: 'application_key.id',
  owner: 'application_key.tenant_id',
  domain: 'application_key.domain',
  title: 'application_key.name',
  beside: ['application_key.key_prefix', 'application_key.description'],
  starts: ['application_key.key_prefix'],
  screen: 'keys',
  page: 'application_key.uuid',
} as const satisfies FoundTable & { readonly scope: ScopedResource }

/** A token that starts with the wanted prefix: a key's own, or one in its grace period. */
interface Candidate {
  readonly key_id: number
  readonly key_hash: Buffer
  readonly token_expires_at: number | null
}

type SearchableColumn = 'name' | 'description' | 'owner_username'

export interface KeyFilter {
  /** The tenant of the keys; null: those of all tenants, and global ones. */
  readonly tenantId: number | null
  /** The domain of the keys; null: all domains. */
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

interface KeyEvents {
  /** Called before a write resolves. */
  readonly onWrite?: () => void
  /** Called once per key, in the transaction that revokes it. */
  readonly onRevoked?: (key: AppKey) => void | Promise<void>
}

export class KeyStore {
  readonly #store: Store
  readonly #events: KeyEvents
  readonly #candidates: Prepared<{ prefix: string }, Candidate>
  readonly #byId: Prepared<{ id: number }, KeyRow>

  constructor(store: Store, events: KeyEvents = {}) {
    this.#store = store
    this.#events = events
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
    this.#byId = prepare(store, (_, param) =>
      this.#rows().where('application_key.id', '=', param('id')),
    )
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
    let query = this.#rows().where('application_key.uuid', '=', uuid)
    if (tenantId !== null) query = query.where('application_key.tenant_id', '=', tenantId)
    const row = await first(this.#store, query)
    return row && toKey(row)
  }

  async list(filter: KeyFilter, now: number, page: { limit: number; offset: number }) {
    const sorted = this.#matching(filter, now).orderBy('application_key.id')
    const { rows, total } = await readApart(this.#store, filter.tenantId, () =>
      pageOf(this.#store, sorted, page),
    )
    return { keys: rows.map(toKey), total }
  }

  /**
   * Runs `work`, which reads and writes keys, in a transaction. All keys are read again afterwards.
   */
  async atomically<T>(work: () => Promise<T>): Promise<T> {
    const { onWrite } = this.#events
    try {
      const done = await transaction(this.#store, work)
      // Until the transaction of a caller is committed, others read the keys as they were.
      this.#store.statements.afterCommit(() => onWrite?.())
      return done
    } catch (error) {
      // A refusal has changed no key; of another error it is not known.
      if (!(error instanceof ApiError)) onWrite?.()
      throw error
    }
  }

  /** Returns `'name_taken'` when the tenant has a key with this name, even a revoked one. */
  insert(row: Insertable<ApplicationKeyTable>): Promise<AppKey | 'name_taken'> {
    return this.atomically(async () => {
      if (await this.#isNameTaken(row.name, row.tenant_id ?? null)) return 'name_taken'
      const query = this.#store.db.insertInto('application_key').values(row)
      return this.#existing(await insert(this.#store, query.returning('id')))
    })
  }

  update(key: AppKey, patch: KeyPatch): Promise<AppKey | 'name_taken'> {
    const { scopes, is_active: isActive, allowed_ips: allowedIps, ...columns } = patch
    return this.atomically(async () => {
      if (patch.name !== undefined && (await this.#isNameTaken(patch.name, key.tenantId, key.id)))
        return 'name_taken'
      if (Object.values(patch).every((value) => value === undefined)) return key
      return this.#set(key.id, {
        ...columns,
        ...(scopes !== undefined && { scopes: JSON.stringify(scopes) }),
        ...(isActive !== undefined && { is_active: toFlag(isActive) }),
        ...(allowedIps !== undefined && { allowed_ips: JSON.stringify(allowedIps) }),
      })
    })
  }

  /**
   * Takes effect with the next request on this instance, and within a second on the others; null:
   * it is resumed.
   */
  setSuspension(
    key: AppKey,
    suspension: { readonly at: number; readonly by: string } | null,
  ): Promise<AppKey> {
    const columns = { suspended_at: suspension?.at ?? null, suspended_by: suspension?.by ?? null }
    return this.atomically(() => this.#set(key.id, columns))
  }

  /**
   * Permanent, and ends all tokens in their grace period. Safe to repeat: the first time is kept.
   */
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
      if (changes > 0) await this.#events.onRevoked?.(revoked)
      return revoked
    })
  }

  /** The new token replaces the key's token; every older one ends at `graceEndsAt` or earlier. */
  rotate(
    { id }: AppKey,
    keyPrefix: string,
    keyHash: Buffer,
    graceEndsAt: number,
    now: number,
  ): Promise<AppKey> {
    const { db } = this.#store
    return this.atomically(async () => {
      const own = db.selectFrom('application_key').select(['key_prefix', 'key_hash'])
      const old = await first(this.#store, own.where('id', '=', id))
      const previous = db
        .updateTable('application_key_previous')
        .set({ expires_at: graceEndsAt })
        .where('application_key_id', '=', id)
        .where('expires_at', '>', graceEndsAt)
      await execute(this.#store, previous)
      if (old && graceEndsAt > now) {
        const row = { ...old, application_key_id: id, expires_at: graceEndsAt }
        await execute(this.#store, db.insertInto('application_key_previous').values(row))
      }
      await this.#dropPrevious(id, now)
      return this.#set(id, { key_prefix: keyPrefix, key_hash: keyHash })
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
    const others = db
      .deleteFrom('application_key_previous')
      .where('application_key_id', '=', keyId)
      .where('id', 'not in', newest)
    await execute(this.#store, others)
  }

  async #set(id: number, columns: Updateable<ApplicationKeyTable>): Promise<AppKey> {
    const update = this.#store.db.updateTable('application_key').set(columns)
    await execute(this.#store, update.where('id', '=', id))
    return this.#existing(id)
  }

  async #existing(id: number): Promise<AppKey> {
    const key = await this.byId(id)
    if (key === undefined) throw new Error(`application key ${id} vanished inside its transaction`)
    return key
  }

  #rows() {
    return this.#store.db
      .selectFrom('application_key')
      .leftJoin('tenant', 'tenant.id', 'application_key.tenant_id')
      .selectAll('application_key')
      .select('tenant.slug as tenant_slug')
  }

  #matching(filter: KeyFilter, now: number) {
    const { tenantId, domain, tenantSlug, kinds, id, name, search, state } = filter
    const { searchIn = ['name', 'description', 'owner_username'] } = filter
    let query = this.#rows()
    if (tenantId !== null) query = query.where('application_key.tenant_id', '=', tenantId)
    if (domain !== null) query = query.where('application_key.domain', '=', domain)
    if (tenantSlug !== undefined) query = query.where('tenant.slug', '=', tenantSlug)
    if (kinds !== undefined) query = query.where('application_key.kind', 'in', kinds)
    if (id !== undefined) query = query.where('application_key.id', '=', id)
    if (name !== undefined) query = query.where('application_key.name', '=', name)
    if (search !== undefined) {
      const columns = searchIn.map((column) => `application_key.${column}`)
      query = query.where(contains(columns, search))
    }
    return state === undefined ? query : query.where(inState(state, now))
  }

  /** @param except the key that may have it. */
  async #isNameTaken(name: string, tenantId: number | null, except = 0): Promise<boolean> {
    const query = this.#store.db
      .selectFrom('application_key')
      .select('id')
      .where('name', '=', name)
      .where('tenant_id', same(tenantId), tenantId)
      .where('id', '!=', except)
    return (await first(this.#store, query)) !== undefined
  }
}

type KeyRow = Selectable<ApplicationKeyTable> & { readonly tenant_slug: string | null }

const toKey = (row: KeyRow): AppKey => ({
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
})

function readList(json: string): readonly string[] {
  const list: unknown = JSON.parse(json)
  return Array.isArray(list) ? list.filter((item) => typeof item === 'string') : []
}

/** `keyStateAt` as SQL. */
function inState(state: KeyState, now: number): RawBuilder<boolean> {
  const isAlive = sql<boolean>`revoked_at IS NULL AND (expires_at IS NULL OR expires_at > ${now})`
  const conditions: Readonly<Record<KeyState, RawBuilder<boolean>>> = {
    revoked: sql`revoked_at IS NOT NULL`,
    expired: sql`revoked_at IS NULL AND expires_at <= ${now}`,
    suspended: sql`${isAlive} AND suspended_at IS NOT NULL`,
    active: sql`${isAlive} AND suspended_at IS NULL AND application_key.is_active = 1`,
    inactive: sql`${isAlive} AND suspended_at IS NULL AND application_key.is_active = 0`,
  }
  return conditions[state]
}
