/** A request from the network, and the response that we may give to it. */
import type {
  RequestEvent,
  SavedDialogs,
  AppEvent,
  ResponseEvent,
  RequestSentEvent,
  SentFields,
} from '../../sip-server/application.ts'
import type {
  Answer,
  Headers,
  SendOptions,
  SipRequest,
  SipResponse,
  Credentials,
} from '../signalling.ts'
import { type Described, described, describes, isPlain } from '../multipart.ts'
import { hostPort, knownName } from '../../sip-server/message/index.ts'
import {
  algorithmOf,
  digest,
  digestFields,
  expectedResponse,
  type Algorithm,
} from '../../registrar/digest/digest.ts'

/** A sent response. `localTag` is our tag. */
interface SentResponse {
  readonly dialogId: string
  readonly localTag: string
}

/** Undefined: it could not be sent any more. */
export type OnResponseSent = (sent: SentResponse | undefined) => void

export interface ResponseToSend {
  readonly status: number
  /** Empty: the usual one. */
  readonly reason: string
  readonly headers: Headers
  readonly body: string
}

/** The connection of a received request, as the request uses it. */
export interface ResponseLink {
  /** Absent for a server elsewhere. */
  readonly saved: SavedDialogs | undefined
  respond(
    request: ReceivedRequest,
    response: ResponseToSend,
    done: OnResponseSent | undefined,
  ): void
}

export class ReceivedRequest implements SipRequest, Answer {
  readonly #event: RequestEvent
  readonly link: ResponseLink
  #body: string | undefined
  #headers: Headers | undefined
  #finalResponseSent = false
  /**
   * The sender is unauthenticated: the final response is short, and sent once without state (RFC
   * 3261 §26.3.2.4).
   */
  isFromStranger = false
  /** Called at a CANCEL. */
  onCancel: ((headers: Headers) => void) | undefined

  /** `body`: of one that is restored without it. */
  constructor(event: RequestEvent, link: ResponseLink, body?: string) {
    this.#event = event
    this.link = link
    this.#body = body
  }

  get method(): string {
    return this.#event.message.method
  }

  get uri(): string {
    return this.#event.message.uri
  }

