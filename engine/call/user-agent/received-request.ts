/** A request from the network, and the response that we may give to it. */
import type {
  RequestEvent,
  SavedDialogs,
  SentReply,
  SipSender,
} from '../../sip-server/application.ts'
import type { Answer, Headers, SendOptions, SipRequest } from '../signalling.ts'
import { type Described, described, describes, isPlain } from '../multipart.ts'
import { knownName } from '../../../schema/sip/index.ts'

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

/** Sends the responses of a received request. */
export interface ResponseLink {
  readonly saved: SavedDialogs | undefined
  /** `request` gets the reply of the server, if it waits for one. */
  respond(request: ReceivedRequest, response: ResponseToSend, waits: boolean): void
}

export class ReceivedRequest implements SipRequest, Answer, SipSender {
  readonly #event: RequestEvent
  readonly link: ResponseLink
  #body: string | undefined
  #headers: Headers | undefined
  #finalResponseSent = false
  #onResponseSent: OnResponseSent | undefined
  /**
   * The sender is unauthenticated: the final response is short, and sent once without state (RFC
   * 3261 §26.3.2.4).
   */
  isFromStranger = false
  /** Called at a CANCEL. */
  onCancel: ((headers: Headers) => void) | undefined

  /** `body`: absent, unless the request is restored without its own. */
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
    this.#onResponseSent = done
    this.link.respond(this, { status, reason: reason ?? '', headers, body }, done !== undefined)
  }

  replied(reply: SentReply): void {
    this.#sent(reply.kind === 'response-sent' ? reply : undefined)
  }

  /** The server is unavailable. */
  notSent(): void {
    this.#sent(undefined)
  }

  #sent(response: SentResponse | undefined): void {
    const done = this.#onResponseSent
    this.#onResponseSent = undefined
    done?.(response)
  }
}

/** The headers of a received message as call control reads them. */
export function headersOf(message: Pick<RequestEvent['message'], 'forEach'>): Headers {
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
  // The key is not `name`, which may be a part of a whole message.
  if (known === name) keys.set(known, key)
  return key
}

const isPrivate = (name: string): boolean => name.startsWith('P-') && !name.startsWith('P-Asserted')

export const messageOf = (error: unknown): string =>
  error instanceof Error ? error.message : String(error)
