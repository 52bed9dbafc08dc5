/**
 * Authenticates the sender of a request by digest. An unknown user costs the same work and gets the
 * same answer as a wrong password, so that an answer does not tell which extensions exist.
 */
import {
  type Algorithm,
  challengeValue,
  type DigestCredentials,
  credentialsFor,
  expectedResponse,
  isSameResponse,
} from './digest.ts'
import type { ExtensionRecord } from '../extension-directory.ts'
import { Nonces, type DigestDeps, keyedHash } from './nonces.ts'
import { PhoneAlgorithms, type PhoneClient } from './phone-algorithms.ts'

/** One request that has to prove who sends it. */
interface Claim {
  readonly method: string
  /** The domain whose extension the sender wants to be; small letters. */
  readonly realm: string
  /** The source address of the request. */
  readonly address: string
  /** `Authorization` or `Proxy-Authorization`. */
  readonly authorization: string | undefined
}

export type DigestVerdict =
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

/** The client, and the state of its credentials. */
interface ChallengeInput extends Pick<PhoneClient, 'userAgent' | 'isPage'> {
  readonly realm: string
  readonly user: string
  readonly address: string
  readonly isStale: boolean
}

export class Authenticator {
  readonly #deps: DigestDeps
  readonly #nonces: Nonces
  readonly #algorithms = new PhoneAlgorithms()

  constructor(deps: DigestDeps) {
    this.#deps = deps
    this.#nonces = new Nonces(deps)
  }

  verify({ method, realm, address, authorization }: Claim): DigestVerdict {
    const credentials = credentialsFor(realm, authorization)
    if (credentials === undefined) return { kind: 'missing' }
    const { username, algorithm, protection, nonce } = credentials
    const owner = { realm, address }
    // The answer is not checked: a guess must cost its sender a nonce.
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
  challenges({ realm, user, address, isStale, ...client }: ChallengeInput): readonly string[] {
    const phone = phoneOf(realm, user, address)
    const algorithms = this.#algorithms.offer({ phone, ...client })
    // One nonce for all: its owner answers one of them.
    const nonce = this.#nonces.issue({ realm, address })
    return algorithms.map((algorithm) => challengeValue(realm, nonce, algorithm, isStale))
  }

  /** The phone behind this address has proved who it is. */
  answered({ domain, extension }: ExtensionRecord, address: string, algorithm: Algorithm): void {
    this.#algorithms.answered(phoneOf(domain, extension, address), algorithm)
  }

  /** Nonces in use. */
  get nonces(): number {
    return this.#nonces.size
  }

  #isRight(
    credentials: DigestCredentials,
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
