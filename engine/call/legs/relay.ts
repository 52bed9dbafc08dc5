/** Requests inside an answered call: what passes to the other leg, and what is answered here. */
import type { Deadline, Deadlines } from '../deadlines.ts'
import type { Acknowledge, Answer, Headers, SipRequest, SipResponse } from '../srf/drachtio.ts'
import { type HeaderFilter, withoutClaims } from '../sip/headers.ts'
import type { Leg } from './leg.ts'
import { isHold } from '../sdp/streams.ts'
import { ALLOW, respond } from '../sip/answers.ts'

export interface RelayHooks {
  /** A media offer was accepted: whether one of the two holds the other now. */
  readonly onMedia: (isHeld: boolean) => void
  /** The leg's peer does not know the dialog, or does not answer (RFC 3261 §12.2.1.2). */
  readonly onDead: (leg: Leg) => void
  /** The leg's peer wants somebody else to talk to the other one (RFC 3515). */
  readonly onRefer: (leg: Leg, request: SipRequest, answer: Answer) => void
}

export interface RelayDeps {
  readonly filter: HeaderFilter
  readonly deadlines: Deadlines
  /** Milliseconds UTC. */
  readonly now: () => number
}

/**
 * A drachtio-server tells of a request in a dialog the first answer alone: after a provisional one the
 * final one is lost. Longer than the embedded server waits for it (RFC 3261 §16.6, timer C).
 */
const MAX_RINGING_MS = 200_000

/** A request of one leg's peer on its way to the other's. */
interface Passing {
  readonly from: Leg
  readonly to: Leg
  readonly method: string
}

export class Relay {
  readonly #deps: RelayDeps
  readonly #hooks: RelayHooks
  readonly #a: Leg
  readonly #b: Leg
  /** Whose re-INVITE is under way: there is at most one in a call, in either direction. */
  #inviting: Leg | undefined
  /** While the re-INVITE that is under way rings. */
  #patience: Deadline | undefined
  #isPaused = false
  /** Waits until no re-INVITE is under way. */
  #onIdle: (() => void) | undefined

  constructor(a: Leg, b: Leg, deps: RelayDeps, hooks: RelayHooks) {
    this.#a = a
    this.#b = b
    this.#deps = deps
    this.#hooks = hooks
  }

  /** Requests of either leg go to the other from now on. */
  start(): void {
    this.#a.whenRequested((request, answer) => this.#relay(this.#a, this.#b, request, answer))
    this.#b.whenRequested((request, answer) => this.#relay(this.#b, this.#a, request, answer))
  }

  /** Requests of both are refused: at least one of them has nobody to talk to any more. */
  stop(): void {
    this.#a.refuseRequests()
    this.#b.refuseRequests()
  }

  /** No re-INVITE begins from now on; `act` is called when none is under way any more. */
  pause(act: () => void): void {
    this.#isPaused = true
    if (this.#inviting) this.#onIdle = act
    else act()
  }

  resume(): void {
    this.#isPaused = false
    this.#onIdle = undefined
  }

  #relay(from: Leg, to: Leg, request: SipRequest, answer: Answer): void {
    switch (request.method) {
      case 'INVITE':
        return this.#reinvite(from, to, request, answer)
      case 'UPDATE':
        if (isBareRefresh(request)) return respond(answer, 200)
        return this.#pass(from, to, request, answer)
      case 'INFO':
      case 'MESSAGE':
      case 'NOTIFY':
        return this.#pass(from, to, request, answer)
      case 'REFER':
        return this.#hooks.onRefer(from, request, answer)
      case 'OPTIONS':
        return respond(answer, 200, undefined, { headers: { Allow: ALLOW } })
      case 'PRACK':
        return respond(answer, 200)
      default:
        return respond(answer, 405, undefined, { headers: { Allow: ALLOW } })
    }
  }

