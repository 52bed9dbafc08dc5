/** An INVITE dialog on one SIP server (RFC 3261 §12). The server handles its wire format. */
import type { ResponseEvent, SavedDialogs } from '../../sip-server/application.ts'
import type { DigestLogin, DialogIds, Headers, SipResponse } from '../signalling.ts'
import type { RequestListener, RequestParts } from './outgoing-request.ts'
import type { ReceivedRequest } from './received-request.ts'

/** Sends the ACK of an INVITE. */
export type Acknowledge = (body: string | undefined) => void

export interface DialogListener {
  /**
   * `isOurs`: the server sent it, because an ACK or a refresh is missing. `answer` sends the 200
   * that it waits for.
   */
  readonly onBye: (headers: Headers, isOurs: boolean, answer: () => void) => void
  readonly onAck: (body: string | undefined) => void
  readonly onRequest: (request: ReceivedRequest) => void
}

export interface InDialogRequest {
  readonly method: string
  readonly headers: Headers
  readonly body: string | undefined
  /** Leaves the ACK of an INVITE without body to the caller. */
  readonly noAck: boolean
}

export interface InDialogListener {
  /** `acknowledge`: the ACK is ours to send. */
  readonly onResponse: (response: SipResponse, acknowledge: Acknowledge | undefined) => void
  readonly onRefused: (problem: string) => void
}

/** Sends the requests of a dialog. */
export interface DialogLink {
  readonly saved: SavedDialogs | undefined
  request(parts: RequestParts, listener: RequestListener): void
  /** The ACK of a 2xx will be sent later. */
  owesAck(dialogId: string): void
  acknowledge(dialogId: string, body: string | undefined): void
  forgetDialog(dialog: CallDialog): void
}

export class CallDialog {
  readonly id: string
  readonly ids: DialogIds
  readonly link: DialogLink
  readonly #credentials: DigestLogin | undefined
  /** Must be set at once: a BYE may be the next event. */
  listener: DialogListener | undefined
  #isConnected = true

  constructor(link: DialogLink, id: string, ids: DialogIds, credentials: DigestLogin | undefined) {
    this.link = link
    this.id = id
    this.ids = ids
    this.#credentials = credentials
  }

  get isConnected(): boolean {
    return this.#isConnected
  }

  /** A request from the peer. */
  take(request: ReceivedRequest): void {
    const { method, body } = request
    if (method === 'ACK') this.listener?.onAck(body === '' ? undefined : body)
    else if (method !== 'BYE') this.listener?.onRequest(request)
    else this.ended(request.headers, false, () => request.send(200, undefined, {}))
  }

  /** BYE has come, or was sent by the server. */
  ended(headers: Headers, isOurs: boolean, answer: () => void): void {
    this.#isConnected = false
    this.link.forgetDialog(this)
    if (this.listener) this.listener.onBye(headers, isOurs, answer)
    else answer()
  }

  /** Sends BYE; the dialog is known until its answer, whose headers `onAnswer` gets. */
  bye(headers: Headers, onAnswer?: (headers: Headers) => void): void {
    const forget = (): void => {
      this.#isConnected = false
      this.link.forgetDialog(this)
    }
    const onResponse = ({ status, headers: answered }: SipResponse): void => {
      if (status < 200) return
      forget()
      onAnswer?.(answered)
    }
    this.#send({ method: 'BYE', headers, body: '' }, { onResponse, onRefused: forget })
  }

  request({ method, headers, body = '', noAck }: InDialogRequest, to: InDialogListener): void {
    const isInvite = method === 'INVITE'
    const onResponse = (response: SipResponse, { dialogId }: ResponseEvent): void => {
      const { status } = response
      if (!isInvite || status < 200 || status >= 300) return to.onResponse(response, undefined)
      const acknowledge = (answer: string | undefined): void =>
        this.link.acknowledge(dialogId, answer)
      if (noAck && body === '') {
        this.link.owesAck(dialogId)
        return to.onResponse(response, acknowledge)
      }
      acknowledge(undefined)
      return to.onResponse(response, undefined)
    }
    this.#send({ method, headers, body }, { onResponse, onRefused: to.onRefused })
  }

  #send(
    parts: { readonly method: string; readonly headers: Headers; readonly body: string },
    listener: RequestListener,
  ): void {
    const { method, headers, body } = parts
    const { id: dialogId } = this
    const credentials = this.#credentials
    this.link.request(
      { method, uri: '', headers, body, nextHop: '', server: '', dialogId, credentials },
      listener,
    )
  }
}
