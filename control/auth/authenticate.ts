/**
 * Who makes a request: its credential (SPECIFICATION.md §5.1, §5.2), whether from a header or from
 * the cookie of the console, and the address of the client behind proxies.
 */
import { isIP } from 'node:net'
import type { Context } from 'hono'
import { deleteCookie, setCookie } from 'hono/cookie'
import { canonicalAddress, networkCheck } from '../../schema/net/ip-address.ts'
import { isAppKeyToken } from './app-key.ts'
import type { Presented, UserPrincipal } from './principal.ts'
import { admitScope } from './requires.ts'
import type { Scope } from './scopes.ts'
import { SESSION_SECONDS, type Sessions } from './sessions.ts'
import type { TenantScope } from './tenants.ts'
import type { KeyVerifier } from './verify-key.ts'
import {
  type ControlEnv,
  requestHeader,
  type Step,
  whenKnown,
  peerAddress,
} from '../http/control-env.ts'

const nothing: Presented = { kind: 'nothing' }
const rejected: Presented = { kind: 'rejected' }

/** The result of checking a request's credential now. A known key takes no statement. */
const judgeWith =
  (keys: KeyVerifier, sessions: Sessions, now: () => number) =>
  (
    authorization: string | undefined,
    apiKey: string | undefined,
    address: string,
  ): Presented | Promise<Presented> => {
    const credential = readCredential(authorization, apiKey)
    if (credential === undefined) return nothing
    if (credential.kind === 'key') return keys.verify(credential.token, address, now())
    return credential.kind === 'session'
      ? sessions.verify(credential.token, now(), address)
      : rejected
  }

/**
 * Authenticates the request but never rejects it: routes decide (`requires.ts`), so that public
 * routes stay public and an unknown path is 404 for every client.
 */
export function authenticate(
  keys: KeyVerifier,
  sessions: Sessions,
  addressOf: (c: Context<ControlEnv>) => string,
  now: () => number,
): Step {
  const judge = judgeWith(keys, sessions, now)
  return (c) => {
    const address = addressOf(c)
    c.set('clientAddress', address)
    const presented = judge(authorizationOf(c), requestHeader(c, 'x-api-key'), address)
    if (presented instanceof Promise) c.set('presented', nothing)
    return whenKnown(presented, (known) => c.set('presented', known))
  }
}

export type Credential =
  | { readonly kind: 'key'; readonly token: string }
  | { readonly kind: 'session'; readonly token: string }
  /** The presented text cannot be a credential of this service. */
  | { readonly kind: 'unreadable' }

/** `Authorization: Bearer …` takes precedence over `X-API-Key`; undefined when both are absent. */
export function readCredential(
  authorization: string | undefined,
  apiKey: string | undefined,
): Credential | undefined {
  if (authorization !== undefined) {
    const token = bearerToken(authorization)
    if (token === undefined) return { kind: 'unreadable' }
    if (isAppKeyToken(token)) return { kind: 'key', token }
    return isJwt(token) ? { kind: 'session', token } : { kind: 'unreadable' }
  }
  if (apiKey === undefined) return undefined
  return isAppKeyToken(apiKey) ? { kind: 'key', token: apiKey } : { kind: 'unreadable' }
}

/** RFC 9110 §11.1: the scheme is case-insensitive. */
function bearerToken(authorization: string): string | undefined {
  const isBearer = authorization.startsWith('Bearer ') || /^bearer /i.test(authorization)
  return isBearer ? authorization.slice(7).trim() : undefined
}

const MAX_JWT_LENGTH = 2_048

/** The kind of a credential follows from its form. */
const isJwt = (token: string): boolean =>
  token.length <= MAX_JWT_LENGTH && /^[\w-]+\.[\w-]+\.[\w-]+$/.test(token)

/**
 * Over TLS. The prefix makes browsers refuse one that another host or an unencrypted page has set.
 */
const SECURE_NAME = '__Host-tollgate_session'
const PLAIN_NAME = 'tollgate_session'

const attributes = { path: '/', httpOnly: true, sameSite: 'Strict' } as const

/** @param secure absent: as the browser says of its page. */
export function setSessionCookie(
  c: Context<ControlEnv>,
  token: string,
  secure = isEncrypted(c),
): void {
  const name = secure ? SECURE_NAME : PLAIN_NAME
  setCookie(c, name, token, { ...attributes, secure, maxAge: SESSION_SECONDS })
}

export function clearSessionCookie(c: Context<ControlEnv>): void {
  const secure = isEncrypted(c)
  deleteCookie(c, secure ? SECURE_NAME : PLAIN_NAME, { ...attributes, secure })
}

/**
 * TLS ends at a proxy; the browser says with which scheme it has loaded the page, or returns what
 * it got there.
 */
function isEncrypted(c: Context<ControlEnv>): boolean {
  const origin = requestHeader(c, 'origin')
  if (origin !== undefined) return origin.startsWith('https:')
  return cookieOf(requestHeader(c, 'cookie') ?? '', SECURE_NAME) !== undefined
}

/**
 * The session of the console: the token of a login in a cookie that no script can read. Browsers
 * attach cookies to requests of any page, so a cookie counts only in requests that the console's
 * own origin has made. `Authorization` of the request, or what its session cookie is worth as one.
 * A header takes precedence: requests with a key or a token are not changed by a cookie.
 *
 */
