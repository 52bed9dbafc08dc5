/**
 * The two legs of an answered call. Whatever ends it (BYE of either side, both at once, an empty
 * wallet, an operator, a lost ACK) ends it once, and both legs get their BYE.
 */
import type { Call } from '../call.ts'
import type { End } from '../record/end-reason.ts'
import { cause, reasonHeader } from '../record/end-reason.ts'
import type { Headers, SipRequest } from '../sip/drachtio.ts'
import type { HeaderFilter } from '../sip/headers.ts'
import { Leg } from './leg.ts'
import { Relay } from './relay.ts'
import type { SrfDialog } from '../sip/drachtio.ts'

const timedOut: End = { kind: 'cut', by: 'system', cause: cause.timer, code: null }

export class Conversation {
  /** Resolves as soon as the first leg is known to be over. */
  readonly ended: Promise<End>
  readonly #call: Call
  readonly #filter: HeaderFilter
  readonly #legs: { caller?: Leg; callee?: Leg } = {}
  /** Ends the called side while it has no leg yet (an offer that was not acknowledged). */
  readonly #abandonCallee: (() => void) | undefined
  #farewell: Headers = {}

  constructor(call: Call, filter: HeaderFilter, abandonCallee?: () => void) {
    this.#call = call
    this.#filter = filter
    this.#abandonCallee = abandonCallee
    this.ended = new Promise((resolve) => {
      call.whenStopped((end) => {
        this.#hangUp(end)
        resolve(end)
      })
    })
  }

  /** A side has its dialog. To be called in the callback that brings it. */
  join(side: 'caller' | 'callee', dialog: SrfDialog, isAcknowledged: boolean): Leg {
    const leg = new Leg(dialog, isAcknowledged, (request) => this.#onBye(side, request))
    this.#legs[side] = leg
    const { caller, callee } = this.#legs
    if (this.#call.stopped) leg.hangUp(this.#farewell)
    else if (leg.isOver) this.#call.stop({ kind: 'hung-up', by: side })
    else if (caller && callee) this.#relay(caller, callee)
    return leg
  }

  #relay(caller: Leg, callee: Leg): void {
    const relay = new Relay(caller, callee, this.#filter, {
      onMedia: (isHeld) => {
        this.#call.state = isHeld ? 'HELD' : 'ACTIVE'
      },
      onDead: () => this.#call.stop(timedOut),
    })
    relay.start()
  }

  #onBye(side: 'caller' | 'callee', request: SipRequest): void {
    // The server's own: no ACK, or a session that nobody refreshed.
    const isOurs = request.source === 'application'
    if (!isOurs) this.#farewell = this.#filter.bye(request.headers)
    this.#call.stop(isOurs ? timedOut : { kind: 'hung-up', by: side })
  }

  #hangUp(end: End): void {
    if (end.kind === 'cut') this.#farewell = { Reason: reasonHeader(end) }
    this.#legs.caller?.hangUp(this.#farewell)
    if (this.#legs.callee) this.#legs.callee.hangUp(this.#farewell)
    else this.#abandonCallee?.()
  }
}
