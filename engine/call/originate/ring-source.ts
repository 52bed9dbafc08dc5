/**
 * The first leg of click-to-call: the phones of the source extension ring at the same time, and the
 * first that is picked up waits for the called side.
 */
import type { BridgeDeps } from '../bridge.ts'
import type { Call } from '../call.ts'
import type { Announced, PhoneCandidate } from '../dialing/outgoing-invite.ts'
import { inviteFor } from '../dialing/outgoing-invite.ts'
import { withheld } from '../dialing/withheld.ts'
import { cause, reasonHeader, type End } from '../cdr/end-reason.ts'
import type { Headers, SipRequest, SipResponse } from '../srf/drachtio.ts'
import { peerAddress } from '../sip/peer-address.ts'
import type { UacEnd } from '../srf/srf-client.ts'
import { silentOffer } from '../sdp/third-party.ts'
import type { PickedUp } from './waiting-phone.ts'

type SourceDeps = Pick<BridgeDeps, 'client' | 'filter' | 'deadlines' | 'now' | 'gatewayBehind'>

export type SourceEnd = PickedUp | { readonly kind: 'over'; readonly end: End }

const givenUp: Headers = { Reason: reasonHeader({ by: 'system', cause: cause.normal }) }
const answeredElsewhere: Headers = { Reason: 'SIP;cause=200;text="Call completed elsewhere"' }

/** They want an offer: RFC 3261 §13.2.1 lets nobody refuse for that, but some do. */
const wantsOffer = (status: number): boolean =>
  status === 400 || status === 415 || status === 488 || status === 500 || status === 606

export function ringSource(
  phones: readonly PhoneCandidate[],
  announced: Announced,
  ringMs: number,
  call: Call,
  deps: SourceDeps,
): Promise<SourceEnd> {
  return new Promise((resolve) => {
    let left = phones.length
    let refusal: SipResponse | undefined
    const settle = (result: SourceEnd, headers: Headers, winner?: Ringing): void => {
      deps.deadlines.cancel(deadline)
      forgetStop()
      for (const phone of ringing) if (phone !== winner) phone.abandon(headers)
      resolve(result)
    }
    const ringing = phones.map(
      (phone) =>
        new Ringing(phone, announced, call, deps, {
          onPickedUp: (picked, winner) => settle(picked, answeredElsewhere, winner),
          onRefused: (response) => {
            refusal = response ?? refusal
            left -= 1
            // RFC 3261 §16.7 step 5: 6xx speaks for all phones.
            if (left === 0 || (response !== undefined && response.status >= 600))
              settle({ kind: 'over', end: endOf(refusal) }, givenUp)
          },
        }),
    )
    const deadline = deps.deadlines.at(deps.now() + ringMs, () =>
      settle({ kind: 'over', end: { kind: 'no-answer' } }, givenUp),
    )
    const forgetStop = call.whenStopped((end) =>
      settle({ kind: 'over', end }, end.kind === 'cut' ? { Reason: reasonHeader(end) } : givenUp),
    )
    for (const phone of ringing) phone.start(undefined)
  })
}

function endOf(refusal: SipResponse | undefined): End {
  const status = refusal === undefined || refusal.status < 400 ? 480 : refusal.status
  return { kind: 'rejected', status, reason: refusal?.reason ?? '', headers: {} }
}

interface RingingHooks {
  readonly onPickedUp: (picked: PickedUp, phone: Ringing) => void
  /** Undefined: it could not be reached, or could not be understood. */
  readonly onRefused: (response: SipResponse | undefined) => void
}

/** One phone that rings. */
class Ringing {
  readonly #phone: PhoneCandidate
  readonly #announced: Announced
  readonly #call: Call
  readonly #deps: SourceDeps
  readonly #hooks: RingingHooks
  #sent: SipRequest | undefined
  #isOver = false
  #farewell: Headers | undefined

  constructor(
    phone: PhoneCandidate,
    announced: Announced,
    call: Call,
    deps: SourceDeps,
    hooks: RingingHooks,
  ) {
    this.#phone = phone
    this.#announced = announced
    this.#call = call
    this.#deps = deps
    this.#hooks = hooks
  }

  start(body: string | undefined): void {
    const { client, filter } = this.#deps
    const { uri, nextHop, headers, credentials } = inviteFor(
      this.#phone,
      this.#announced,
      filter,
      true,
    )
    const isOffering = body !== undefined
    if (withheld(this.#phone, { uri, nextHop }, this.#announced, this.#deps)) {
      this.#isOver = true
      return this.#hooks.onRefused(undefined)
    }
    client.invite(
      { uri, nextHop, headers, body, credentials },
      {
        onSent: (request) => {
          this.#sent = request
          this.#call.legs.push(request.headers['call-id'] ?? '')
          if (this.#farewell) client.cancel(request, this.#farewell)
        },
        onProvisional: ({ status }) => {
          if (status > 100 && !this.#isOver && this.#call.state === 'DIALING')
            this.#call.state = 'RINGING'
        },
        onEnd: (end) => this.#onEnd(end, isOffering),
      },
    )
  }

  /** Stops its ringing; one that is picked up at this very moment is put down. */
  abandon(headers: Headers): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#farewell = headers
    if (this.#sent) this.#deps.client.cancel(this.#sent, headers)
  }

  #onEnd(end: UacEnd, wasOffering: boolean): void {
    if (this.#isOver) return this.#takeBack(end)
    if (end.kind === 'rejected' && !wasOffering && wantsOffer(end.response.status))
      return this.start(silentOffer)
    this.#isOver = true
    if (end.kind === 'offered' || end.kind === 'answered') {
      const { res } = end.kind === 'offered' ? end.offer : end.dialog
      this.#call.peers.caller = peerAddress(res)
      this.#call.near = res.agent
      return this.#hooks.onPickedUp(end, this)
    }
    if (end.kind === 'unusable') this.#deps.client.release(end.response)
    return this.#hooks.onRefused(end.kind === 'rejected' ? end.response : undefined)
  }

  #takeBack(end: UacEnd): void {
    if (end.kind === 'answered')
      end.dialog.destroy({ headers: this.#farewell ?? {} }, () => undefined)
    else if (end.kind === 'offered') void end.offer.destroy()
    else if (end.kind === 'unusable') this.#deps.client.release(end.response)
  }
}
