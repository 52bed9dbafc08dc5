/**
 * Stands between call control and its legs: passes an SDP from one leg to the other through a relay
 * first, if their media needs one. Commands for a leg wait in their order until the relay has
 * answered.
 */
import { callUuidOf } from '../../call/call-machine/leg.ts'
import { refused } from '../../call/cdr/end-reason.ts'
import type { GateEvent, InviteFacts, Legs } from '../../call/legs.ts'
import type { DigestLogin, InviteToSend, LegCommand, LegEventData } from '../../call/signalling.ts'
import type { ReceivedRequest } from '../../call/user-agent/received-request.ts'
import type { SavedLeg } from '../../call/user-agent/leg-signalling.ts'
import { ReleasingMap } from '../../../schema/sip/index.ts'
import { digitIn, InfoDigits, playOf, type Digit } from './digits.ts'
import { type MediaLeg, newMediaLeg, otherLeg, type RelaySession } from './session.ts'
import type { GateDeps } from './sessions.ts'
import {
  descriptionIn,
  hasBody,
  isDescribing,
  isDescription,
  type Describing,
  type MediaRefusal,
  mismatched,
  relayUnavailable,
  roleOf,
  silenced,
  unreadable,
  withDescription,
} from './offer-answer.ts'
import { Offers, type Outlet } from './offers.ts'
import { type PartyFacts, withPeerAddress } from '../parties.ts'
import { nextFor, restoreMedia, saveMedia } from './saved-media.ts'

type ReceivedInfo = Extract<LegEventData, { readonly type: 'request' }>

/** The most commands that may wait for a leg; further ones fail. */
const MAX_STEPS = 200

/** Whether the command makes all waiting ones obsolete. */
const endsAll = (command: LegCommand): boolean =>
  command.type === 'bye' || (command.type === 'respond' && command.status >= 200)

export class MediaGate implements Legs {
  readonly #deps: GateDeps
  readonly #inner: Legs
  readonly #emit: (event: GateEvent) => void
  readonly #legs = new ReleasingMap<string, MediaLeg>()
  readonly #offers: Offers
  readonly digits: InfoDigits

  constructor(
    deps: GateDeps,
    legs: (emit: (event: LegEventData) => void) => Legs,
    emit: (event: GateEvent) => void,
    onFault: (legId: string, error: unknown) => void,
  ) {
    this.#deps = deps
    this.#emit = emit
    this.#offers = new Offers({ ...deps, legs: this.#legs, onFault })
    this.digits = new InfoDigits({
      ...deps,
      legs: this.#legs,
      perform: (command) => this.#inner.perform(command),
      takesInfo: (leg) => this.#offers.takesInfo(leg),
    })
    this.#inner = legs((event) => this.#onLegEvent(event))
  }

