/** A request from the network, and the response that we may give to it. */
import type { RequestEvent, SavedDialogs } from '../../sip-server/application.ts'
import type { Answer, Headers, SendOptions, SipRequest } from '../signalling.ts'
import { headersOf } from './message-values.ts'

/** What has left. `localTag` is ours in it. */
export interface SentResponse {
  readonly dialogId: string
  readonly localTag: string
}

/** Undefined: it could not be sent any more. */
export type Responded = (sent: SentResponse | undefined) => void

export interface ResponseToSend {
  readonly status: number
  /** Empty: the usual one. */
  readonly reason: string
  readonly headers: Headers
  readonly body: string
}

/** What a received request asks of the connection that brought it. */
export interface ResponseLink {
  /** Absent for a server elsewhere. */
  readonly saved: SavedDialogs | undefined
  respond(request: ReceivedRequest, response: ResponseToSend, done: Responded | undefined): void
}

export class ReceivedRequest implements SipRequest, Answer {
  readonly #event: RequestEvent
  readonly link: ResponseLink
  readonly #body: string | undefined
  #headers: Headers | undefined
  #finalResponseSent = false
  /** Its sender has proved nothing: the final response is sent once, without state, and is short (RFC 3261 §26.3.2.4). */
  isFromStranger = false
  /** Told of a CANCEL. */
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

  get body(): string {
    return this.#body ?? this.#event.message.body
  }

  get headers(): Headers {
    return (this.#headers ??= headersOf(this.#event.message))
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
    done?: Responded,
  ): void {
    if (this.#finalResponseSent) return
    this.#finalResponseSent = status >= 200
    this.link.respond(this, { status, reason: reason ?? '', headers, body }, done)
  }
}
