/** Requests inside an answered call: what passes to the other leg, and what is answered here. */
import type { Acknowledge, Answer, SipRequest, SipResponse } from '../sip/drachtio.ts'
import type { HeaderFilter } from '../sip/headers.ts'
import type { Leg } from './leg.ts'
import { ALLOW, respond } from '../sip/srf-client.ts'

export interface RelayHooks {
  /** A media offer was accepted: whether it puts the call on hold. */
  readonly onMedia: (isHeld: boolean) => void
  /** The leg's peer does not know the dialog, or does not answer (RFC 3261 §12.2.1.2). */
  readonly onDead: (leg: Leg) => void
}

export class Relay {
  readonly #filter: HeaderFilter
  readonly #hooks: RelayHooks
  readonly #a: Leg
  readonly #b: Leg
  /** Whose re-INVITE is under way: there is at most one in a call, in either direction. */
  #inviting: Leg | undefined

  constructor(a: Leg, b: Leg, filter: HeaderFilter, hooks: RelayHooks) {
    this.#a = a
    this.#b = b
    this.#filter = filter
    this.#hooks = hooks
  }

  /** Requests of either leg go to the other from now on. */
  start(): void {
    this.#a.whenRequested((request, answer) => this.#relay(this.#a, this.#b, request, answer))
    this.#b.whenRequested((request, answer) => this.#relay(this.#b, this.#a, request, answer))
  }

  #relay(from: Leg, to: Leg, request: SipRequest, answer: Answer): void {
    switch (request.method) {
      case 'INVITE':
        return this.#reinvite(from, to, request, answer)
      case 'INFO':
      case 'UPDATE':
      case 'MESSAGE':
      case 'NOTIFY':
        return this.#pass(to, request, answer)
      case 'OPTIONS':
        return respond(answer, 200, undefined, { headers: { Allow: ALLOW } })
      case 'PRACK':
        return respond(answer, 200)
      default:
        return respond(answer, 405, undefined, { headers: { Allow: ALLOW } })
    }
  }

  #pass(to: Leg, request: SipRequest, answer: Answer): void {
    const { method, body } = request
    const headers = this.#filter.inDialog(request.headers)
    to.dialog.request({ method, headers, body: body || undefined }, (error, response) => {
      if (response && response.status < 200) return
      this.#answer(to, answer, error, response)
      if (method === 'UPDATE') this.#noteMedia(body, response)
      this.#noteDeath(to, method, response)
    })
  }

  /** RFC 3261 §14: never two at once; a re-INVITE without offer is acknowledged end to end. */
  #reinvite(from: Leg, to: Leg, request: SipRequest, answer: Answer): void {
    if (this.#inviting === from)
      return respond(answer, 500, undefined, { headers: { 'Retry-After': '1' } })
    if (this.#inviting || !to.isAcknowledged) return respond(answer, 491)
    this.#inviting = from
    const offer = request.body || undefined
    const headers = this.#filter.inDialog(request.headers)
    const options = { method: 'INVITE', headers, body: offer, noAck: offer === undefined }
    // Not `dialog.modify`: one refused re-INVITE blocks it for the rest of the call.
    to.dialog.request(options, (error, response, acknowledge) => {
      if (response && response.status < 200) return
      if (acknowledge) this.#awaitAnswer(from, acknowledge)
      else this.#inviting = undefined
      this.#answer(to, answer, error, response)
      this.#noteMedia(offer, response)
      this.#noteDeath(to, 'INVITE', response)
    })
  }

  /** The offer was in the 200, so the answer is in the ACK. */
  #awaitAnswer(from: Leg, acknowledge: Acknowledge): void {
    from.whenAcknowledged((ack) => {
      this.#inviting = undefined
      acknowledge({ body: ack.body || undefined })
      this.#noteMedia(ack.body, undefined)
    })
  }

  #answer(to: Leg, answer: Answer, error: unknown, response: SipResponse | undefined): void {
    if (error || !response) return respond(answer, to.isOver ? 481 : 500)
    const headers = this.#filter.inDialogAnswer(response.headers)
    return respond(answer, response.status, response.reason, {
      headers,
      body: response.body || undefined,
    })
  }

  #noteMedia(offer: string | undefined, response: SipResponse | undefined): void {
    if (offer && (!response || response.status < 300)) this.#hooks.onMedia(isHold(offer))
  }

  #noteDeath(to: Leg, method: string, response: SipResponse | undefined): void {
    const status = response?.status
    if (status === 481 || (status === 408 && (method === 'INVITE' || method === 'UPDATE')))
      this.#hooks.onDead(to)
  }
}

/** RFC 3264 §8.4, and the older way of a null address. */
const isHold = (sdp: string): boolean =>
  sdp.includes('a=sendonly') || sdp.includes('a=inactive') || sdp.includes('c=IN IP4 0.0.0.0')
