/** Extracts the credential of a request (SPECIFICATION.md §5.1, §5.2). */
import { isAppKeyToken } from './app-key.ts'

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

/** By its form. */
export const isJwt = (token: string): boolean =>
  token.length <= MAX_JWT_LENGTH && /^[\w-]+\.[\w-]+\.[\w-]+$/.test(token)
