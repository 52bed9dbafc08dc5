/** A request of ours until its final response: sent, perhaps challenged and sent again, perhaps cancelled. */
import type { RequestSentEvent, ResponseEvent, SentFields } from '../../sip-server/application.ts'
import { hostPort } from '../../sip-server/message/index.ts'
import type { Credentials, Headers, SipResponse } from '../signalling.ts'
import { Challenges } from './challenge.ts'
import { responseOf } from './message-values.ts'

export interface RequestParts {
  readonly method: string
  /** Empty in a dialog: the server knows the remote target. */
  readonly uri: string
  readonly headers: Headers
  readonly body: string
  /** Where it goes; empty: by its Route, or else its Request-URI. */
  readonly nextHop: string
  /** Empty outside dialogs. */
  readonly dialogId: string
  readonly credentials: Credentials | undefined
}

export interface RequestListener {
  /** It has left; from now on it can be cancelled. */
  readonly onSent?: (request: OutgoingRequest) => void
  readonly onResponse: (response: SipResponse, event: ResponseEvent) => void
  /** It has not left. */
  readonly onRefused: (problem: string) => void
}

/** What a request asks of the connection that it goes by. */
export interface RequestLink {
  send(request: OutgoingRequest, parts: RequestParts): void
  sendCancel(request: OutgoingRequest, headers: Headers): void
}

export class OutgoingRequest {
  readonly link: RequestLink
  readonly #parts: RequestParts
  readonly #listener: RequestListener
  readonly #challenges: Challenges | undefined
  #sent: SentFields | undefined
  /** Empty while it is being sent. */
  #transactionId = ''
  #heldCancel: Headers | undefined

  constructor(link: RequestLink, parts: RequestParts, listener: RequestListener) {
    this.link = link
    this.#parts = parts
    this.#listener = listener
    const { credentials } = parts
    this.#challenges = credentials && new Challenges(credentials)
  }

  get parts(): RequestParts {
    return this.#parts
  }

  /** Undefined before it has left. */
  get sent(): SentFields | undefined {
    return this.#sent
  }

  get transactionId(): string {
    return this.#transactionId
  }

  start(): void {
    this.link.send(this, this.#parts)
  }

  /** The server has sent it, for the first time or again. */
  left({ transactionId, sent }: RequestSentEvent): void {
    const isFirst = this.#sent === undefined
    this.#transactionId = transactionId
    this.#sent = sent
    if (isFirst) this.#listener.onSent?.(this)
    const held = this.#heldCancel
    this.#heldCancel = undefined
    if (held) this.link.sendCancel(this, held)
  }

  refused(problem: string): void {
    this.#listener.onRefused(problem)
  }

  /** A challenge that can be answered is: the request goes out once more, and another response will come. */
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
    const parts = this.#parts
    const { from: _from, ...kept } = parts.headers
    return {
      ...parts,
      headers: {
        ...kept,
        From: sent.from,
        'Call-ID': sent.callId,
        CSeq: `${sent.cseq + 1} ${sent.method}`,
        ...credentials,
      },
      nextHop: nextHopAgain(parts, hostPort(flow.address, flow.port)),
    }
  }
}

/** A name may lead to another server the next time: the one that has challenged us gets the answer. */
function nextHopAgain({ nextHop, uri, dialogId }: RequestParts, challenger: string): string {
  if (dialogId !== '' || isAddress.test(nextHop || uri)) return nextHop
  const transport = /;transport=([^;>\s]+)/i.exec(nextHop) ?? /;transport=([^;>\s]+)/i.exec(uri)
  return `sip:${challenger}${transport ? `;transport=${transport[1]?.toLowerCase()}` : ''}`
}

const isAddress = /^sips?:(?:[^@]*@)?(?:\d{1,3}(?:\.\d{1,3}){3}|\[)/i
