/**
 * The legs of an answered call. Whatever ends it (BYE of either side, both at once, an empty wallet,
 * an operator, a lost ACK) ends it once, and its legs get their BYE. After a transfer a call may have
 * one leg only, which talks to one of another call: the two calls then end together.
 */
import type { Call } from '../call.ts'
import type { End } from '../cdr/end-reason.ts'
import { cause, reasonHeader } from '../cdr/end-reason.ts'
import type { Answer, Headers, SipRequest } from '../srf/drachtio.ts'
import { Leg } from './leg.ts'
import { Relay, type RelayDeps } from './relay.ts'
import { isHold } from '../sdp/streams.ts'
import type { SrfDialog } from '../srf/drachtio.ts'

const timedOut: End = { kind: 'cut', by: 'system', cause: cause.timer, code: null }

export type Side = 'caller' | 'callee'

export const otherSide = (side: Side): Side => (side === 'caller' ? 'callee' : 'caller')

/** One of those who talk. */
export interface Participant {
  readonly conversation: Conversation
  readonly side: Side
  readonly leg: Leg
}

/** One transfer at a time. */
export const isTransferring = (...participants: readonly Participant[]): boolean =>
  participants.some(({ conversation: { call } }) => call.isTransferring)

export interface ConversationDeps extends RelayDeps {
  /** A participant wants somebody else to talk to whom he talks to now. */
  readonly onRefer: (participant: Participant, request: SipRequest, answer: Answer) => void
}

export class Conversation {
  /** Resolves as soon as the first leg is known to be over. */
  readonly ended: Promise<End>
  readonly call: Call
  readonly #deps: ConversationDeps
  readonly #legs: { caller?: Leg; callee?: Leg } = {}
  /** Ends the called side while it has no leg yet (an offer that was not acknowledged). */
  #abandonCallee: (() => void) | undefined
  #farewell: Headers = {}
  #relay: Relay | undefined
  /** Whose leg ours talks to; undefined: our legs talk to each other. */
  #peer: Conversation | undefined
  /** Those who were transferred away, until they hang up. */
  #departing: Leg[] | undefined
  #excused: { readonly side: Side; readonly onLeft: () => void } | undefined

  constructor(call: Call, deps: ConversationDeps, abandonCallee?: () => void) {
    this.call = call
    this.#deps = deps
    this.#abandonCallee = abandonCallee
    call.conversation = this
    this.ended = new Promise((resolve) => {
      call.whenStopped((end) => {
        this.#hangUp(end)
        resolve(end)
      })
    })
  }

