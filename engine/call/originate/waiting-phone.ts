/**
 * The phone of click-to-call after somebody has picked it up: the calling side of a call whose
 * called side has still to answer. RFC 3725: its 200 brings an offer, which goes to the called side,
 * whose answer goes back in the ACK (flow I). When that takes long the ACK says that there is no
 * media yet, and a re-INVITE brings it later; so it is too for a phone that would make no offer.
 */
import type { Call } from '../call.ts'
import type { Deadline, Deadlines } from '../deadlines.ts'
import type { Caller } from '../legs/caller.ts'
import { Leg } from '../legs/leg.ts'
import { cause, reasonHeader, type End } from '../cdr/end-reason.ts'
import type { Headers, PendingOffer, SrfDialog } from '../srf/drachtio.ts'
import type { SrfClient } from '../srf/srf-client.ts'
import { asOffer, silentAnswer, silentOffer } from '../sdp/third-party.ts'

/** How the phone was answered: with an offer, or with an answer to `silentOffer`. */
export type PickedUp =
  | { readonly kind: 'offered'; readonly offer: PendingOffer }
  | { readonly kind: 'answered'; readonly dialog: SrfDialog }

export interface WaitingPhoneDeps {
  readonly client: Pick<SrfClient, 'release'>
  readonly deadlines: Deadlines
  /** Milliseconds UTC. */
  readonly now: () => number
}

/**
 * Before its ACK a phone repeats the 200, and its user cannot hang up (RFC 3261 §15): so it does
 * not wait for somebody who has to be called first.
 */
const PATIENCE_MS = 2_000

export class WaitingPhone implements Caller {
  readonly owesAck = false
  readonly keepsOrigin = true
  /** What the called side is offered. */
  readonly offer: string
  readonly #call: Call
  readonly #deps: WaitingPhoneDeps
  /** The unanswered offer; undefined once there is a dialog, or never will be. */
  #pending: PendingOffer | undefined
  readonly #dialog: Promise<SrfDialog | undefined>
  #leg: Leg | undefined
  /** The last description that the phone was given. */
  #heard = ''
  #isTaken = false
  readonly #patience: Deadline | undefined
  #begin: (dialog: SrfDialog | undefined) => void = () => undefined

  constructor(call: Call, picked: PickedUp, deps: WaitingPhoneDeps) {
    this.#call = call
    this.#deps = deps
    call.whenStopped((end) => this.#release(end))
    if (picked.kind === 'answered') {
      this.offer = asOffer(picked.dialog.res.body ?? '')
      this.#heard = silentOffer
      this.#watch(picked.dialog)
      this.#dialog = Promise.resolve(picked.dialog)
      return
    }
    this.offer = picked.offer.sdp
    this.#pending = picked.offer
    this.#dialog = new Promise((resolve) => {
      this.#begin = resolve
    })
    this.#patience = deps.deadlines.at(deps.now() + PATIENCE_MS, () =>
      this.#give(silentAnswer(this.offer)),
    )
  }

  /** Early media of the called side is heard at once: it is the ringing tone. */
  progress({ body }: { readonly body: string | undefined }): void {
    if (body && !this.#call.stopped) this.#give(body)
  }

  accept(
    _client: SrfClient,
    body: string,
    _headers: Headers,
    done: (dialog: SrfDialog | undefined) => void,
  ): void {
    this.#give(body)
    void this.#handOver(done)
  }

  async #handOver(done: (dialog: SrfDialog | undefined) => void): Promise<void> {
    const dialog = await this.#dialog
    this.#isTaken = true
    done(dialog)
  }

  #give(sdp: string): void {
    if (sdp === this.#heard) return
    this.#heard = sdp
    this.#deps.deadlines.cancel(this.#patience)
    const pending = this.#pending
    this.#pending = undefined
    if (pending) void this.#acknowledge(pending, sdp)
    else void this.#reinvite(sdp)
  }

  async #acknowledge(offer: PendingOffer, sdp: string): Promise<void> {
    const dialog = await offer.ack(sdp).catch(() => undefined)
    if (dialog) this.#watch(dialog)
    else {
      this.#deps.client.release(offer.res)
      this.#call.stop(failed)
    }
    this.#begin(dialog)
  }

  /** From here on until the called side has answered; then the conversation watches. */
  #watch(dialog: SrfDialog): void {
    this.#leg = new Leg(dialog, true, () => {
      if (!this.#isTaken) this.#call.stop({ kind: 'cancelled' })
    })
    if (this.#leg.isOver) this.#call.stop({ kind: 'cancelled' })
    else if (this.#call.stopped && !this.#isTaken) this.#leg.hangUp(farewell(this.#call.stopped))
  }

  async #reinvite(sdp: string): Promise<void> {
    const dialog = await this.#dialog
    if (dialog === undefined || this.#call.stopped || sdp !== this.#heard) return
    this.#leg?.keepOrigin()
    const body = this.#leg?.tell(sdp)
    dialog.request({ method: 'INVITE', headers: {}, body }, (_error, response) => {
      // 491: the phone offers something itself at this moment, and so comes to an agreement, too.
      const status = response?.status ?? 500
      if (status >= 300 && status !== 491) this.#call.stop(failed)
    })
  }

  #release(end: End): void {
    this.#deps.deadlines.cancel(this.#patience)
    if (this.#isTaken) return
    const pending = this.#pending
    this.#pending = undefined
    // Its BYE says why, which that of the library for an unacknowledged offer does not.
    if (pending) void this.#acknowledge(pending, silentAnswer(this.offer))
    else this.#leg?.hangUp(farewell(end))
  }
}

const failed: End = { kind: 'cut', by: 'system', cause: cause.failure, code: null }

/** BYE says why, where it was not the called side's own doing. */
const farewell = (end: End): Headers => (end.kind === 'cut' ? { Reason: reasonHeader(end) } : {})
