/**
 * Authenticates the sender of a request by digest. An unknown user costs the same work and gets the
 * same answer as a wrong password, so that an answer does not tell which extensions exist.
 */
import {
  type Algorithm,
  challengeValue,
  type Credentials,
  credentialsFor,
  expectedResponse,
  isSameResponse,
} from './digest.ts'
import type { ExtensionDirectory, ExtensionRecord } from '../extension-directory.ts'
import { hash, timingSafeEqual } from 'node:crypto'
import { detachString } from '../../sip-server/message/index.ts'
import { recentlyUsed } from '../../../schema/recently-used.ts'

interface AuthenticatorDeps {
  readonly directory: Pick<ExtensionDirectory, 'find'>
  /**
   * At least 32 random bytes of this process, hexadecimal: after a restart every nonce is stale.
   */
  readonly secret: string
  readonly nonceLifetimeMs: number
  /** Milliseconds UTC. */
  readonly now: () => number
}

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

/** The client, and the state of its credentials. */
interface ChallengeInput extends Pick<Client, 'userAgent' | 'isPage'> {
  readonly realm: string
  readonly user: string
  readonly address: string
  readonly isStale: boolean
}

/** Nonces in use that are remembered; with more, older ones become stale before their time. */
const MAX_NONCES = 50_000
/** Phones whose unanswered challenges are counted. */
const MAX_PHONES = 10_000

export class Authenticator {
  readonly #deps: AuthenticatorDeps
  readonly #nonces: Nonces
  readonly #algorithms = new PhoneAlgorithms()

  constructor(deps: AuthenticatorDeps) {
    this.#deps = deps
    this.#nonces = new Nonces(deps)
  }

