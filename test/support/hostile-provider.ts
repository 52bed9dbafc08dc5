/** A provider of OpenID Connect on loopback, which says and signs what a test wants. */
import { createHash, createHmac, generateKeyPairSync, type KeyObject, sign } from 'node:crypto'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { onTestFinished } from 'vitest'

type Json = Record<string, unknown>

export const hostileClient = { client_id: 'tollgate', client_secret: 'secret of the client' }

/** What it does otherwise than an honest one. */
export interface Hostility {
  /** Claims of the ID token in place of those that are right. */
  claims?: Json
  header?: Json
  /** Signs the ID token; absent: RS256 with the key of its JWKS. */
  signature?: (signed: string, keys: ProviderKeys) => string
  discovery?: Json
  userinfo?: Json
  /** In place of an answer, by path. */
  answers?: Readonly<Record<string, (response: ServerResponse) => void>>
}

export interface ProviderKeys {
  readonly privateKey: KeyObject
  readonly publicPem: string
}

const encoded = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url')

/** @param now milliseconds UTC. */
export async function openHostileProvider(now: () => number) {
  const { privateKey, publicKey } = generateKeyPairSync('rsa', { modulusLength: 2_048 })
  const publicPem = publicKey.export({ type: 'spki', format: 'pem' }).toString()
  const asked: string[] = []
  const nonces = new Map<string, { nonce: string; challenge: string }>()
  const hostility: Hostility = {}
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`

  const idToken = (nonce: string): string => {
    const seconds = Math.floor(now() / 1_000)
    const claims = {
      iss: issuer,
      sub: 'sub-1',
      aud: hostileClient.client_id,
      iat: seconds,
      exp: seconds + 60,
      nonce,
      groups: ['voice'],
      preferred_username: 'ada',
      ...hostility.claims,
    }
    const header = { alg: 'RS256', kid: 'k', ...hostility.header }
    const signed = `${encoded(header)}.${encoded(claims)}`
    const honest = () => sign('sha256', Buffer.from(signed), privateKey).toString('base64url')
    return `${signed}.${hostility.signature?.(signed, { privateKey, publicPem }) ?? honest()}`
  }

  const answerTo = (path: string, body: string): Json | undefined => {
    if (path === '/.well-known/openid-configuration')
      return {
        issuer,
        authorization_endpoint: `${issuer}/auth`,
        token_endpoint: `${issuer}/token`,
        jwks_uri: `${issuer}/jwks`,
        userinfo_endpoint: `${issuer}/userinfo`,
        response_types_supported: ['code'],
        subject_types_supported: ['public'],
        id_token_signing_alg_values_supported: ['RS256'],
        ...hostility.discovery,
      }
    if (path === '/jwks')
      return { keys: [{ ...publicKey.export({ format: 'jwk' }), kid: 'k', alg: 'RS256' }] }
    if (path === '/userinfo') return { sub: 'sub-1', ...hostility.userinfo }
    if (path !== '/token') return undefined
    const form = new URLSearchParams(body)
    const begun = nonces.get(form.get('code') ?? '')
    const verifier = form.get('code_verifier') ?? ''
    const challenge = createHash('sha256').update(verifier).digest('base64url')
    if (begun?.challenge !== challenge) return { error: 'invalid_grant' }
    const id_token = idToken(begun.nonce)
    return { access_token: 'access', token_type: 'Bearer', expires_in: 60, id_token }
  }

  server.on('request', (request, response) => {
    const path = request.url ?? ''
    asked.push(path)
    const special = hostility.answers?.[path]
    if (special !== undefined) return special(response)
    let body = ''
    request.on('data', (chunk: Buffer) => (body += chunk.toString()))
    request.on('end', () => {
      const answer = answerTo(path, body)
      const status = answer === undefined ? 404 : 'error' in answer ? 400 : 200
      response.writeHead(status, { 'content-type': 'application/json' })
      response.end(JSON.stringify(answer ?? {}))
    })
  })
  onTestFinished(async () => {
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  })
  return {
    issuer,
    asked,
    hostility,
    /** The person agrees at once. Resolves with where the browser is sent back. */
    agree(authorizationUrl: string): URL {
      const query = new URL(authorizationUrl).searchParams
      const code = `code-${nonces.size}`
      nonces.set(code, {
        nonce: query.get('nonce') ?? '',
        challenge: query.get('code_challenge') ?? '',
      })
      const back = new URL(query.get('redirect_uri') ?? '')
      back.searchParams.set('code', code)
      back.searchParams.set('state', query.get('state') ?? '')
      return back
    },
  }
}

/** Signs with the public key as if it were the secret of an HMAC. */
export const withPublicKeyAsSecret = (signed: string, { publicPem }: ProviderKeys): string =>
  createHmac('sha256', publicPem).update(signed).digest('base64url')

/** Signs with the secret of the client. */
export const withClientSecret = (signed: string): string =>
  createHmac('sha256', hostileClient.client_secret).update(signed).digest('base64url')
