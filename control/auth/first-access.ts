/** Access that is given at the console: the first admin, `tollgate key create`, `tollgate user create`. */
import { z } from 'zod'
import type { Store } from '../../schema/open.ts'
import { problemsOf } from '../http/validate.ts'
import { ApiError } from '../http/api-error.ts'
import { consoleGrantor, issueKey } from './keys/issue-key.ts'
import { newKeyBody } from './keys/key-bodies.ts'
import { KeyCache } from './keys/key-cache.ts'
import { KeyStore } from './keys/key-store.ts'
import { hashPassword } from './users/passwords.ts'
import { newPassword, staffRole, username } from './users/user-routes.ts'
import { UserStore } from './users/user-store.ts'

export interface ConsoleDeps {
  readonly store: Store
  readonly now: () => number
  readonly randomBytes: (size: number) => Buffer
}

export type ConsoleResult<T> =
  | { readonly kind: 'created'; readonly value: T }
  /** One line for the person at the console. */
  | { readonly kind: 'refused'; readonly problem: string }

export interface KeyRequest {
  readonly name: string
  readonly kind?: string | undefined
  readonly scopes?: readonly string[] | undefined
  readonly tenantSlug?: string | undefined
  /** RFC 3339. */
  readonly expiresAt?: string | undefined
}

/** A key with any scope. `value` is the token: it is nowhere else. */
export function createKey(deps: ConsoleDeps, request: KeyRequest): ConsoleResult<string> {
  const body = newKeyBody.safeParse({
    name: request.name,
    ...(request.kind !== undefined && { kind: request.kind }),
    ...(request.scopes !== undefined && { scopes: request.scopes }),
    ...(request.expiresAt !== undefined && { expires_at: request.expiresAt }),
    ...(request.tenantSlug !== undefined && {
      tenant_scope: 'tenant',
      tenant_slug: request.tenantSlug,
    }),
  })
  if (!body.success) return refused(body.error)
  const keys = new KeyStore(deps.store, new KeyCache())
  try {
    const { token } = issueKey({ ...deps, keys }, body.data, consoleGrantor)
    return { kind: 'created', value: token }
  } catch (error) {
    if (error instanceof ApiError) return { kind: 'refused', problem: lineOf(error) }
    throw error
  }
}

const userRequest = z.object({ username, password: newPassword, role: staffRole })

/** A staff account of all tenants. `value` is the username as stored. */
export async function createUser(
  deps: ConsoleDeps,
  request: { readonly username: string; readonly password: string; readonly role: string },
): Promise<ConsoleResult<string>> {
  const body = userRequest.safeParse(request)
  if (!body.success) return refused(body.error)
  const user = new UserStore(deps.store).insert({
    username: body.data.username,
    role: body.data.role,
    password_hash: await hashPassword(body.data.password),
    tenant_id: null,
    created_at: deps.now(),
    updated_at: deps.now(),
  })
  if (user === undefined)
    return { kind: 'refused', problem: `there is a user ${body.data.username} already` }
  return { kind: 'created', value: user.username }
}

/**
 * The admin of a fresh installation; undefined when there are users already. A generated password
 * is returned this once, a given one is not.
 */
export async function createFirstAdmin(
  deps: ConsoleDeps,
  wanted: { readonly username: string; readonly password: string | undefined },
): Promise<ConsoleResult<{ username: string; generatedPassword: string | undefined }> | undefined> {
  if (!new UserStore(deps.store).isEmpty()) return undefined
  const generated = wanted.password === undefined ? randomPassword(deps) : undefined
  const password = wanted.password ?? generated ?? ''
  const created = await createUser(deps, { username: wanted.username, password, role: 'admin' })
  if (created.kind === 'refused') return created
  return { kind: 'created', value: { username: created.value, generatedPassword: generated } }
}

/** 144 random bits in 24 characters. */
const randomPassword = ({ randomBytes }: ConsoleDeps): string =>
  randomBytes(18).toString('base64url')

const refused = (error: z.ZodError): { kind: 'refused'; problem: string } => ({
  kind: 'refused',
  problem: problemsOf(error)
    .map(({ path, message }) => `${path}: ${message}`)
    .join('; '),
})

const lineOf = ({ message, details = [] }: ApiError): string =>
  details.length === 0
    ? message
    : details.map((detail) => `${detail.path}: ${detail.message}`).join('; ')
