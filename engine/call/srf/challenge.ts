/**
 * Answers a digest challenge (RFC 3261 §22, RFC 7616), once. The library sends the answer in a header that is made
 * here: its own knows MD5 only, and reads no second challenge (RFC 8760).
 */
import {
  algorithmOf,
  digest,
  digestFields,
  expectedResponse,
  type Algorithm,
} from '../../registrar/digest/digest.ts'
import type { Credentials } from '../signalling.ts'
import type { Agent, AnswerChallenge, SipRequest, SipResponse } from './drachtio.ts'

/** Challenges and answers of one request so far. */
interface Conversation {
  /** CSeq number under which the library repeats the request. */
  readonly cseq: number
  readonly asked: ReadonlySet<number>
  readonly isRenewed: boolean
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
 * The second challenge counts as a refusal, or a server that goes on asking would be answered for ever;
 * once more when only the nonce was old. `onRefused`: nothing more is sent.
 */
export function answerChallenges(
  credentials: Credentials,
  onRefused: (response: SipResponse) => void,
): AnswerChallenge {
  let last: Conversation | undefined
  return (request, response, done) => {
    const { status, headers, agent } = response
    const isProxy = status === 407
    const asked = headers[isProxy ? 'proxy-authenticate' : 'www-authenticate'] ?? ''
    const challenge = chosenOf(asked, credentials.realm)
    const cseq = Number.parseInt(request.headers['cseq'] ?? '0', 10)
    const before = last?.cseq === cseq ? last : undefined
    const isRenewal = before?.asked.has(status) === true
    const mayRenew = challenge?.isStale === true && before?.isRenewed === false
    if ((isRenewal && !mayRenew) || challenge === undefined) {
      done(new Error('the credentials are refused'))
      return onRefused(response)
    }
    last = {
      cseq: cseq + 1,
      asked: new Set([...(before?.asked ?? []), status]),
      isRenewed: before?.isRenewed === true || isRenewal,
    }
    const name = isProxy ? 'Proxy-Authorization' : 'Authorization'
    const value = answerTo(challenge, credentials, request)
    const { username, password } = credentials
    return sendingHeader(agent, { [name]: value }, headers['call-id'] ?? '', () =>
      done(null, username, password),
    )
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
  { username, password }: Credentials,
  { method, uri, headers }: SipRequest,
): string {
  const ha1 = digest(algorithm, `${username}:${realm}:${password}`)
  // Not predictable without the password, and different for each request.
  const cnonce = digest(algorithm, `${ha1}:${headers['call-id']}:${headers['cseq']}`).slice(0, 16)
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

/**
 * What the library sends while `act` runs has these headers. Afterwards it asks again at the next
 * challenge, which it would otherwise take for the answer unless a 100 came in between.
 */
function sendingHeader(
  agent: Agent | undefined,
  headers: Readonly<Record<string, string>>,
  callId: string,
  act: () => void,
): void {
  if (agent === undefined) return act()
  const send = agent.request
  agent.request = (options, ...rest) => {
    // Sending it may bring other messages at once, and they other requests.
    agent.request = send
    Object.assign(options.headers, headers)
    return send.call(agent, options, ...rest)
  }
  try {
    act()
  } finally {
    agent.request = send
  }
  for (const state of agent.mapServer.values()) state.pendingSipAuthRequests.delete(callId)
}
