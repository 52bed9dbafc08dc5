/**
 * Who sends a request, by digest. An unknown user costs the same work and gets the same answer as a
 * wrong password, so that an answer does not tell which extensions exist.
 */
import type { Algorithm, Credentials } from './digest.ts'
import { challengeValue, credentialsFor, expectedResponse, isSameResponse } from './digest.ts'
import type { ExtensionDirectory, ExtensionRecord } from '../extension-directory.ts'
import { keyedHash } from './keyed-hash.ts'
import { Nonces } from './nonces.ts'
import { type Asking, PhoneAlgorithms } from './phone-algorithms.ts'

export interface AuthenticatorDeps {
  readonly directory: Pick<ExtensionDirectory, 'find'>
  /** At least 32 random bytes of this process, hexadecimal. */
  readonly secret: string
  readonly nonceLifetimeMs: number
  /** Milliseconds UTC. */
  readonly now: () => number
}

/** One request that has to prove who sends it. */
export interface Claim {
  readonly method: string
  /** The domain whose extension the sender wants to be; small letters. */
  readonly realm: string
  /** Where it came from. */
  readonly address: string
  /** `Authorization` or `Proxy-Authorization`. */
  readonly authorization: string | undefined
}

export type Verdict =
  | {
      readonly kind: 'known'
      readonly extension: ExtensionRecord
      readonly algorithm: Algorithm
    }
  /** No credentials for this realm. */
  | { readonly kind: 'missing' }
  /** The nonce is not good (any more): the phone may try again with a new one, unasked. */
  | { readonly kind: 'stale' }
  | { readonly kind: 'wrong'; readonly username: string }

/** Who is challenged. */
export interface Challenged extends Pick<Asking, 'userAgent' | 'isPage'> {
  readonly realm: string
  readonly user: string
  readonly address: string
  readonly isStale: boolean
}

const MAX_NONCES = 50_000
const MAX_PHONES = 10_000

export class Authenticator {
  readonly #deps: AuthenticatorDeps
  readonly #nonces: Nonces
  readonly #algorithms = new PhoneAlgorithms(MAX_PHONES)

  constructor(deps: AuthenticatorDeps) {
    const { secret, nonceLifetimeMs: lifetimeMs, now } = deps
    this.#deps = deps
    this.#nonces = new Nonces({ secret, now, lifetimeMs, maxInUse: MAX_NONCES })
  }

  verify({ method, realm, address, authorization }: Claim): Verdict {
    const credentials = credentialsFor(realm, authorization)
    if (credentials === undefined) return { kind: 'missing' }
    const { username, algorithm, protection, nonce } = credentials
    const owner = { realm, address }
    // Not looked at, right or wrong: a guess must cost its sender a nonce.
    if (!this.#nonces.isGenuine(nonce, owner)) return { kind: 'stale' }
    const extension = this.#deps.directory.find(realm, username)
    const isRight = this.#isRight(credentials, method, realm, extension)
    if (!isRight || extension === undefined || algorithm === undefined)
      return { kind: 'wrong', username }
    // Without a count the nonce is good for one request.
    const isFresh = this.#nonces.use(nonce, owner, protection?.count ?? 1)
    return isFresh ? { kind: 'known', extension, algorithm } : { kind: 'stale' }
  }

  /** Values of as many `…-Authenticate` headers, the preferred one first. */
  challenges({ realm, user, address, isStale, ...asking }: Challenged): readonly string[] {
    const phone = phoneOf(realm, user, address)
    const algorithms = this.#algorithms.offer({ phone, ...asking })
    // One nonce for all: its owner answers one of them.
    const nonce = this.#nonces.issue({ realm, address })
    return algorithms.map((algorithm) => challengeValue(realm, nonce, algorithm, isStale))
  }

  /** The phone behind this address has proved who it is. */
  answered({ domain, extension }: ExtensionRecord, address: string, algorithm: Algorithm): void {
    this.#algorithms.answered(phoneOf(domain, extension, address), algorithm)
  }

  stats(): { readonly nonces: number; readonly phones: number } {
    return { nonces: this.#nonces.size, phones: this.#algorithms.size }
  }

  #isRight(
    credentials: Credentials,
    method: string,
    realm: string,
    extension: ExtensionRecord | undefined,
  ): boolean {
    const { username, response, algorithm = 'MD5' } = credentials
    const decoy = keyedHash(this.#deps.secret, `${username}:${realm}`)
    const unknown = decoy.slice(0, algorithm === 'MD5' ? 32 : 64)
    const ha1 = extension?.secrets[algorithm] ?? unknown
    return isSameResponse(response, expectedResponse(credentials, algorithm, method, ha1))
  }
}

const phoneOf = (realm: string, user: string, address: string): string =>
  `${user}@${realm} ${address}`
