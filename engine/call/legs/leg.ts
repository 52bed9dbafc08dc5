/** One dialog of a call: the caller's, or the called side's. */
import type { Answer, Headers, RequestHandler, SipRequest, SrfDialog } from '../srf/drachtio.ts'
import { respond } from '../sip/answers.ts'
import { continued } from '../sdp/origin-line.ts'

export class Leg {
  readonly dialog: SrfDialog
  /** The peer is a phone: what it says about who it is is not passed on. */
  isPhone = false
  /** The peer's last session description; empty when it has given none. */
  media: string
  /** Whoever tells the peer something in this dialog says it before our BYE. */
  beforeBye: (() => void) | undefined
  readonly #onBye: (request: SipRequest) => void
  #onRequest: RequestHandler = refuseForNow
  #onAck: ((request: SipRequest) => void) | undefined
  #isOver = false
  #hasOwnOrigin = false
  #isAcknowledged: boolean
  /** Headers of a BYE that waits for the ACK. */
  #farewell: Headers | undefined

  /**
   * To be made in the very callback that brings the dialog: a BYE may be the next message.
   * `onBye` hears of the peer's BYE, or of one that the server sent by itself; not of ours.
   * `isAcknowledged` is false for a dialog that we answered: RFC 3261 §15 forbids its BYE before
   * the ACK has come. Without ACK the server ends it.
   */
  constructor(dialog: SrfDialog, isAcknowledged: boolean, onBye: (request: SipRequest) => void) {
    this.dialog = dialog
    this.media = dialog.remote.sdp ?? ''
    this.#isAcknowledged = isAcknowledged
    this.#onBye = onBye
    dialog.on('destroy', (request) => this.#destroyed(request))
    // Only BYE is left to the library. What it does with the others fails on a re-INVITE after a
    // late offer, answers 200 to what nobody has done, and prints what it does not know.
    const byLibrary = dialog.handle.bind(dialog)
    dialog.handle = (request, answer) => {
      if (request.method === 'BYE') byLibrary(request, answer)
      else if (request.method === 'ACK') this.#acknowledged(request)
      else this.#onRequest(request, answer)
    }
    // Gone before it could be watched, which the library tells nobody.
    if (!dialog.connected) this.#isOver = true
  }

  /** BYE was received or sent. */
  get isOver(): boolean {
    return this.#isOver
  }

  get isAcknowledged(): boolean {
    return this.#isAcknowledged
  }

  /** From now on the peer is told of several parties, as if they were one. */
  keepOrigin(): void {
    this.#hasOwnOrigin = true
  }

  /** A description for the peer, as it has to go out. Undefined: there is none. */
  tell(description: string | undefined): string | undefined {
    if (!description) return undefined
    const { local } = this.dialog
    local.sdp = this.#hasOwnOrigin ? continued(local.sdp ?? '', description) : description
    return local.sdp
  }

  /** Who gets the peer's requests in the dialog, except BYE and ACK. */
  whenRequested(handler: RequestHandler): void {
    this.#onRequest = handler
  }

  /** There is nobody to pass them to at the moment. */
  refuseRequests(): void {
    this.#onRequest = refuseForNow
  }

  /** Who gets the next ACK. */
  whenAcknowledged(act: (request: SipRequest) => void): void {
    this.#onAck = act
  }

  /** BYE, once, as soon as it is allowed. */
  hangUp(headers: Headers): void {
    if (this.#isOver) return
    this.beforeBye?.()
    this.#isOver = true
    if (this.#isAcknowledged) this.dialog.destroy({ headers }, () => undefined)
    else this.#farewell = headers
  }

  #destroyed(request: SipRequest): void {
    this.#farewell = undefined
    if (this.#isOver) return
    this.#isOver = true
    this.#onBye(request)
  }

  #acknowledged(request: SipRequest): void {
    this.#isAcknowledged = true
    const act = this.#onAck
    this.#onAck = undefined
    act?.(request)
    if (this.#farewell) this.dialog.destroy({ headers: this.#farewell }, () => undefined)
    this.#farewell = undefined
  }
}

/** The other leg is not there yet; RFC 3261 §14.2 for INVITE. */
function refuseForNow(request: SipRequest, answer: Answer): void {
  if (request.method === 'INVITE') respond(answer, 491)
  else if (request.method === 'PRACK') respond(answer, 200)
  else respond(answer, 500, undefined, { headers: { 'Retry-After': '1' } })
}
