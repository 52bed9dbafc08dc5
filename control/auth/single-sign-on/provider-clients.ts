/**
 * The clients of identity providers (OpenID Connect Core 1.0): the authorization code flow with
 * PKCE, state and nonce, and an ID token whose signature is checked.
 */
import type { Configuration } from 'openid-client'
import { MINUTE_MS } from '../../../schema/clock.ts'
import { recentlyUsed } from '../../../schema/recently-used.ts'
import type { ProviderRow } from './identity-store.ts'
import { providerFetch, type ProviderFetchDeps } from './provider-fetch.ts'

/** Secrets that tie an answer of the provider to the browser that has asked. */
export interface SignInProof {
  readonly state: string
  readonly nonce: string
  readonly verifier: string
}

/** A person, as the provider describes it. */
export interface ProvidedIdentity {
  readonly subject: string
  readonly claims: Readonly<Record<string, unknown>>
}

interface KnownClient {
  readonly key: string
  readonly until: number
  readonly configuration: Promise<Configuration>
}

/** OpenID Connect Core 1.0 §2. */
const MAX_SUBJECT_LENGTH = 255
const MAX_CLIENTS = 200
/** Discovery is repeated after this time. */
const KNOWN_MS = 60 * MINUTE_MS
/** A provider that does not answer is asked again after this time. */
const FAILED_MS = 5_000

export class ProviderClients {
  readonly #deps: ProviderFetchDeps & { readonly steadyNow: () => number }
  readonly #known = recentlyUsed<number, KnownClient>(MAX_CLIENTS)

  constructor(deps: ProviderFetchDeps & { readonly steadyNow: () => number }) {
    this.#deps = deps
  }

  /** The address at the provider to which the browser is sent. */
  async authorizationUrl(
    provider: ProviderRow,
    redirectUri: string,
    { state, nonce, verifier }: SignInProof,
  ): Promise<string> {
    const openid = await library()
    const configuration = await this.#configurationOf(provider)
    const url = openid.buildAuthorizationUrl(configuration, {
      redirect_uri: redirectUri,
      scope: provider.scopes.join(' '),
      state,
      nonce,
      code_challenge: await openid.calculatePKCECodeChallenge(verifier),
      code_challenge_method: 'S256',
    })
    return url.href
  }

  /** Exchanges the code of an answer. Rejects unless all checks hold. */
  async identityFrom(
    provider: ProviderRow,
    answered: URL,
    { state, nonce, verifier }: SignInProof,
  ): Promise<ProvidedIdentity> {
    const openid = await library()
    const configuration = await this.#configurationOf(provider)
    const tokens = await openid.authorizationCodeGrant(configuration, answered, {
      expectedState: state,
      expectedNonce: nonce,
      pkceCodeVerifier: verifier,
      idTokenExpected: true,
    })
    const claims = tokens.claims()
    if (claims === undefined) throw new Error('the answer has no ID token')
    const { sub: subject, iss } = claims
    // The library lets some providers answer for many issuers, and subjects are those of one.
    if (iss !== configuration.serverMetadata().issuer)
      throw new Error('the ID token is of another issuer')
    if (subject.length > MAX_SUBJECT_LENGTH) throw new Error('the subject is too long')
    // Many providers keep the claims of scopes for this request.
    const more =
      configuration.serverMetadata().userinfo_endpoint === undefined
        ? {}
        : await openid.fetchUserInfo(configuration, tokens.access_token, subject)
    return { subject, claims: { ...more, ...claims } }
  }

  /** Requests at the same time wait for one discovery. */
  #configurationOf(provider: ProviderRow): Promise<Configuration> {
    const now = this.#deps.steadyNow()
    const { id, issuer, client_id: clientId, updated_at: updatedAt, clientSecret } = provider
    const key = JSON.stringify([issuer, clientId, updatedAt, clientSecret])
    const known = this.#known.get(id)
    if (known !== undefined && known.key === key && now < known.until) return known.configuration
    const configuration = this.#discovered(provider)
    this.#known.set(id, { key, until: now + KNOWN_MS, configuration })
    configuration.catch(() => {
      const until = this.#deps.steadyNow() + FAILED_MS
      if (this.#known.get(id)?.configuration === configuration)
        this.#known.set(id, { key, until, configuration })
    })
    return configuration
  }

  async #discovered({ issuer, client_id, clientSecret }: ProviderRow): Promise<Configuration> {
    const openid = await library()
    const isPlain = new URL(issuer).protocol === 'http:'
    return openid.discovery(
      new URL(issuer),
      client_id,
      undefined,
      clientSecret === undefined ? openid.None() : openid.ClientSecretBasic(clientSecret),
      {
        [openid.customFetch]: providerFetch(this.#deps),
        execute: [
          openid.enableNonRepudiationChecks,
          // Marked as deprecated only to stand out: as a setting of the operator allows it.
          // oxlint-disable-next-line typescript/no-deprecated
          ...(isPlain && this.#deps.allowPrivate ? [openid.allowInsecureRequests] : []),
        ],
      },
    )
  }
}

/** Loaded by the first sign-in: most installations have no provider. */
const library = () => import('openid-client')