  verify({ method, realm, address, authorization }: Claim): Verdict {
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

const all: readonly Algorithm[] = ['SHA-256', 'MD5']
const plainFirst: readonly Algorithm[] = ['MD5', 'SHA-256']
const plain: readonly Algorithm[] = ['MD5']

/** Linphone's phones; baresip from 3.11; PJSUA from 2.11. */
const readsSeveral =
  /^(linphone|baresip v(3\.(1[1-9]|[2-9]\d)|[4-9]|[1-9]\d)|pjsua v(2\.(1[1-9]|[2-9]\d)|[3-9]))/i
/**
 * JsSIP and SIP.js; FreeSWITCH and whatever else is made of Sofia-SIP; baresip and PJSUA as they
 * were before.
 */
const failsWithSeveral =
  /jssip|sip\.js|freeswitch|sofia|^baresip v?([0-2]\.|3\.\d\b|3\.10)|pjsua v?([01]\.|2\.\d\b|2\.10)/i

/**
 * A phone that has left so many unanswered gets MD5 alone. A phone that nothing is known of may be
 * made of Sofia-SIP, and gives up at its first challenge: it registers with the next.
 */
const UNANSWERED = { known: 3, unknown: 1 } as const

/** The client that gets a challenge. */
interface Client {
  /** User, domain and address in one text. */
  readonly phone: string
  /** Undefined: it does not say what it is. */
  readonly userAgent: string | undefined
  /** The request came by a WebSocket. */
  readonly isPage: boolean
}

/**
 * Chooses the digest algorithms for a phone, one challenge each (RFC 8760 §2.4). A phone that is
 * known to read several challenges: the strongest first. One that is known to fail with several:
 * MD5 alone. All others: MD5 first, because who reads one challenge only takes the first one.
 *
 * There is no order that all would take. SIPp 3.6 ends its test at a first challenge with SHA-256;
 * PJSIP before 2.11 gives up at any; JsSIP and SIP.js take the last one; Sofia-SIP, and libre
 * before 3.11, fail with any second challenge for one realm. MD5 first weakens nothing: a client
 * that knows the password may always answer with it.
 */
class PhoneAlgorithms {
  /** Challenges in a row that stayed unanswered, by phone; the least recently challenged first. */
  readonly #unanswered = recentlyUsed<string, number>(MAX_PHONES)

  /** The algorithms of the next challenge. */
  offer({ phone, userAgent = '', isPage }: Client): readonly Algorithm[] {
    // A page speaks by JsSIP or SIP.js, under whatever name its author gives it.
    if (isPage || failsWithSeveral.test(userAgent)) return plain
    const unanswered = (this.#unanswered.get(phone) ?? 0) + 1
    this.#unanswered.set(phone, unanswered)
    const isKnown = readsSeveral.test(userAgent)
    if (unanswered > (isKnown ? UNANSWERED.known : UNANSWERED.unknown)) return plain
    return isKnown ? all : plainFirst
  }

  /** The phone has answered with this algorithm. */
  answered(phone: string, algorithm: Algorithm): void {
    const unanswered = this.#unanswered.peek(phone)
    if (unanswered === undefined) return
    if (algorithm === 'MD5' && unanswered > UNANSWERED.unknown) return
    this.#unanswered.delete(phone)
  }
}

// Nonces that need no memory to be issued: time, serial number and a keyed hash (RFC 7616 §3.3).
// Memory is spent only on those that were answered rightly, to refuse a repeated `nc` (§5.12).

/** The realm and address that a nonce is issued to. */
interface NonceOwner {
  readonly realm: string
  /** A nonce is bound to it, so that another address can neither use it nor use it up. */
  readonly address: string
}

interface Genuine extends NonceOwner {
  readonly issuedAt: number
}

interface InUse extends Genuine {
  /** The highest `nc` so far. */
  count: number
}

export class Nonces {
  readonly #deps: Omit<AuthenticatorDeps, 'directory'>
  readonly #maxInUse: number
  /** In the order of first use. */
  readonly #inUse = new Map<string, InUse>()
  #serial = 0
  /** The last nonce with a checked seal: `use` follows `isGenuine`. */
  #checked: (Genuine & { readonly nonce: string }) | undefined
  /** Nothing issued until then is good any more unless it is remembered. Milliseconds UTC. */
  #forgottenUntil = -Infinity

  constructor(deps: Omit<AuthenticatorDeps, 'directory'>, maxInUse = MAX_NONCES) {
    this.#deps = deps
    this.#maxInUse = maxInUse
  }

  issue(owner: NonceOwner): string {
    this.#serial = (this.#serial + 1) % 0x1_0000_0000
    const head = Buffer.allocUnsafe(10)
    head.writeUIntBE(this.#deps.now(), 0, 6)
    head.writeUInt32BE(this.#serial, 6)
    return Buffer.concat([head, this.#seal(head, owner)]).toString('base64url')
  }

  /** Whether this process gave it to this owner, however long ago. */
  isGenuine(nonce: string, owner: NonceOwner): boolean {
    return this.#issuedAt(nonce, owner) !== undefined
  }

  /**
   * To be asked only for an answer that was right: takes `count` (1 and up) as used. False: too
   * old, or counted before. Counts must grow; a request that was overtaken costs a round trip.
   */
  use(nonce: string, owner: NonceOwner, count: number): boolean {
    const issuedAt = this.#issuedAt(nonce, owner)
    const now = this.#deps.now()
    if (issuedAt === undefined || issuedAt > now) return false
    if (now - issuedAt >= this.#deps.nonceLifetimeMs) return false
    const known = this.#inUse.get(nonce)
    if (known) {
      if (count <= known.count) return false
      known.count = count
      return true
    }
    if (issuedAt <= this.#forgottenUntil) return false
    const { realm, address } = owner
    this.#inUse.set(detachString(nonce), { issuedAt, count, realm: detachString(realm), address })
    this.#forget(now)
    return true
  }

  get size(): number {
    return this.#inUse.size
  }

  /** Undefined: not one of ours. */
  #issuedAt(nonce: string, owner: NonceOwner): number | undefined {
    const known = this.#inUse.get(nonce) ?? (this.#checked?.nonce === nonce && this.#checked)
    if (known && known.address === owner.address && known.realm === owner.realm)
      return known.issuedAt
    const bytes = Buffer.from(nonce, 'base64url')
    if (bytes.length !== NONCE_BYTES) return undefined
    const head = bytes.subarray(0, 10)
    if (!timingSafeEqual(bytes.subarray(10), this.#seal(head, owner))) return undefined
    const issuedAt = head.readUIntBE(0, 6)
    this.#checked = { nonce, issuedAt, ...owner }
    return issuedAt
  }

  #seal(head: Buffer, { realm, address }: NonceOwner): Buffer {
    const text = `${head.toString('hex')} ${realm} ${address}`
    return Buffer.from(keyedHash(this.#deps.secret, text), 'hex').subarray(0, 14)
  }

  /** Expired ones, and the oldest when there are too many: their counts are not known any more. */
  #forget(now: number): void {
    const expiredAt = now - this.#deps.nonceLifetimeMs
    for (const [nonce, { issuedAt }] of this.#inUse) {
      if (issuedAt > expiredAt && this.#inUse.size <= this.#maxInUse) return
      this.#inUse.delete(nonce)
      if (issuedAt > expiredAt) this.#forgottenUntil = Math.max(this.#forgottenUntil, issuedAt)
    }
  }
}

const NONCE_BYTES = 24

/**
 * A SHA-256 that only the holder of `secret` (hexadecimal) can compute, in hexadecimal. Nested like
 * HMAC (RFC 2104), so that nothing can be appended to `text`; a tenth of the time of `createHmac`.
 */
const keyedHash = (secret: string, text: string): string =>
  hash('sha256', secret + hash('sha256', secret + text, 'hex'), 'hex')
