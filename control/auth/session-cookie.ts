/**
 * The session of the console: the token of a login in a cookie that no script can read. Browsers attach cookies to
 * requests of any page, so a cookie counts only in requests that the console's own origin has made.
 */
import type { Context } from 'hono'
import { deleteCookie, setCookie } from 'hono/cookie'
import { type ControlEnv, requestHeader } from '../http/control-env.ts'
import { isJwt } from './credential.ts'
import { SESSION_SECONDS } from './users/sessions.ts'

/** Over TLS. The prefix makes browsers refuse one that another host or an unencrypted page has set. */
const SECURE_NAME = '__Host-tollgate_session'
const PLAIN_NAME = 'tollgate_session'

const attributes = { path: '/', httpOnly: true, sameSite: 'Strict' } as const

export function setSessionCookie(c: Context<ControlEnv>, token: string): void {
  const secure = isEncrypted(c)
  const name = secure ? SECURE_NAME : PLAIN_NAME
  setCookie(c, name, token, { ...attributes, secure, maxAge: SESSION_SECONDS })
}

export function clearSessionCookie(c: Context<ControlEnv>): void {
  const secure = isEncrypted(c)
  deleteCookie(c, secure ? SECURE_NAME : PLAIN_NAME, { ...attributes, secure })
}

/** TLS ends at a proxy; the browser says with which scheme it has loaded the page, or returns what it got there. */
function isEncrypted(c: Context<ControlEnv>): boolean {
  const origin = requestHeader(c, 'origin')
  if (origin !== undefined) return origin.startsWith('https:')
  return cookieOf(requestHeader(c, 'cookie') ?? '', SECURE_NAME) !== undefined
}

/**
 * `Authorization` of the request, or what its session cookie is worth as one. A header takes precedence: requests
 * with a key or a token are not changed by a cookie.
 */
export function authorizationOf(c: Context<ControlEnv>): string | undefined {
  const authorization = requestHeader(c, 'authorization')
  if (authorization !== undefined) return authorization
  const cookies = requestHeader(c, 'cookie')
  if (cookies === undefined || requestHeader(c, 'x-api-key') !== undefined) return undefined
  const token = cookieOf(cookies, SECURE_NAME) ?? cookieOf(cookies, PLAIN_NAME)
  if (token === undefined || !isJwt(token) || !isFromOwnPage(c)) return undefined
  return `Bearer ${token}`
}

/** Whether the credential that `authorizationOf` found, if any, is the cookie. */
export const isBySessionCookie = (c: Context<ControlEnv>): boolean =>
  requestHeader(c, 'authorization') === undefined && requestHeader(c, 'x-api-key') === undefined

function cookieOf(cookies: string, name: string): string | undefined {
  for (const cookie of cookies.split(';')) {
    const [key, value] = cookie.trim().split('=', 2)
    if (key === name) return value
  }
  return undefined
}

/**
 * `Sec-Fetch-Site` decides where browsers send it: on encrypted pages and on loopback. Elsewhere a request that
 * changes something must name its own origin.
 */
export function isFromOwnPage(c: Context<ControlEnv>): boolean {
  const isHarmless = c.req.method === 'GET' || c.req.method === 'HEAD'
  const site = requestHeader(c, 'sec-fetch-site')
  if (site !== undefined) return site === 'same-origin' || (site === 'none' && isHarmless)
  const origin = requestHeader(c, 'origin')
  if (origin === undefined) return isHarmless
  const host = requestHeader(c, 'host')
  return host !== undefined && hostOf(origin) === host.toLowerCase()
}

/** As `Host` has it; undefined for `null` and what is not an origin. */
const hostOf = (origin: string): string | undefined => /^https?:\/\/([^/]+)$/i.exec(origin)?.[1]
