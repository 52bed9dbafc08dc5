/** A real provider of OpenID Connect on loopback, and a browser that signs somebody in there. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import Provider from 'oidc-provider'
import { onTestFinished, vi } from 'vitest'

export interface ProvidedPerson {
  readonly groups?: unknown
  readonly preferred_username?: string
  readonly email?: string
}

export interface OpenIdProvider {
  readonly issuer: string
  /** By their subjects; a test may change them. */
  readonly people: Map<string, ProvidedPerson>
  /** Requests of `/.well-known/openid-configuration`. */
  discoveries(): number
  stop(): Promise<void>
  /** Signs in on the pages of the provider. Resolves with where the browser is sent back. */
  signIn(authorizationUrl: string, subject: string): Promise<string>
}

export const clientId = 'tollgate'
export const clientSecret = 'secret of the client'

export async function openProvider(redirectUri: string): Promise<OpenIdProvider> {
  const people = new Map<string, ProvidedPerson>()
  let discoveries = 0
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  // It warns that it is no provider for production.
  const warnings = vi.spyOn(console, 'warn').mockReturnValue()
  const provider = new Provider(issuer, {
    clients: [
      {
        client_id: clientId,
        client_secret: clientSecret,
        redirect_uris: [redirectUri],
      },
    ],
    pkce: { required: () => true },
    cookies: { keys: ['a key of the test'] },
    claims: { openid: ['sub'], profile: ['preferred_username', 'groups'], email: ['email'] },
    findAccount: (_, accountId) => ({
      accountId,
      claims: async () => ({ ...people.get(accountId), sub: accountId }),
    }),
    loadExistingGrant: async (ctx) => {
      const { client, session } = ctx.oidc
      if (client === undefined || session?.accountId === undefined) return undefined
      const grant = new provider.Grant({
        clientId: client.clientId,
        accountId: session.accountId,
      })
      grant.addOIDCScope('openid profile email')
      await grant.save()
      return grant
    },
    ttl: { AccessToken: 60, IdToken: 60, Grant: 60, Interaction: 60, Session: 60 },
  })
  warnings.mockRestore()
  const answer = provider.callback()
  server.on('request', (request, response) => {
    if (request.url?.startsWith('/.well-known/') === true) discoveries += 1
    void answer(request, response)
  })
  const stop = (): Promise<void> =>
    new Promise((resolve) => {
      server.closeAllConnections()
      server.close(() => resolve())
    })
  onTestFinished(async () => {
    if (server.listening) await stop()
  })
  return {
    issuer,
    people,
    discoveries: () => discoveries,
    stop,
    signIn: (url, subject) => walk(url, issuer, subject),
  }
}

const MAX_STEPS = 12

/** Follows redirects and fills in the form, with the cookies of the provider alone. */
async function walk(start: string, issuer: string, subject: string): Promise<string> {
  const jar = new Map<string, string>()
  let url = start
  let form: URLSearchParams | undefined
  for (let step = 0; step < MAX_STEPS; step += 1) {
    if (!url.startsWith(issuer)) return url
    const cookie = [...jar].map(([name, value]) => `${name}=${value}`).join('; ')
    const response = await fetch(url, {
      redirect: 'manual',
      headers: { cookie },
      ...(form !== undefined && { method: 'POST', body: form }),
    })
    form = undefined
    for (const line of response.headers.getSetCookie()) {
      const [name = '', value = ''] = (line.split(';', 1)[0] ?? '').split(/=(.*)/s)
      jar.set(name, value)
    }
    const location = response.headers.get('location')
    const page = await response.text()
    if (location === null) {
      const action = /action="([^"]+)"/.exec(page)?.[1]
      if (action === undefined) throw new Error(`the provider answers ${response.status}: ${page}`)
      url = new URL(action, url).href
      form = new URLSearchParams({ prompt: 'login', login: subject, password: 'any' })
    } else url = new URL(location, url).href
  }
  throw new Error('the provider sends the browser around')
}
