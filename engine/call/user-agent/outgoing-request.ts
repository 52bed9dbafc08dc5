/**
 * A request of ours until its final response: sent, perhaps challenged and sent again, perhaps
 * cancelled.
 */
import type {
  RequestWay,
  ResponseEvent,
  SentFields,
  SentReply,
  SipSender,
} from '../../sip-server/application.ts'
import { hostPort } from '../../../schema/sip/index.ts'
import { described, describes, isPlain } from '../multipart.ts'
import type { DigestLogin, Headers, SipResponse } from '../signalling.ts'
import { Challenges } from './challenges.ts'
import { headersOf, type ReceivedRequest } from './received-request.ts'

const UNEXPECTED = 'the server gave another reply than expected'

export interface RequestParts extends RequestWay {
  readonly method: string
  /** Empty in a dialog: the server knows the remote target. */
  readonly uri: string
  readonly headers: Headers
  readonly body: string
  readonly credentials: DigestLogin | undefined
  /** Headers that the request which answers a challenge has anew; absent: it is the same. */
  readonly renewed?: (() => Headers | Promise<Headers>) | undefined
}

export interface RequestListener {
  /** The request was sent, as `text`; from now on it can be cancelled. */
  readonly onSent?: (request: OutgoingRequest, text: string) => void
  readonly onResponse: (response: SipResponse, event: ResponseEvent) => void
  /** An offer in an early dialog of an INVITE: it has to be answered. */
  readonly onUpdate?: (update: ReceivedRequest) => void
  /** The request was not sent. */
  readonly onRefused: (problem: string) => void
  /** The server has become unavailable before its final response. Absent: nobody waits for it. */
  readonly onLost?: () => void
}

/** Sends a request of ours, and keeps it until its end. */
export interface RequestLink {
  sendRequest(request: OutgoingRequest, parts: RequestParts): void
  sendCancel(request: OutgoingRequest, headers: Headers): void
  /** The request was sent, for the first time or again: its responses carry `transactionId`. */
  wasSent(request: OutgoingRequest, transactionId: string): void
  /** The request has its final response, or was not sent. */
  ended(request: OutgoingRequest): void
}

export class OutgoingRequest implements SipSender {
  /** Different for each request. */
  readonly number: number
  readonly parts: RequestParts
  readonly #link: RequestLink
  readonly #listener: RequestListener
  readonly #challenges: Challenges | undefined
  #sent: SentFields | undefined
  /** Empty while it is being sent. */
  #transactionId = ''
  #heldCancel: Headers | undefined

  constructor(link: RequestLink, number: number, parts: RequestParts, listener: RequestListener) {
    this.#link = link
    this.number = number
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

  /** Whether it goes by this server. */
  isBy(server: string): boolean {
    const { dialogId, server: own } = this.parts
    return dialogId === '' ? own === server : dialogId.startsWith(server)
  }

  /** It was sent, for the first time or again, or cannot be sent. */
  replied(reply: SentReply): void {
    if (reply.kind === 'request-sent') this.#wasSent(reply)
    else this.refused('problem' in reply ? reply.problem : UNEXPECTED)
  }

  #wasSent({
    transactionId,
    sent,
    text,
  }: Extract<SentReply, { readonly kind: 'request-sent' }>): void {
    this.#link.wasSent(this, transactionId)
    const isFirst = this.#sent === undefined
    this.#transactionId = transactionId
    this.#sent = sent
    if (isFirst) this.#listener.onSent?.(this, text)
    const held = this.#heldCancel
    this.#heldCancel = undefined
    if (held) this.#link.sendCancel(this, held)
  }

  refused(problem: string): void {
    this.#link.ended(this)
    this.#listener.onRefused(problem)
  }

  lost(): void {
    this.#listener.onLost?.()
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
    if (again === undefined) {
      if (response.status >= 200) this.#link.ended(this)
      return this.#listener.onResponse(response, event)
    }
    this.#transactionId = ''
    const renewed = this.parts.renewed?.()
    if (!(renewed instanceof Promise)) return this.#sendAgain(again, renewed)
    return void renewed.then((headers) =>
      // Nobody has got it yet.
      this.#heldCancel ? this.refused('given up') : this.#sendAgain(again, headers),
    )
  }

  #sendAgain(parts: RequestParts, renewed: Headers | undefined): void {
    const { headers } = parts
    const again = renewed ? { ...parts, headers: { ...headers, ...renewed } } : parts
    this.#link.sendRequest(this, again)
  }

  /** CANCEL; while a challenge is being answered, of the request that answers it. */
  cancel(headers: Headers): void {
    if (this.#transactionId === '') this.#heldCancel = headers
    else this.#link.sendCancel(this, headers)
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

function responseOf({ message, flow }: ResponseEvent): SipResponse {
  const { status, reason } = message
  const peer = hostPort(flow.address, flow.port)
  let headers = headersOf(message)
  let { body } = message
  if (!isPlain(body) && describes(message.method)) ({ headers, body } = described(headers, body))
  return { status, reason, headers, body, peer }
}