  #passed(from: Leg, request: SipRequest): Headers {
    const passed = this.#deps.filter.inDialog(request.headers)
    return from.isPhone ? withoutClaims(passed) : passed
  }

  #pass(from: Leg, to: Leg, request: SipRequest, answer: Answer): void {
    const { method, body } = request
    const passing = { from, to, method }
    const headers = this.#passed(from, request)
    const told = method === 'UPDATE' ? to.tell(body) : body || undefined
    to.dialog.request({ method, headers, body: told }, (error, response) => {
      if (response && response.status < 200) return
      this.#answer(passing, answer, error, response)
      if (method === 'UPDATE') this.#noteMedia(passing, body, response)
      this.#noteDeath(to, method, response)
    })
  }

  /** RFC 3261 §14: never two at once; a re-INVITE without offer is acknowledged end to end. */
  #reinvite(from: Leg, to: Leg, request: SipRequest, answer: Answer): void {
    if (this.#inviting === from)
      return respond(answer, 500, undefined, { headers: { 'Retry-After': '1' } })
    if (this.#inviting || this.#isPaused || !to.isAcknowledged) return respond(answer, 491)
    this.#inviting = from
    const passing = { from, to, method: 'INVITE' }
    const offer = request.body || undefined
    const headers = this.#passed(from, request)
    const options = { method: 'INVITE', headers, body: to.tell(offer), noAck: offer === undefined }
    // Not `dialog.modify`: one refused re-INVITE blocks it for the rest of the call.
    let isGivenUp = false
    const giveUp = (): void => {
      isGivenUp = true
      this.#answer(passing, answer, undefined, undefined)
      this.#invited()
    }
    to.dialog.request(options, (error, response, acknowledge) => {
      if (isGivenUp) return
      if (response && response.status < 200) return this.#waitFor(giveUp)
      this.#answer(passing, answer, error, response)
      this.#noteMedia(passing, offer, response)
      this.#noteDeath(to, 'INVITE', response)
      if (acknowledge) this.#awaitAnswer(passing, acknowledge)
      else this.#invited()
    })
  }

  #waitFor(giveUp: () => void): void {
    const { deadlines, now } = this.#deps
    deadlines.cancel(this.#patience)
    this.#patience = deadlines.at(now() + MAX_RINGING_MS, giveUp)
  }

  /** The offer was in the 200, so the answer is in the ACK. */
  #awaitAnswer(passing: Passing, acknowledge: Acknowledge): void {
    const { from, to } = passing
    from.whenAcknowledged((ack) => {
      acknowledge({ body: to.tell(ack.body) })
      this.#noteMedia(passing, ack.body, undefined)
      this.#invited()
    })
  }

  #invited(): void {
    this.#deps.deadlines.cancel(this.#patience)
    this.#inviting = undefined
    const act = this.#onIdle
    this.#onIdle = undefined
    act?.()
  }

  #answer(
    { from, to, method }: Passing,
    answer: Answer,
    error: unknown,
    response: SipResponse | undefined,
  ): void {
    if (error || !response) return respond(answer, to.isOver ? 481 : 500)
    const passed = this.#deps.filter.inDialogAnswer(response.headers)
    const headers = to.isPhone ? withoutClaims(passed) : passed
    const { status, reason } = response
    const describes = status < 300 && (method === 'INVITE' || method === 'UPDATE')
    const body = describes ? from.tell(response.body) : response.body || undefined
    return respond(answer, status, reason, { headers, body })
  }

  /** `from` describes itself in `described`: its offer, or its answer to the one in `response`. */
  #noteMedia(
    { from, to }: Passing,
    described: string | undefined,
    response: SipResponse | undefined,
  ): void {
    if (response && response.status >= 300) return
    if (response?.body) to.media = response.body
    if (!described) return
    from.media = described
    this.#hooks.onMedia(isHold(from.media) || isHold(to.media))
  }

  #noteDeath(to: Leg, method: string, response: SipResponse | undefined): void {
    const status = response?.status
    if (status === 481 || (status === 408 && (method === 'INVITE' || method === 'UPDATE')))
      this.#hooks.onDead(to)
  }
}

/** RFC 4028 §7.4: a sign of life between that peer and us; the other one may not even take UPDATE. */
const isBareRefresh = ({ headers, body }: SipRequest): boolean =>
  !body &&
  headers['session-expires'] !== undefined &&
  headers['p-asserted-identity'] === undefined &&
  headers['remote-party-id'] === undefined
