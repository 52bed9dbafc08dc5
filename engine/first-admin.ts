/**
 * Users that are not made through the API: by a command, and the first administrator at the first
 * start.
 */
import { hashPassword } from '../control/auth/passwords.ts'
import { UserStore } from '../control/auth/user-store.ts'
import type { Store } from '../schema/storage/store.ts'

export interface NewUser {
  readonly username: string
  readonly password: string
  readonly role: 'admin' | 'operator' | 'auditor'
}

/** False: there is a user of this name already. */
export async function addUser(store: Store, user: NewUser, now: number): Promise<boolean> {
  const { username, password, role } = user
  const passwordHash = await hashPassword(password)
  const row = await new UserStore(store).insert({
    username,
    role,
    password_hash: passwordHash,
    created_at: now,
    updated_at: now,
  })
  return row !== undefined
}

export interface FirstAdmin {
  readonly username: string
  /** Undefined: one is drawn. */
  readonly password: string | undefined
}

/**
 * Makes the administrator of a database that has no user at all. Answers the password where it was
 * drawn: the only moment at which it can be shown.
 */
export async function addFirstAdmin(
  store: Store,
  admin: FirstAdmin,
  now: number,
  randomBytes: (size: number) => Buffer,
): Promise<{ readonly drawnPassword: string } | undefined> {
  if (!(await new UserStore(store).isEmpty())) return undefined
  const password = admin.password ?? randomBytes(18).toString('base64url')
  await addUser(store, { username: admin.username, password, role: 'admin' }, now)
  return admin.password === undefined ? { drawnPassword: password } : undefined
}