  /** Two who talked to others talk to each other from now on; those others are out of their calls. */
  static connect(one: Participant, other: Participant): void {
    for (const { conversation, side, leg } of [one, other]) {
      conversation.#leavePartner(side)
      leg.keepOrigin()
    }
    one.conversation.#peer = other.conversation
    other.conversation.#peer = one.conversation
    relayBetween(one, other, one.conversation.#deps)
    const isHeld = isHold(one.leg.media) || isHold(other.leg.media)
    for (const { conversation } of [one, other]) {
      conversation.call.state = isHeld ? 'HELD' : 'ACTIVE'
      if (conversation.call.stopped) conversation.#endPeer(conversation.call.stopped)
    }
  }

  /** A side has its dialog. To be called in the callback that brings it. */
  join(side: Side, dialog: SrfDialog, isAcknowledged: boolean): Leg {
    const leg: Leg = new Leg(dialog, isAcknowledged, (request) => this.#onBye(side, leg, request))
    const { origin, destination } = this.call
    leg.isPhone = (side === 'caller' ? origin : destination)?.kind === 'extension'
    this.#legs[side] = leg
    if (side === 'callee') this.#abandonCallee = undefined
    const { caller, callee } = this.#legs
    if (this.call.stopped) leg.hangUp(this.#farewell)
    else if (leg.isOver) this.call.stop({ kind: 'hung-up', by: side })
    else if (caller && callee)
      relayBetween(
        { conversation: this, side: 'caller', leg: caller },
        { conversation: this, side: 'callee', leg: callee },
        this.#deps,
      )
    return leg
  }

  /** Undefined: this side is not there, or not any more. */
  participant(side: Side): Participant | undefined {
    const leg = this.#legs[side]
    return leg && { conversation: this, side, leg }
  }

  /** Those who are there. */
  participants(): readonly Participant[] {
    return [this.participant('caller') ?? [], this.participant('callee') ?? []].flat()
  }

  /** Whom this side talks to. */
  partnerOf(side: Side): Participant | undefined {
    const peer = this.#peer
    if (peer === undefined) return this.participant(otherSide(side))
    return peer.participants()[0]
  }

  /** No re-INVITE passes from now on; `act` is called when none is under way any more. */
  pause(act: () => void): void {
    if (this.#relay) this.#relay.pause(act)
    else act()
  }

  resume(): void {
    this.#relay?.resume()
  }

  /** This side may go: its BYE ends its own part only, and `onLeft` hears of it. */
  excuse(side: Side, onLeft: () => void): void {
    this.#excused = { side, onLeft }
  }

  /** A BYE ends the call again. */
  excuseNobody(): void {
    this.#excused = undefined
  }

  set relay(relay: Relay) {
    this.#relay?.stop()
    this.#relay = relay
  }

  #onBye(side: Side, leg: Leg, request: SipRequest): void {
    // Somebody who is out of the call already.
    if (this.#legs[side] !== leg) return
    if (this.#excused?.side === side) return this.#leave(side, this.#excused.onLeft)
    // The server's own: no ACK, or a session that nobody refreshed.
    const isOurs = request.source === 'application'
    if (!isOurs) this.#farewell = this.#deps.filter.bye(request.headers)
    this.call.stop(isOurs ? timedOut : { kind: 'hung-up', by: side })
  }

  #leave(side: Side, onLeft: () => void): void {
    this.#relay?.stop()
    this.#excused = undefined
    this.#unlink()
    this.#remove(side)
    onLeft()
  }

  /** Whom this side talked to is out of his call, and will get or send a BYE. */
  #leavePartner(side: Side): void {
    const partner = this.partnerOf(side)
    this.#relay?.stop()
    this.#relay = undefined
    this.#unlink()
    if (partner === undefined) return
    const { conversation, leg } = partner
    conversation.#excused = undefined
    conversation.#departing = [...(conversation.#departing ?? []), leg]
    conversation.#remove(partner.side)
  }

  /** A call without legs is over. */
  #remove(side: Side): void {
    delete this.#legs[side]
    if (!this.#legs.caller && !this.#legs.callee) this.call.stop({ kind: 'hung-up', by: side })
  }

  #unlink(): void {
    if (this.#peer) this.#peer.#peer = undefined
    this.#peer = undefined
  }

  #hangUp(end: End): void {
    if (end.kind === 'cut') this.#farewell = { Reason: reasonHeader(end) }
    this.#legs.caller?.hangUp(this.#farewell)
    this.#legs.callee?.hangUp(this.#farewell)
    for (const leg of this.#departing ?? []) leg.hangUp(this.#farewell)
    this.#abandonCallee?.()
    this.#endPeer(end)
  }

  /** In the other call, the side that our leg stands for has done what was done here. */
  #endPeer(end: End): void {
    const peer = this.#peer
    if (peer === undefined) return
    this.#unlink()
    peer.#farewell = this.#farewell
    const by = peer.#legs.caller ? 'callee' : 'caller'
    peer.call.stop(end.kind === 'cut' ? { ...end, code: null } : { kind: 'hung-up', by })
  }
}

function relayBetween(a: Participant, b: Participant, deps: ConversationDeps): void {
  const conversations = [a.conversation, b.conversation]
  const of = (leg: Leg): Participant => (leg === a.leg ? a : b)
  const relay = new Relay(a.leg, b.leg, deps, {
    onMedia: (isHeld) => {
      for (const { call } of conversations) call.state = isHeld ? 'HELD' : 'ACTIVE'
    },
    onDead: (leg) => of(leg).conversation.call.stop(timedOut),
    onRefer: (leg, request, answer) => deps.onRefer(of(leg), request, answer),
  })
  a.conversation.relay = relay
  if (b.conversation !== a.conversation) b.conversation.relay = relay
  relay.start()
}
