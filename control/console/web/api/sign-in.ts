/** The steps of a sign-in: the password, then perhaps a second factor; or an identity provider. */
import { get, send } from './api.ts'
import { findSession } from './session.ts'
import type { Enrolment, OfferedProvider, SignInChallenge } from './views.ts'

export type SignInStep =
  | { readonly kind: 'done' }
  | { readonly kind: 'failed'; readonly message: string; readonly code: string }
  | { readonly kind: 'challenge'; readonly challenge: SignInChallenge }
  /** The session is open; these are shown once before it goes on. */
  | { readonly kind: 'recovery-codes'; readonly codes: readonly string[] }

interface Opened {
  readonly recovery_codes?: readonly string[] | null
}

export async function signIn(
  username: string,
  password: string,
  tenant: string,
): Promise<SignInStep> {
  const headers = tenant === '' ? {} : { 'X-Tenant-Slug': tenant }
  const body = { username, password }
  const answer = await send<SignInChallenge | Opened>('POST', '/auth/session', body, headers)
  if (answer.kind !== 'ok') return failed(answer)
  return 'challenge' in answer.data ? { kind: 'challenge', challenge: answer.data } : enterConsole()
}

export async function sendCode(challenge: string, code: string): Promise<SignInStep> {
  const answer = await send<Opened>('POST', '/auth/session/code', { challenge, code })
  if (answer.kind !== 'ok') return failed(answer)
  const { recovery_codes: codes } = answer.data
  return codes == null ? enterConsole() : { kind: 'recovery-codes', codes }
}

export const beginEnrolment = (challenge: string) =>
  send<Enrolment>('POST', '/auth/login/enrolment', { challenge })

/** Reads the session of the cookie. */
export async function enterConsole(): Promise<SignInStep> {
  if (await findSession()) return { kind: 'done' }
  const message = 'The browser did not keep the session cookie'
  return { kind: 'failed', message, code: 'no_cookie' }
}

export async function offeredProviders(tenant: string): Promise<readonly OfferedProvider[]> {
  const query = tenant === '' ? '' : `?tenant=${encodeURIComponent(tenant)}`
  const answer = await get<readonly OfferedProvider[]>(`/auth/providers${query}`)
  return answer.kind === 'ok' ? answer.data : []
}

const failed = (
  answer: { readonly kind: 'signed-out' } | { readonly message: string; readonly code: string },
): SignInStep =>
  'message' in answer
    ? { kind: 'failed', message: answer.message, code: answer.code }
    : { kind: 'failed', message: 'The session is over', code: 'signed_out' }
