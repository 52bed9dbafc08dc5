/** Staff accounts and the logins of customers, in the database. */
import { type Insertable, type Selectable, sql, type SqlBool, type Updateable } from 'kysely'
import { z } from 'zod'
import type { Store } from '../../schema/storage/store.ts'
import {
  all,
  execute,
  first,
  insert,
  prepare,
  type Prepared,
  readApart,
  transaction,
} from '../../schema/sql/query.ts'
import { notFound } from '../http/api-error.ts'
import * as field from '../http/field-table.ts'
import type { FoundTable } from '../http/found-by.ts'
import { text } from '../http/fields.ts'
import { contains, pageOf } from '../http/rows.ts'
import { newPassword } from './passwords.ts'
import type { Principal } from './principal.ts'
import type { ScopedResource } from './scopes.ts'
import type { CustomerTable } from '../../schema/tables/tenants.ts'
import type { UserTable } from '../../schema/tables/access.ts'

/** How a search finds staff accounts. */
export const foundUsers = {
  kind: 'user',
  scope: 'users',
  table: sql.table('user'),
  id: 'user.id',
  owner: 'user.tenant_id',
  title: 'user.username',
  beside: ['user.role'],
  screen: 'users',
} as const satisfies FoundTable & { readonly scope: ScopedResource }

export type UserRow = Selectable<UserTable> & {
  readonly tenant_slug: string | null
  readonly has_second_factor: SqlBool
}

const ofCustomer = ['id', 'name', 'email', 'password_hash', 'is_active', 'tenant_id'] as const

/** The columns of a customer that a login and a session need. */
export type CustomerLogin = Pick<Selectable<CustomerTable>, (typeof ofCustomer)[number]>

/** Maximum tenants in which a login without a tenant is tried: each try takes 10 ms. */
const MAX_NAMESAKES = 8

export interface UserFilter {
  /** Only users of this tenant; null for all. */
  readonly tenantId: number | null
  readonly search?: string | undefined
}

export class UserStore {
  readonly #store: Store
  readonly #byId: Prepared<{ id: number }, UserRow>
  readonly #customer: Prepared<{ id: number }, CustomerLogin>

  constructor(store: Store) {
    this.#store = store
    this.#byId = prepare(store, (_, param) => this.#rows().where('user.id', '=', param('id')))
    this.#customer = prepare(store, (_, param) => this.#customers().where('id', '=', param('id')))
  }

  byId(id: number): Promise<UserRow | undefined> {
    return this.#byId.get({ id })
  }