export function authorizationOf(c: Context<ControlEnv>): string | undefined {
  const authorization = requestHeader(c, 'authorization')
  if (authorization !== undefined) return authorization
  if (requestHeader(c, 'x-api-key') !== undefined) return undefined
  const token = sessionCookie(c)
  if (token === undefined || !isJwt(token) || !isFromOwnPage(c)) return undefined
  return `Bearer ${token}`
}

/** The user whose browser has asked, with the cookie of a session that is not over. */
export function userOfCookie(c: Context<ControlEnv>): UserPrincipal | undefined {
  const presented = c.get('presented')
  if (presented.kind !== 'accepted' || !isBySessionCookie(c)) return undefined
  const { principal } = presented
  return principal.kind === 'user' ? principal : undefined
}

function sessionCookie(c: Context<ControlEnv>): string | undefined {
  const cookies = requestHeader(c, 'cookie')
  if (cookies === undefined) return undefined
  return cookieOf(cookies, SECURE_NAME) ?? cookieOf(cookies, PLAIN_NAME)
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
 * `Sec-Fetch-Site` decides where browsers send it: on encrypted pages and on loopback. Elsewhere a
 * request that changes something must name its own origin.
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

/** The host as `Host` has it; undefined for `null` and for a text that is not an origin. */
const hostOf = (origin: string): string | undefined => /^https?:\/\/([^/]+)$/i.exec(origin)?.[1]

type AddressOf = (c: Context<ControlEnv>) => string

/** More consecutive proxies than any installation has. */
const MAX_HOPS = 16

/**
 * Determines the client's address behind proxies. Forwarding headers are trusted only as far as
 * trusted proxies wrote them: the walk starts at the peer and ends at the first address that is not
 * a trusted proxy. Addresses further left are unverified. `trustedProxies`: CIDRs. Without any, the
 * peer is the client.
 */
export function clientAddress(trustedProxies: readonly string[]): AddressOf {
  const peer: AddressOf = (c) => canonicalAddress(peerAddress(c))
  if (trustedProxies.length === 0) return peer
  const isTrusted = networkCheck(trustedProxies)
  return (c) => {
    const address = peer(c)
    if (!isTrusted(address)) return address
    const walk = (header: string | undefined, read: (element: string) => string | undefined) =>
      header === undefined ? undefined : walkBack(header, address, read, isTrusted)
    const listed = walk(requestHeader(c, 'x-forwarded-for'), withoutPort)
    const forwarded = walk(requestHeader(c, 'forwarded'), forOf)
    // A proxy writes one of them and may forward the other from its client.
    if (listed !== undefined && forwarded !== undefined && listed !== forwarded) return address
    return listed ?? forwarded ?? address
  }
}

/**
 * Returns the rightmost untrusted address, or the last known one where the list ends or is
 * unreadable.
 */
function walkBack(
  header: string,
  peer: string,
  read: (element: string) => string | undefined,
  isTrusted: (address: string) => boolean,
): string {
  let known = peer
  let end = header.length
  for (let hops = 0; hops < MAX_HOPS && end > 0; hops += 1) {
    const comma = header.lastIndexOf(',', end - 1)
    const address = read(header.slice(comma + 1, end).trim())
    if (address === undefined) return known
    known = canonicalAddress(address)
    if (!isTrusted(known)) return known
    end = comma
  }
  return known
}

/**
 * Parses `192.0.2.1`, `192.0.2.1:4711`, `2001:db8::1` or `[2001:db8::1]:4711`; undefined when not
 * an address.
 */
function withoutPort(text: string): string | undefined {
  const bracket = /^\[([^\]]*)\](?::\d+)?$/.exec(text)
  const port = bracket === null ? /^([\d.]+):\d+$/.exec(text) : null
  const address = bracket?.[1] ?? port?.[1] ?? text
  return isIP(address) === 0 ? undefined : address
}

/**
 * RFC 7239 §4: `for=192.0.2.60;proto=http`, `For="[2001:db8::1]:4711"`. Obfuscated identifiers are
 * not addresses.
 */
function forOf(element: string): string | undefined {
  const pair = element.split(';').find((each) => /^\s*for=/i.test(each))
  const value = pair?.slice(pair.indexOf('=') + 1).trim() ?? ''
  const isQuoted = value.length > 1 && value.startsWith('"') && value.endsWith('"')
  return withoutPort(isQuoted ? value.slice(1, -1) : value)
}

interface RevalidatorDeps {
  readonly verifier: KeyVerifier
  readonly sessions: Sessions
  readonly tenants: TenantScope
}

/**
 * Returns a check to repeat while the response to `c` lasts: resolves with false once its
 * credential or tenant is no longer valid, and never rejects.
 */
export function revalidator(
  c: Context<ControlEnv>,
  scope: Scope,
  { verifier, sessions, tenants }: RevalidatorDeps,
  now: () => number,
): () => Promise<boolean> {
  const judge = judgeWith(verifier, sessions, now)
  const address = c.get('clientAddress')
  const authorization = authorizationOf(c)
  const apiKey = requestHeader(c, 'x-api-key')
  const slug = requestHeader(c, 'x-tenant-slug')
  const { tenantId } = c.get('principal')
  return async () => {
    try {
      const presented = await judge(authorization, apiKey, address)
      if (presented.kind !== 'accepted') return false
      const acting = await tenants.narrow(presented.principal, slug)
      admitScope(acting, scope)
      return acting.tenantId === tenantId
    } catch {
      // Rejected, or undecidable.
      return false
    }
  }
}
