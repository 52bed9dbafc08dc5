/** Answers to the digest challenges of one request (RFC 3261 §22, RFC 7616, RFC 8760). */
import {
  algorithmOf,
  digest,
  digestFields,
  expectedResponse,
  type Algorithm,
} from '../../registrar/digest/digest.ts'
import type { DigestLogin, Headers } from '../signalling.ts'

/** The request that was challenged. */
interface ChallengedRequest {
  readonly method: string
  readonly uri: string
  readonly callId: string
  readonly cseq: number
}

interface Challenge {
  readonly realm: string
  readonly nonce: string
  readonly algorithm: Algorithm
  /** Whether `qop=auth` is offered; else the answer is that of RFC 2069. */
  readonly isProtected: boolean
  readonly opaque: string | undefined
  readonly isStale: boolean
}

/**
 * The second challenge of a status counts as a refusal, or a server that repeats it would be
 * answered for ever. A stale nonce is renewed once. A proxy (407) and the server behind it (401)
 * may both ask.
 */
export class Challenges {
  readonly #credentials: DigestLogin
  readonly #answered = new Set<number>()
  #isRenewed = false

  constructor(credentials: DigestLogin) {
    this.#credentials = credentials
  }

  /** The header to repeat the request with; undefined: the challenge is the answer. */
  answer(status: number, headers: Headers, request: ChallengedRequest): Headers | undefined {
    const isProxy = status === 407
    const header = headers[isProxy ? 'proxy-authenticate' : 'www-authenticate'] ?? ''
    const challenge = chosenOf(header, this.#credentials.realm)
    const isRenewal = this.#answered.has(status)
    const mayRenew = challenge?.isStale === true && !this.#isRenewed
    if (challenge === undefined || (isRenewal && !mayRenew)) return undefined
    this.#answered.add(status)
    this.#isRenewed ||= isRenewal
    const name = isProxy ? 'Proxy-Authorization' : 'Authorization'
    return { [name]: answerTo(challenge, this.#credentials, request) }
  }
}

/** RFC 8760 §2.4: the first one that we know; the server has put them in its order. */
function chosenOf(header: string, realm: string | null): Challenge | undefined {
  for (const fields of digestFields(header)) {
    const algorithm = algorithmOf(fields.get('algorithm') ?? '')
    const qop = fields.get('qop')?.toLowerCase().split(',')
    const isProtected = qop?.some((option) => option.trim() === 'auth') === true
    const [nonce, named] = [fields.get('nonce'), fields.get('realm') ?? '']
    if (algorithm === undefined || nonce === undefined || (qop && !isProtected)) continue
    if (realm !== null && named !== realm) continue
    const isStale = fields.get('stale')?.toLowerCase() === 'true'
    return { realm: named, nonce, algorithm, isProtected, opaque: fields.get('opaque'), isStale }
  }
  return undefined
}

function answerTo(
  { realm, nonce, algorithm, isProtected, opaque }: Challenge,
  { username, password }: DigestLogin,
  { method, uri, callId, cseq }: ChallengedRequest,
): string {
  const ha1 = digest(algorithm, `${username}:${realm}:${password}`)
  // The cnonce is not predictable without the password, and different for each request.
  const cnonce = digest(algorithm, `${ha1}:${callId}:${cseq} ${method}`).slice(0, 16)
  const protection = isProtected ? { cnonce, nc: '00000001', count: 1 } : null
  const response = expectedResponse({ nonce, uri, protection }, algorithm, method, ha1)
  return [
    `Digest username=${quoted(username)}`,
    `realm=${quoted(realm)}`,
    `nonce=${quoted(nonce)}`,
    `uri=${quoted(uri)}`,
    `response="${response}"`,
    `algorithm=${algorithm}`,
    ...(isProtected ? ['qop=auth', 'nc=00000001', `cnonce="${cnonce}"`] : []),
    ...(opaque === undefined ? [] : [`opaque=${quoted(opaque)}`]),
  ].join(',')
}

const quoted = (text: string): string => `"${text.replace(/["\\]/g, '\\$&')}"`