  /**
   * Returns the users with this name, global ones first; with `slug`, those of that tenant. Names
   * are stored in lower case.
   */
  byUsername(username: string, slug?: string): Promise<readonly UserRow[]> {
    const query = this.#rows()
      .where('username', '=', username.toLowerCase())
      .$if(slug !== undefined, (rows) => rows.where('tenant.slug', '=', slug ?? ''))
      .orderBy('user.tenant_id', (order) => order.asc().nullsFirst())
    return all(this.#store, query.limit(MAX_NAMESAKES))
  }

  customerById(id: number): Promise<CustomerLogin | undefined> {
    return this.#customer.get({ id })
  }

  /** Finds customers as `byUsername` finds users. */
  customersByEmail(email: string, slug?: string): Promise<readonly CustomerLogin[]> {
    const query = this.#customers()
      .where('email', '=', email.toLowerCase())
      .$if(slug !== undefined, (rows) =>
        rows.where('tenant_id', '=', (row) =>
          row
            .selectFrom('tenant')
            .select('tenant.id')
            .where('tenant.slug', '=', slug ?? ''),
        ),
      )
      .orderBy('tenant_id', (order) => order.asc().nullsFirst())
    return all(this.#store, query.limit(MAX_NAMESAKES))
  }

  async list(filter: UserFilter, page: { limit: number; offset: number }) {
    let query = this.#rows()
    if (filter.tenantId !== null) query = query.where('user.tenant_id', '=', filter.tenantId)
    const { search } = filter
    query = query.where(contains(['user.username'], search))
    const sorted = query.orderBy('user.id')
    return readApart(this.#store, filter.tenantId, () => pageOf(this.#store, sorted, page))
  }

  async isEmpty(): Promise<boolean> {
    const any = this.#store.db.selectFrom('user').select('id').limit(1)
    return (await first(this.#store, any)) === undefined
  }

  /** `undefined` when the tenant already has a user with this name. */
  insert(user: Insertable<UserTable>): Promise<UserRow | undefined> {
    const row = { ...user, username: user.username.toLowerCase() }
    return transaction(this.#store, async () => {
      const namesakes = this.#rows()
        .where('username', '=', row.username)
        .where('tenant_id', row.tenant_id == null ? 'is' : '=', row.tenant_id ?? null)
      if ((await first(this.#store, namesakes)) !== undefined) return undefined
      const query = this.#store.db.insertInto('user').values(row).returning('id')
      return this.byId(await insert(this.#store, query))
    })
  }

  /** `last_admin`: no user could manage users any more. Nothing is written. */
  update(id: number, change: Updateable<UserTable>): Promise<UserRow | 'last_admin' | undefined> {
    const update = this.#store.db.updateTable('user').set(change).where('id', '=', id)
    return this.#keepingAnAdmin(() => execute(this.#store, update), id)
  }

  /** Undefined: the user has gone, or has another password since it was read. */
  async changePassword(
    { id, password_hash: old }: UserRow,
    passwordHash: string,
    now: number,
  ): Promise<UserRow | undefined> {
    const change = { password_hash: passwordHash, updated_at: now }
    const update = this.#store.db.updateTable('user').set(change).where('id', '=', id)
    return transaction(this.#store, async () => {
      await execute(this.#store, update.where('password_hash', '=', old))
      const present = await this.byId(id)
      return present?.password_hash === passwordHash ? present : undefined
    })
  }

  async remove(id: number): Promise<'removed' | 'last_admin'> {
    const removal = this.#store.db.deleteFrom('user').where('id', '=', id)
    const outcome = await this.#keepingAnAdmin(() => execute(this.#store, removal), id)
    return outcome === 'last_admin' ? 'last_admin' : 'removed'
  }

  async #keepingAnAdmin(
    write: () => Promise<unknown>,
    id: number,
  ): Promise<UserRow | 'last_admin' | undefined> {
    try {
      return await transaction(this.#store, async () => {
        await write()
        const admins = this.#store.db
          .selectFrom('user')
          .select('id')
          .where('role', '=', 'admin')
          .where('is_active', '=', 1)
          .where('tenant_id', 'is', null)
        if ((await first(this.#store, admins.limit(1))) === undefined) throw lastAdmin
        return this.byId(id)
      })
    } catch (error) {
      if (error === lastAdmin) return 'last_admin'
      throw error
    }
  }

  #rows() {
    return this.#store.db
      .selectFrom('user')
      .leftJoin('tenant', 'tenant.id', 'user.tenant_id')
      .selectAll('user')
      .select('tenant.slug as tenant_slug')
      .select((row) =>
        row
          .exists(
            row
              .selectFrom('user_second_factor')
              .select('user_id')
              .whereRef('user_second_factor.user_id', '=', 'user.id')
              .where('confirmed_at', 'is not', null),
          )
          .as('has_second_factor'),
      )
  }

  #customers() {
    return this.#store.db.selectFrom('customer').select(ofCustomer)
  }
}

/** Thrown inside the transaction to roll it back. */
const lastAdmin = new Error('the last admin')

export const username = z
  .string()
  .regex(/^[\w.@+-]{1,64}$/, 'must be 1 to 64 letters, digits or . _ @ + -')
  .transform((name) => name.toLowerCase())
export const staffRole = z.enum(['admin', 'operator', 'auditor'])

/**
 * The body of a new user, the answers and the example follow from this table. Changes of users have
 * no undo, so users are no `Definition`.
 */
export const userFields = field.table(
  {
    id: field.id,
    username: field.required(field.asText(username), { example: 'ada' }),
    password: field.written(newPassword),
    role: field.required({ body: staffRole, view: staffRole }, { example: 'admin' }),
    tenant_slug: field.optional(field.asText(text(63).min(1))),
    is_active: field.of(field.yesOrNo, { default: true }),
    has_second_factor: field.shown(z.boolean(), { example: false }),
    created_at: field.createdAt,
    updated_at: field.updatedAt,
  },
  { schemaId: 'User' },
)

/** A user as the API shows it. */
export const userView = (user: UserRow) =>
  field.shownOf(userFields, user, { has_second_factor: Boolean(user.has_second_factor) })

/** Throws 404 for a user of another tenant, as for one that is not there. */
export async function visibleUser(
  users: UserStore,
  id: string,
  { tenantId }: Principal,
): Promise<UserRow> {
  const user = /^[1-9]\d{0,14}$/.test(id) ? await users.byId(Number(id)) : undefined
  if (user === undefined || (tenantId !== null && user.tenant_id !== tenantId))
    throw notFound('User')
  return user
}
