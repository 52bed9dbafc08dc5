/** Who is signed in. */
import { signal } from '@preact/signals'
import { get, send } from './api.ts'
import type { User } from './views.ts'
import { every, loadAnew, whenShown } from './browser.ts'

export type ConsoleSession =
  | { readonly kind: 'unknown' }
  /** The server does not say whether there is a session, and why. */
  | { readonly kind: 'unanswered'; readonly message: string }
  | { readonly kind: 'signed-out'; readonly isExpired: boolean }
  | { readonly kind: 'signed-in'; readonly user: User }

export const session = signal<ConsoleSession>({ kind: 'unknown' })

/** An answer within the last half hour of a session renews it. */
const RENEW_MS = 600_000

/**
 * Keeps the session of a page in use, and follows changes of its user, until the returned function
 * is called. Another tab may have signed in somebody else while this one was not shown.
 */
export function keepSession(): () => void {
  const look = (): void => void askAgain()
  const stops = [every(RENEW_MS, look), whenShown(look)]
  return () => {
    for (const stop of stops) stop()
  }
}

async function askAgain(): Promise<void> {
  const answer = await askForUser()
  if (answer.kind !== 'ok' || session.value.kind !== 'signed-in') return
  const { profile: user } = answer.data
  if (user === null) sessionEnded()
  else enter(user)
}

/** The user that the page holds data of. */
let holder: number | undefined

/**
 * Another user gets a page of their own: this one has answers that its browser has asked for and
 * nobody has taken yet, names, and what was done.
 */
function enter(user: User): void {
  if (holder !== undefined && holder !== user.id) return loadAnew()
  holder = user.id
  session.value = { kind: 'signed-in', user }
}

/** Null: nobody is signed in. */
const askForUser = () => get<{ readonly profile: User | null }>('/auth/session')

/** Returns false where there is no session. */
export async function findSession(): Promise<boolean> {
  const answer = await askForUser()
  if (answer.kind === 'failed') {
    session.value = { kind: 'unanswered', message: answer.message }
    return true
  }
  const user = answer.kind === 'ok' ? answer.data.profile : null
  if (user === null) session.value = { kind: 'signed-out', isExpired: false }
  else enter(user)
  return user !== null
}

/** Returns why the session goes on; undefined: it is over. */
export async function signOut(): Promise<string | undefined> {
  const answer = await send('DELETE', '/auth/session')
  if (answer.kind === 'failed') return answer.message
  session.value = { kind: 'signed-out', isExpired: false }
  return undefined
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
