/** How long a session lasts, and which side refreshes it: RFC 4028 §7.2 and §9. Pure. */
import type { Dialog } from './dialog.ts'
import type { SessionTerms } from './session-timer.ts'
import type { SipMessage } from '../message/message.ts'
import type { Refresher } from '../options.ts'
import {
  parseMinSE,
  parseOptionTags,
  parseSessionExpires,
  type SessionExpires,
} from '../message/fields.ts'

export const sessionExpiresOf = (message: SipMessage): SessionExpires | undefined => {
  const value = message.get('Session-Expires')
  return value === undefined ? undefined : parseSessionExpires(value)
}

/** What a request insists on as the shortest interval; 0: nothing. */
export const minSeOf = (message: SipMessage): number => parseMinSE(message.get('Min-SE') ?? '') ?? 0

/** A proxy may add `Session-Expires` for a sender that knows nothing of it; only this tells. */
export const knowsTimer = (message: SipMessage): boolean =>
  parseOptionTags([...message.all('Supported'), ...message.all('Require')]).includes('timer')

/** Whether the sender takes UPDATE; undefined: it does not say. */
export const takesUpdate = (message: SipMessage): boolean | undefined =>
  message.has('Allow') ? parseOptionTags(message.all('Allow')).includes('update') : undefined

export interface SessionSettings {
  readonly minSessionSeconds: number
  readonly defaultRefresher: Refresher
}

/**
 * The terms of our 2xx to `request`. `given` is what the application wants, `current` what holds;
 * without either, a peer that does not name the refresher gets a session timer only by `defaultRefresher`.
 */
export function termsOfAnswer(
  request: SipMessage,
  given: string | undefined,
  current: SessionTerms | undefined,
  { minSessionSeconds: minSeconds, defaultRefresher }: SessionSettings,
): SessionTerms | undefined {
  const wanted = given === undefined ? undefined : parseSessionExpires(given)
  const offered = sessionExpiresOf(request)
  const isLeftToUs =
    wanted === undefined && offered?.refresher === undefined && current === undefined
  if (isLeftToUs && (offered === undefined || defaultRefresher === 'none')) return undefined
  const most = offered?.seconds ?? Infinity
  const seconds = Math.min(wanted?.seconds ?? offered?.seconds ?? current?.seconds ?? most, most)
  const isAgreed = knowsTimer(request)
  const least = Math.max(minSeconds, isAgreed ? minSeOf(request) : 0)
  // §9, Table 2: the side that the request names; a peer that does not know the extension cannot refresh.
  const ours = isLeftToUs ? defaultRefresher : current?.isOurs ? 'uas' : 'uac'
  const refresher = offered?.refresher ?? wanted?.refresher ?? ours
  return { seconds: Math.max(seconds, least), isOurs: !isAgreed || refresher === 'uas', isAgreed }
}

/** The header lines that say so; §9: a peer that is to refresh must be told that it is required. */
export function linesOfAnswer(
  { seconds, isOurs, isAgreed }: SessionTerms,
  isRequired: boolean,
): string {
  const expires = `Session-Expires: ${seconds};refresher=${isOurs ? 'uas' : 'uac'}\r\n`
  return isAgreed && !isOurs && !isRequired ? `Require: timer\r\n${expires}` : expires
}

/**
 * The terms of a 2xx to a request of ours that asked for `asked` seconds. A peer that says nothing
 * leaves the refresh to us (§7.2): its silence would otherwise never be noticed.
 */
export function termsOfResponse(
  response: SipMessage,
  asked: number | undefined,
  minSeconds: number,
): SessionTerms | undefined {
  const granted = sessionExpiresOf(response)
  const seconds = granted?.seconds ?? asked
  if (seconds === undefined) return undefined
  return {
    seconds: Math.max(seconds, minSeconds),
    isOurs: granted?.refresher !== 'uas',
    isAgreed: granted !== undefined,
  }
}

/** What a request of ours in a dialog says of its session (§7.4: the roles stay). */
export const linesOfRequest = ({ seconds, isOurs }: SessionTerms, minSeconds: number): string =>
  `Supported: timer\r\nSession-Expires: ${seconds};refresher=${isOurs ? 'uac' : 'uas'}\r\n` +
  `Min-SE: ${minSeconds}\r\n`

/**
 * The same for a request of the application, which need not say so itself; `given` is what it says.
 * Empty where nothing can be refreshed.
 */
export function sessionFor(
  { session, state }: Dialog,
  method: string,
  given: string | undefined,
  minSeconds: number,
): { readonly lines: string; readonly seconds: number | undefined } {
  if (method !== 'INVITE' && method !== 'UPDATE') return { lines: '', seconds: undefined }
  if (given !== undefined || session === undefined || state !== 'confirmed')
    return { lines: '', seconds: secondsIn(given) }
  const least = Math.max(minSeconds, session.minSeconds)
  return { lines: linesOfRequest(session.terms, least), seconds: session.terms.seconds }
}

export const secondsIn = (sessionExpires: string | undefined): number | undefined =>
  sessionExpires === undefined ? undefined : parseSessionExpires(sessionExpires)?.seconds