  /** The session description, where it may have one; else all of the body. */
  get body(): string {
    if (this.#body !== undefined) return this.#body
    const { method, body } = this.#event.message
    return isPlain(body) || !describes(method) ? body : this.#read().body
  }

  get headers(): Headers {
    if (this.#headers) return this.#headers
    const { method, body } = this.#event.message
    if (this.#body === undefined && !isPlain(body) && describes(method)) return this.#read().headers
    return (this.#headers = headersOf(this.#event.message))
  }

  /** Reads a body that is no plain description. */
  #read(): Described {
    const { message } = this.#event
    const read = described(headersOf(message), message.body)
    this.#headers = read.headers
    this.#body = read.body
    return read
  }

  get callId(): string {
    return this.#event.message.callId
  }

  get fromTag(): string {
    return this.#event.message.fromTag
  }

  get protocol(): string {
    return this.#event.flow.listener.protocol
  }

  get sourceAddress(): string {
    return this.#event.flow.address
  }

  get sourcePort(): number {
    return this.#event.flow.port
  }

  get transactionId(): string {
    return this.#event.transactionId
  }

  /** Empty outside dialogs. */
  get dialogId(): string {
    return this.#event.dialogId
  }

  get finalResponseSent(): boolean {
    return this.#finalResponseSent
  }

  send(
    status: number,
    reason: string | undefined,
    { headers = {}, body = '' }: SendOptions,
    done?: OnResponseSent,
  ): void {
    if (this.#finalResponseSent) return
    this.#finalResponseSent = status >= 200
    this.link.respond(this, { status, reason: reason ?? '', headers, body }, done)
  }
}

// Received messages as call control reads them.

type Message = Extract<AppEvent, { readonly kind: 'request' }>['message']

export function headersOf(message: Pick<Message, 'forEach'>): Headers {
  const headers: Headers = {}
  message.forEach((name, value) => {
    // Call control has no use for these, and each header costs.
    if (name === 'Via' || name === 'Content-Length') return
    const key = keyOf(name)
    const before = headers[key]
    headers[key] = before === undefined ? value : `${before},${value}`
  })
  return headers
}

/**
 * Lower-case copies of known names: making one for each header costs more than the rest of this
 * function.
 */
const keys = new Map<string, string>()

function keyOf(name: string): string {
  const cached = keys.get(name)
  if (cached !== undefined) return cached
  const isAsSent = name.startsWith('X-') || name === 'Diversion' || isPrivate(name)
  const key = isAsSent ? name : name.toLowerCase()
  const known = knownName(name)
  // Not `name`, which may be a part of a whole message.
  if (known === name) keys.set(known, key)
  return key
}

const isPrivate = (name: string): boolean => name.startsWith('P-') && !name.startsWith('P-Asserted')

function responseOf({ message, flow }: ResponseEvent): SipResponse {
  const { status, reason } = message
  const peer = hostPort(flow.address, flow.port)
  let headers = headersOf(message)
  let { body } = message
  if (!isPlain(body) && describes(message.method)) ({ headers, body } = described(headers, body))
  return { status, reason, headers, body, peer }
}

/** Why a command was not performed. */
export const problemOf = (reply: AppEvent): string =>
  'problem' in reply ? reply.problem : 'the server gave another reply than expected'

export const messageOf = (error: unknown): string =>
  error instanceof Error ? error.message : String(error)

// A request of ours until its final response: sent, perhaps challenged and sent again, perhaps
// cancelled.

export interface RequestParts {
  readonly method: string
  /** Empty in a dialog: the server knows the remote target. */
  readonly uri: string
  readonly headers: Headers
  readonly body: string
  /** The next hop. Empty: its Route decides, or else its Request-URI. */
  readonly nextHop: string
  /** Empty outside dialogs. */
  readonly dialogId: string
  readonly credentials: Credentials | undefined
}

export interface RequestListener {
  /** The request was sent, as `text`; from now on it can be cancelled. */
  readonly onSent?: (request: OutgoingRequest, text: string) => void
  readonly onResponse: (response: SipResponse, event: ResponseEvent) => void
  /** An offer in an early dialog of an INVITE: it has to be answered. */
  readonly onUpdate?: (update: ReceivedRequest) => void
  /** The request was not sent. */
  readonly onRefused: (problem: string) => void
}

/** The connection of a request of ours, as the request uses it. */
export interface RequestLink {
  send(request: OutgoingRequest, parts: RequestParts): void
  sendCancel(request: OutgoingRequest, headers: Headers): void
}

export class OutgoingRequest {
  readonly link: RequestLink
  readonly parts: RequestParts
  readonly #listener: RequestListener
  readonly #challenges: Challenges | undefined
  #sent: SentFields | undefined
  /** Empty while it is being sent. */
  #transactionId = ''
  #heldCancel: Headers | undefined

  constructor(link: RequestLink, parts: RequestParts, listener: RequestListener) {
    this.link = link
    this.parts = parts
    this.#listener = listener
    const { credentials } = parts
    this.#challenges = credentials && new Challenges(credentials)
  }

  /** Undefined before it is sent. */
  get sent(): SentFields | undefined {
    return this.#sent
  }

  get transactionId(): string {
    return this.#transactionId
  }

  start(): void {
    this.link.send(this, this.parts)
  }

  /** The server has sent it, for the first time or again. */
  left({ transactionId, sent, text }: RequestSentEvent): void {
    const isFirst = this.#sent === undefined
    this.#transactionId = transactionId
    this.#sent = sent
    if (isFirst) this.#listener.onSent?.(this, text)
    const held = this.#heldCancel
    this.#heldCancel = undefined
    if (held) this.link.sendCancel(this, held)
  }

  refused(problem: string): void {
    this.#listener.onRefused(problem)
  }

  updated(update: ReceivedRequest): void {
    if (this.#listener.onUpdate) this.#listener.onUpdate(update)
    else update.send(488, undefined, {})
  }

  /**
   * A challenge that can be answered is: the request goes out once more, and another response will
   * come.
   */
  answered(event: ResponseEvent): void {
    const response = responseOf(event)
    const again = this.#answerTo(response, event)
    if (again === undefined) return this.#listener.onResponse(response, event)
    this.#transactionId = ''
    return this.link.send(this, again)
  }

  /** CANCEL; while a challenge is being answered, of the request that answers it. */
  cancel(headers: Headers): void {
    if (this.#transactionId === '') this.#heldCancel = headers
    else this.link.sendCancel(this, headers)
  }

  /** RFC 3261 §22.2: the same request with credentials, the next one of its Call-ID. */
  #answerTo(response: SipResponse, { flow }: ResponseEvent): RequestParts | undefined {
    const { status, headers } = response
    const sent = this.#sent
    if ((status !== 401 && status !== 407) || !this.#challenges || !sent) return undefined
    const credentials = this.#challenges.answer(status, headers, sent)
    if (credentials === undefined) return undefined
    const { parts } = this
    const { from: _from, ...others } = parts.headers
    return {
      ...parts,
      headers: {
        ...others,
        From: sent.from,
        'Call-ID': sent.callId,
        CSeq: `${sent.cseq + 1} ${sent.method}`,
        ...credentials,
      },
      nextHop: nextHopAgain(parts, hostPort(flow.address, flow.port)),
    }
  }
}

/**
 * DNS may lead to another server the next time: the answer goes to the server that has challenged
 * us.
 */
function nextHopAgain({ nextHop, uri, dialogId }: RequestParts, challenger: string): string {
  if (dialogId !== '' || isAddress.test(nextHop || uri)) return nextHop
  const transport = /;transport=([^;>\s]+)/i.exec(nextHop) ?? /;transport=([^;>\s]+)/i.exec(uri)
  return `sip:${challenger}${transport ? `;transport=${transport[1]?.toLowerCase()}` : ''}`
}

const isAddress = /^sips?:(?:[^@]*@)?(?:\d{1,3}(?:\.\d{1,3}){3}|\[)/i

// Answers digest challenges to one request (RFC 3261 §22, RFC 7616, RFC 8760).

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
  readonly #credentials: Credentials
  readonly #answered = new Set<number>()
  #isRenewed = false

  constructor(credentials: Credentials) {
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
  { username, password }: Credentials,
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