  #add(legId: string, facts: PartyFacts): MediaLeg {
    const leg = newMediaLeg(legId, facts)
    this.#legs.set(legId, leg)
    return leg
  }

  receive(legId: string, request: ReceivedRequest, isOtherInstance?: boolean): void {
    const leg = this.#add(legId, this.#deps.parties.caller(request, isOtherInstance))
    leg.offer = request.body
    leg.hasOffered = request.body !== ''
    this.#inner.receive(legId, request)
  }

  invite(legId: string, invite: InviteToSend, near: string | undefined, about: InviteFacts): void {
    const leg = this.#add(legId, this.#deps.parties.callee(about.callee))
    const { body } = invite
    const send = (sdp: string | undefined): void =>
      this.#inner.invite(legId, sdp === body ? invite : { ...invite, body: sdp }, near, about)
    const { sdpOwner } = about
    if (sdpOwner === undefined || !body) return send(body)
    if (!isDescription(body))
      return this.#offers.mustRelay(leg, sdpOwner) ? this.#withhold(legId, unreadable) : send(body)
    leg.offeredIn = 'invite'
    leg.heldSince = this.#deps.now()
    const release = (act: () => void): void => {
      leg.heldMs = this.#deps.now() - (leg.heldSince ?? 0)
      leg.heldSince = undefined
      if (this.#deps.calls.leg(legId)?.state === 'calling') return act()
      // The attempt was given up in the meantime.
      return this.#emit({ type: 'failed', legId, reason: 'given up' })
    }
    return this.#offers.offer(leg, sdpOwner, body, {
      pass: (sdp) => release(() => send(nextFor(leg, sdp))),
      fail: (refusal) =>
        release(() => (refusal ? this.#withhold(legId, refusal) : send(nextFor(leg, body)))),
      refuse: () => undefined,
      silence: () => release(() => send(nextFor(leg, body))),
      drop: () => undefined,
    })
  }

  /** Another destination may need no relay. */
  #withhold(legId: string, { status, reason, code, why }: MediaRefusal): void {
    this.#emit({ type: 'withheld', legId, why, end: refused(status, reason, code) })
  }

  isHeld(legId: string): boolean {
    return (this.#legs.get(legId)?.steps.length ?? 0) > 0
  }

  perform(command: LegCommand): void {
    const leg = this.#legs.get(command.legId)
    if (leg === undefined) return this.#inner.perform(command)
    if (endsAll(command)) this.#drop(leg)
    const sdp = descriptionIn(command)
    if (!isDescribing(command) || command.sdpOwner === undefined) return this.#next(leg, command)
    const role = roleOf(command, leg)
    if (sdp === undefined)
      return hasBody(command) && this.#offers.mustRelay(leg, command.sdpOwner)
        ? this.#fail(leg, command, role === 'offer', unreadable)
        : this.#next(leg, command)
    const outlet: Outlet = {
      pass: (description) => this.#perform(leg, withDescription(command, description)),
      fail: (refusal) => {
        if (refusal) this.#fail(leg, command, role === 'offer', refusal)
        else if (role === 'answer') this.#fail(leg, command, false, relayUnavailable)
        else this.#perform(leg, command)
      },
      refuse: () => this.#fail(leg, command, false, mismatched),
      silence: () => {
        leg.hasOwnVersions = true
        this.#perform(leg, silenced(command, sdp))
      },
      drop: () => this.#dropped(leg, command),
    }
    if (role === 'answer') return this.#offers.answer(leg, command.sdpOwner, sdp, outlet)
    leg.offeredIn = command.type === 'request' ? command.transactionId : 'ack'
    return this.#offers.offer(leg, command.sdpOwner, sdp, outlet)
  }

  /** Performs a command in its turn, without a relay. */
  #next(leg: MediaLeg, command: LegCommand): void {
    // A response waits for nothing: an offer of ours that crosses the peer's must not leave first.
    if (leg.steps.length === 0 || command.type === 'answerRequest')
      return this.#perform(leg, command)
    if (leg.steps.length >= MAX_STEPS && command.type === 'request')
      return this.#dropped(leg, command)
    const run = (): void => this.#perform(leg, command)
    const isOwed = command.type !== 'request' && command.type !== 'ask'
    const drop = (): void => (isOwed ? run() : this.#dropped(leg, command))
    return void leg.steps.push({ isReady: true, run, drop })
  }

  #perform(leg: MediaLeg, command: LegCommand): void {
    const { legId } = command
    // The call has ended while its answer waited.
    if (command.type === 'accept' && this.#deps.calls.leg(legId)?.state === 'closing') {
      this.#inner.perform({ type: 'respond', legId, status: 487, headers: {} })
      return this.#emit({ type: 'gone', legId })
    }
    const sdp = descriptionIn(command)
    if (sdp === undefined) return this.#inner.perform(command)
    const sent = nextFor(leg, sdp)
    return this.#inner.perform(sent === sdp ? command : withDescription(command, sent))
  }

  /** The SDP must not be sent. */
  #fail(
    leg: MediaLeg,
    command: Describing,
    isOffer: boolean,
    { status, reason, code }: MediaRefusal,
  ): void {
    const { legId } = command
    const refusal = { status, reason }
    switch (command.type) {
      case 'accept':
        this.#emit({
          type: 'stop',
          callUuid: callUuidOf(legId),
          end: refused(status, reason, code),
        })
        this.#inner.perform({ type: 'respond', legId, ...refusal, headers: {} })
        return this.#emit({ type: 'gone', legId })
      case 'respond':
        return this.#inner.perform(withDescription(command, undefined))
      case 'request': {
        const { transactionId } = command
        const response = { ...refusal, headers: {}, body: undefined, peer: '' }
        return this.#emit({ type: 'response', legId, transactionId, response, owesAck: false })
      }
      case 'answerRequest':
        this.#inner.perform({
          type: 'answerRequest',
          legId,
          requestId: command.requestId,
          ...refusal,
          headers: {},
        })
        // The other leg's offer waits for an answer: the last SDP of this leg stands.
        if (isOffer) this.#emit({ type: 'ack', legId, body: this.#deps.calls.leg(legId)?.media })
        return undefined
      default:
        leg.hasOwnVersions = true
        return this.#perform(leg, silenced(command, leg.offer))
    }
  }

  /** The leg is over, and the command was not performed. */
  #dropped(leg: MediaLeg, command: LegCommand): void {
    const { legId } = command
    if (command.type === 'request' || command.type === 'ask') {
      const { transactionId } = command
      this.#emit({ type: 'requestFailed', legId, transactionId, isUnknownDialog: true })
    } else if (command.type === 'answerRequest')
      this.#inner.perform({
        type: 'answerRequest',
        legId,
        requestId: command.requestId,
        status: 487,
      })
    else if (command.type === 'acknowledgeReinvite')
      this.#perform(leg, silenced(command, leg.offer))
  }

  #drop(leg: MediaLeg): void {
    for (const step of leg.steps.splice(0)) step.drop()
  }

  forget(legId: string): void {
    const leg = this.#legs.get(legId)
    this.digits.forget(legId)
    if (leg) {
      this.#drop(leg)
      this.#legs.delete(legId)
      this.#offers.forget(leg)
    }
    this.#inner.forget(legId)
  }

  answerBye(legId: string): void {
    this.#inner.answerBye(legId)
  }

  save(legId: string): SavedLeg | undefined {
    const leg = this.#legs.get(legId)
    if (leg && leg.steps.length > 0) return undefined
    const saved = this.#inner.save(legId)
    return saved && leg ? { ...saved, relayed: saveMedia(leg) } : saved
  }

  restore(legId: string, saved: SavedLeg, credentials: DigestLogin | undefined): boolean {
    const leg = restoreMedia(legId, saved.relayed, this.#deps)
    this.#legs.set(legId, leg)
    leg.offer = saved.media ?? ''
    leg.hasOffered = saved.invite !== undefined && leg.offer !== ''
    const isRestored = this.#inner.restore(legId, saved, credentials)
    if (leg.current) this.#offers.settle(leg.current)
    return isRestored
  }

  #onLegEvent(event: LegEventData): void {
    if (this.digits.isAnswer(event)) return
    const leg = this.#legs.get(event.legId)
    if (leg) this.#note(leg, event)
    if (leg && event.type === 'request' && this.#isPlayed(leg, event)) return
    if (leg && event.type === 'sent' && leg.heldMs > 0)
      return this.#emit({ ...event, heldMs: leg.heldMs })
    if (leg?.current && event.type === 'accepted') this.#emit({ ...event, isRelayed: true })
    else this.#emit(event)
    if (leg?.current && (event.type === 'accepted' || event.type === 'ack'))
      this.#offers.settle(leg.current)
    return undefined
  }

  /**
   * A digit in INFO that the other party takes in its RTP; where the relay cannot play it, it
   * passes as it is.
   */
  #isPlayed(leg: MediaLeg, event: ReceivedInfo): boolean {
    const digit = event.method === 'INFO' ? digitIn(event.headers, event.body) : undefined
    const { current: session } = leg
    const other = session && this.#legs.get(otherLeg(session, leg.id))
    if (digit === undefined || session === undefined || session.isClosed || other === undefined)
      return false
    if (!this.#offers.takesEvents(leg, other)) return false
    this.#play(session, digit, event)
    return true
  }

  #play(session: RelaySession, digit: Digit, event: ReceivedInfo): void {
    const { legId, requestId } = event
    this.#deps.sessions.askNow(session, playOf(session, legId, digit), (answer) => {
      if (!this.#legs.has(legId)) return
      if (answer.kind !== 'ok') this.#emit(event)
      else this.#inner.perform({ type: 'answerRequest', legId, requestId, status: 200 })
    })
  }

  /** Passes an answer to the relay at once, before call control handles the event. */
  #note(leg: MediaLeg, event: LegEventData): void {
    switch (event.type) {
      case 'provisional':
      case 'answered': {
        const { body, peer } = event.response
        leg.facts = withPeerAddress(leg.facts, peer)
        if (leg.offered === undefined || leg.offeredIn !== 'invite') return
        return this.#offers.answered(leg, body, event.type === 'answered')
      }
      case 'redescribed':
        // The other side keeps its place at the relay, and its answer.
        if (leg.offered === undefined || leg.offeredIn !== 'invite') return undefined
        return this.#offers.answered(leg, event.sdp, false)
      case 'offered':
        leg.facts = withPeerAddress(leg.facts, event.response.peer)
        leg.offer = event.offer
        return undefined
      case 'request':
        if (event.method !== 'INVITE' && event.method !== 'UPDATE') return undefined
        if (event.body) leg.offer = event.body
        else if (event.method === 'INVITE') leg.lateOffer = event.requestId
        return undefined
      case 'response':
        if (event.owesAck && event.response.body) leg.offer = event.response.body
        if (event.transactionId === leg.offeredIn) this.#offers.responded(leg, event.response)
        return undefined
      case 'requestFailed':
        if (event.transactionId === leg.offeredIn) this.#offers.refused(leg)
        return undefined
      case 'ack':
        if (leg.offeredIn === 'ack') this.#offers.answered(leg, event.body, true)
        return undefined
      default:
        return undefined
    }
  }
}
