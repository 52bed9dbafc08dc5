/** Identity providers as they are stored, and the users who are known by them. */
import { createHash } from 'node:crypto'
import type { Selectable } from 'kysely'
import { fromFlag } from '../../../schema/columns.ts'
import type { Store } from '../../../schema/storage/store.ts'
import { all, execute, first, insert, transaction } from '../../../schema/sql/query.ts'
import type { IdentityProviderTable } from '../../../schema/tables/access.ts'
import { hashPassword } from '../passwords.ts'
import { writeWithinLimits } from '../tenant-limits.ts'
import type { UserRow, UserStore } from '../user-store.ts'
import type { RoleMapping } from './role-mappings.ts'

type StoredProvider = Selectable<IdentityProviderTable>

export interface ProviderRow extends Omit<
  StoredProvider,
  'scopes' | 'role_mappings' | 'client_secret'
> {
  readonly scopes: readonly string[]
  readonly mappings: readonly RoleMapping[]
  /** Undefined: the client has none. */
  readonly clientSecret: string | undefined
}

/** Buttons of a sign-in. */
const MAX_OFFERED = 20

export type SignedIn =
  | { readonly kind: 'user'; readonly user: UserRow; readonly isNew: boolean }
  | {
      readonly kind: 'refused'
      readonly why: 'inactive' | 'unknown_tenant' | 'last_admin' | 'no_name'
    }

export interface IdentityOfUser {
  readonly subject: string
  readonly username: string
  readonly mapping: RoleMapping
}

interface IdentityStoreDeps {
  readonly store: Store
  readonly users: UserStore
  readonly randomBytes: (size: number) => Buffer
}

export class IdentityStore {
  readonly #deps: IdentityStoreDeps
  readonly #store: Store

  constructor(deps: IdentityStoreDeps) {
    this.#deps = deps
    this.#store = deps.store
  }

