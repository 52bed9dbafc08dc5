/** Who is signed in. */
import { signal } from '@preact/signals'
import { get, send } from './api.ts'
import type { User } from './views.ts'
import { every } from './browser.ts'

export type ConsoleSession =
  | { readonly kind: 'unknown' }
  | { readonly kind: 'signed-out'; readonly isExpired: boolean }
  | { readonly kind: 'signed-in'; readonly user: User }

export const session = signal<ConsoleSession>({ kind: 'unknown' })

/** An answer within the last half hour of a session renews it. */
const RENEW_MS = 600_000

/**
 * Keeps the session of a page in use, and follows changes of its user, until the returned function
 * is called.
 */
export const keepSession = (): (() => void) => every(RENEW_MS, () => void askAgain())

async function askAgain(): Promise<void> {
  const answer = await askForUser()
  if (answer.kind !== 'ok' || session.value.kind !== 'signed-in') return
  const { profile: user } = answer.data
  if (user === null) sessionEnded()
  else session.value = { kind: 'signed-in', user }
}

/** Null: nobody is signed in. */
const askForUser = () => get<{ readonly profile: User | null }>('/auth/session')

/** Returns whether there is a session. */
export async function findSession(): Promise<boolean> {
  const answer = await askForUser()
  const user = answer.kind === 'ok' ? answer.data.profile : null
  session.value =
    user === null ? { kind: 'signed-out', isExpired: false } : { kind: 'signed-in', user }
  return user !== null
}

export async function signOut(): Promise<void> {
  await send('DELETE', '/auth/session')
  session.value = { kind: 'signed-out', isExpired: false }
}

/** Called where an answer says that the session is over. */
export function sessionEnded(): void {
  if (session.value.kind === 'signed-in') session.value = { kind: 'signed-out', isExpired: true }
}

/**
 * Whether the user may do what needs this scope. The server decides; this hides what it would
 * refuse.
 */
export const may = (scope: string): boolean =>
  session.value.kind === 'signed-in' && session.value.user.permissions.includes(scope)

/** Whether the user may change anything at all: an auditor may not. */
export const mayWrite = (): boolean =>
  session.value.kind === 'signed-in' &&
  session.value.user.permissions.some((scope) => scope.endsWith(':write'))

/** A user of the platform sees all tenants. */
export const isGlobal = (): boolean =>
  session.value.kind === 'signed-in' && session.value.user.tenant_slug === null