  /** The providers of a tenant, or of the platform, by which its users may sign in. */
  async offered(slug: string | undefined): Promise<readonly { id: number; name: string }[]> {
    const query = this.#store.db
      .selectFrom('identity_provider')
      .leftJoin('tenant', 'tenant.id', 'identity_provider.tenant_id')
      .select(['identity_provider.id', 'identity_provider.name'])
      .where('is_enabled', '=', 1)
      .$if(slug === undefined, (rows) => rows.where('tenant_id', 'is', null))
      .$if(slug !== undefined, (rows) =>
        rows.where('tenant.slug', '=', slug ?? '').where('tenant.is_active', '=', 1),
      )
    return all(this.#store, query.orderBy('identity_provider.name').limit(MAX_OFFERED))
  }

  /** Undefined: it or its tenant is not there or not in use, or its secret cannot be read. */
  async provider(id: number): Promise<ProviderRow | undefined> {
    const query = this.#store.db
      .selectFrom('identity_provider')
      .leftJoin('tenant', 'tenant.id', 'identity_provider.tenant_id')
      .selectAll('identity_provider')
      .where('identity_provider.id', '=', id)
      .where('is_enabled', '=', 1)
      .where((row) => row.or([row('tenant_id', 'is', null), row('tenant.is_active', '=', 1)]))
    const row = await first(this.#store, query)
    if (row === undefined) return undefined
    const { scopes, role_mappings: mappings, client_secret: sealed, ...rest } = row
    const clientSecret =
      sealed === null ? undefined : this.#store.secrets.open(secretPlace(id), sealed)
    if (sealed !== null && clientSecret === undefined) return undefined
    return {
      ...rest,
      scopes: JSON.parse(scopes) as string[],
      mappings: JSON.parse(mappings) as RoleMapping[],
      clientSecret,
    }
  }

  /** The user who is known by this subject; never one who only has the same name or address. */
  async find(provider: ProviderRow, subject: string): Promise<UserRow | undefined> {
    const { tenant_id: ownerId, issuer } = provider
    const query = this.#store.db
      .selectFrom('user_identity')
      .select('user_id')
      .where('owner_id', ownerId === null ? 'is' : '=', ownerId)
      .where('issuer', '=', issuer)
      .where('subject', '=', subject)
    const row = await first(this.#store, query)
    return row && this.#deps.users.byId(row.user_id)
  }

  /** Gives the user the role and the tenant that the provider says, and makes the user at first. */
  async signIn(provider: ProviderRow, identity: IdentityOfUser, now: number): Promise<SignedIn> {
    // Nobody knows it: these users sign in by their provider.
    const passwordHash = await hashPassword(this.#deps.randomBytes(32).toString('base64url'))
    const tenantId = await this.#tenantOf(provider, identity.mapping)
    if (tenantId === undefined) return { kind: 'refused', why: 'unknown_tenant' }
    return transaction(this.#store, async () => {
      const known = await this.find(provider, identity.subject)
      if (known !== undefined) return this.#updated(known, identity, tenantId, now)
      const user = await this.#made(provider, identity, { tenantId, passwordHash, now })
      return user === undefined
        ? { kind: 'refused', why: 'no_name' }
        : { kind: 'user', user, isNew: true }
    })
  }

  async #updated(
    known: UserRow,
    { mapping: { role }, username, subject }: IdentityOfUser,
    tenantId: number | null,
    now: number,
  ): Promise<SignedIn> {
    if (!fromFlag(known.is_active)) return { kind: 'refused', why: 'inactive' }
    if (known.role === role && known.tenant_id === tenantId)
      return { kind: 'user', user: known, isNew: false }
    const isMoved = known.tenant_id !== tenantId
    const name = isMoved ? await this.#freeName(username, subject, tenantId) : known.username
    if (name === undefined) return { kind: 'refused', why: 'no_name' }
    const change = { role, tenant_id: tenantId, username: name, updated_at: now }
    const user = await this.#deps.users.update(known.id, change)
    if (user === 'last_admin' || user === undefined) return { kind: 'refused', why: 'last_admin' }
    return { kind: 'user', user, isNew: false }
  }

  async #made(
    { tenant_id: ownerId, issuer }: ProviderRow,
    { subject, username, mapping: { role } }: IdentityOfUser,
    { tenantId, passwordHash, now }: { tenantId: number | null; passwordHash: string; now: number },
  ): Promise<UserRow | undefined> {
    const { users } = this.#deps
    const name = await this.#freeName(username, subject, tenantId)
    if (name === undefined) return undefined
    const row = { username: name, role, tenant_id: tenantId, password_hash: passwordHash }
    const user = await writeWithinLimits(this.#store, { tenantId }, ['users'], () =>
      users.insert({ ...row, created_at: now, updated_at: now }),
    )
    if (user === undefined) return undefined
    const link = { user_id: user.id, owner_id: ownerId, issuer, subject, created_at: now }
    await insert(
      this.#store,
      this.#store.db.insertInto('user_identity').values(link).returning('id'),
    )
    return user
  }

  /** A name that somebody else has gets an end of its own: names alone link nobody. */
  async #freeName(
    username: string,
    subject: string,
    tenantId: number | null,
  ): Promise<string | undefined> {
    const mark = createHash('sha256').update(subject).digest('hex').slice(0, 8)
    for (const name of [username, `${username}.${mark}`]) {
      const taken = await this.#deps.users.byUsername(name)
      if (name !== '' && !taken.some(({ tenant_id: id }) => id === tenantId)) return name
    }
    return undefined
  }

  /** Undefined: the mapping names a tenant that is not there, or not the provider's. */
  async #tenantOf(
    { tenant_id: ownerId }: ProviderRow,
    { tenant: slug }: RoleMapping,
  ): Promise<number | null | undefined> {
    if (slug == null) return ownerId
    const query = this.#store.db
      .selectFrom('tenant')
      .select('id')
      .where('slug', '=', slug)
      .where('is_active', '=', 1)
    const id = (await first(this.#store, query))?.id
    return ownerId === null || id === ownerId ? id : undefined
  }
}

export const secretPlace = (row: number) =>
  ({ table: 'identity_provider', column: 'client_secret', row }) as const

/** Null: the client has no secret any more. */
export async function putClientSecret(
  store: Store,
  id: number,
  secret: string | null,
): Promise<void> {
  const sealed = secret === null ? null : store.secrets.seal(secretPlace(id), secret)
  const update = store.db.updateTable('identity_provider').set({ client_secret: sealed })
  await execute(store, update.where('id', '=', id))
}
