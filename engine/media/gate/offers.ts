/** Offers and answers of pairs of legs on their way through a relay. */
import { callUuidOf } from '../../call/call-machine/leg.ts'
import { areApart } from '../../call/sdp.ts'
import type { SipResponse } from '../../call/signalling.ts'
import { type Description, readDescription, type SdpProfile } from '../description.ts'
import {
  type MediaAnswer,
  type MediaLeg,
  type MediaLegs,
  otherLeg,
  type RelayResult,
  type RelaySession,
  type LegStep,
} from './session.ts'
import type { GateDeps } from './sessions.ts'
import {
  answerOf,
  isDescription,
  type MediaRefusal,
  noCommonVersion,
  offerOf,
  relayUnavailable,
  rewrittenIn,
  unreadable,
} from './offer-answer.ts'
import {
  getsEvents,
  getsInfo,
  convertsDigits,
  offeredCodecs,
  type MediaDecision,
} from '../policy.ts'
import { partyWith } from '../parties.ts'
import { type MediaParty, profileToward } from '../call-media.ts'
import type { NgDictionary } from '../relay/relays.ts'

interface OffersDeps extends GateDeps {
  readonly legs: MediaLegs
  /** A step of a leg has failed: a bug. */
  readonly onFault: (legId: string, error: unknown) => void
}

/** Takes the outcome of an SDP for a leg: exactly one of these functions is called, once. */
export interface Outlet {
  readonly pass: (sdp: string) => void
  /** No relay has it. Undefined: an offer may be sent as it is. */
  readonly fail: (refusal: MediaRefusal | undefined) => void
  /** The SDP is an answer that does not match the offer (RFC 3264 §6.1). */
  readonly refuse: () => void
  /** The party of the SDP has left: no media is to flow. */
  readonly silence: () => void
  /** The leg is over. */
  readonly drop: () => void
}

/** `leg` is to be offered the SDP of `other`. */
interface RelayedOffer {
  readonly leg: MediaLeg
  readonly other: MediaLeg
  readonly sdp: string
  readonly flags: NgDictionary
  readonly finish: (rewritten: RelayResult) => void
}

/** Relays that are tried for one offer. */
const MAX_TRIES = 3
/** A call counts as answered a moment after its legs have their answers. */
const SETTLE_MS = 200

const failed: RelayResult = { kind: 'failed' }

export class Offers {
  readonly #deps: OffersDeps

  constructor(deps: OffersDeps) {
    this.#deps = deps
  }

  /** Offers `leg` the SDP of `sdpOwner`. */
  offer(leg: MediaLeg, sdpOwner: string, sdp: string, outlet: Outlet): void {
    const { sessions, legs } = this.#deps
    const other = legs.get(sdpOwner)
    if (other === undefined) return this.#withoutPeer(leg, sdpOwner, sdp, outlet)
    const known = sessions.between(leg.id, sdpOwner)
    const [offerer, answerer] = [this.#partyWith(other, sdp), this.#party(leg)]
    const decide = (): MediaDecision => this.#decide(leg, other, offerer, answerer)
    if (known === undefined && decide().kind === 'bypass')
      return inTurn(leg, () => outlet.pass(sdp), outlet.drop)
    const step = waitingStep(leg, outlet.drop)
    const flags = offerFlags(offerer, answerer)
    const finish = (rewritten: RelayResult): void => {
      if (rewritten.kind === 'rewritten')
        return this.#finish(leg, step, () => {
          leg.hasOwnVersions = true
          outlet.pass(rewritten.sdp)
        })
      const required = this.#refusalBy(decide(), sdpOwner)
      const refusal = required && rewritten.kind === 'unreadable' ? unreadable : required
      // The two talk to each other without a relay from now on.
      const last = refusal ? undefined : sessions.between(leg.id, sdpOwner)
      if (last) this.#close(last)
      return this.#finish(leg, step, () => outlet.fail(refusal))
    }
    const usable = known?.relay.isAlive === true ? known : undefined
    this.#relay({ leg, other, sdp, flags, finish }, usable, new Set())
  }

  /**
   * The relay has answered: performs this step and those that have waited for it. If the leg is
   * over, nothing happens.
   */
  #finish(leg: MediaLeg, step: LegStep, run: () => void): void {
    step.isReady = true
    step.run = run
    for (let [next] = leg.steps; next?.isReady === true; [next] = leg.steps) {
      leg.steps.shift()
      try {
        next.run()
      } catch (error) {
        this.#deps.onFault(leg.id, error)
      }
    }
  }

  /** The leg that the SDP describes is over. */
  #withoutPeer(leg: MediaLeg, sdpOwner: string, sdp: string, outlet: Outlet): void {
    const act = leg.lostPeer === sdpOwner ? outlet.silence : () => outlet.pass(sdp)
    return inTurn(leg, act, outlet.drop)
  }

  #decide(
    leg: MediaLeg,
    other: MediaLeg,
    offerer: MediaParty,
    answerer: MediaParty,
  ): MediaDecision {
    const callUuids = [callUuidOf(other.id), callUuidOf(leg.id)]
    return this.#deps.parties.decide(offerer, answerer, callUuids)
  }

  /** Undefined: the SDP may be sent without a relay. */
  #refusalBy(decision: MediaDecision, legId: string): MediaRefusal | undefined {
    if (decision.kind === 'bypass' || !decision.isRequired) return undefined
    if (decision.why !== 'ip-version') return relayUnavailable
    const isEmergency = this.#deps.calls.call(callUuidOf(legId))?.isEmergency === true
    return isEmergency ? undefined : noCommonVersion
  }

  /**
   * Whether a body that no relay can read must not pass. In an emergency call it may: the INVITE
   * contains the location of the caller and the SDP (RFC 6442).
   */
  mustRelay(leg: MediaLeg, otherId: string): boolean {
    const { legs, calls } = this.#deps
    const other = legs.get(otherId)
    if (other === undefined || calls.call(callUuidOf(otherId))?.isEmergency === true) return false
    const decision = this.#decide(leg, other, this.#party(other), this.#party(leg))
    return decision.kind === 'relay' && decision.isRequired
  }

  /** Why the answer of `other` must not pass without a relay. */
  #refusalOf(leg: MediaLeg, other: MediaLeg, sdp: string): MediaRefusal | undefined {
    if (this.#deps.calls.call(callUuidOf(other.id))?.isEmergency === true) return undefined
    const described = isDescription(sdp) ? this.#partyWith(other, sdp) : this.#party(other)
    // Call control has no description of a caller before its 200.
    const asked = isDescription(leg.offer) ? this.#partyWith(leg, leg.offer) : this.#party(leg)
    const decision = this.#decide(leg, other, described, asked)
    const refusal = this.#refusalBy(decision, other.id)
    return refusal && !isDescription(sdp) ? unreadable : refusal
  }

  #party(leg: MediaLeg): MediaParty {
    const media = this.#deps.calls.leg(leg.id)?.media
    return this.#partyWith(leg, isDescription(media) ? media : undefined)
  }

  /** Whether a digit that one sends in INFO becomes an event in the RTP of the other. */
  takesEvents(from: MediaLeg, to: MediaLeg): boolean {
    return getsEvents(this.#party(from), this.#party(to))
  }

  /** Whether an event in the RTP of the other party becomes an INFO to this one. */
  takesInfo(leg: MediaLeg): boolean {
    return getsInfo(this.#party(leg))
  }

  #partyWith(leg: MediaLeg, sdp: string | undefined): MediaParty {
    leg.facts = this.#deps.parties.withRules(leg.id, leg.facts)
    const party = partyWith(leg.facts, sdp === undefined ? undefined : descriptionOf(leg, sdp))
    return this.#deps.parties.recordable(party, callUuidOf(leg.id))
  }

  /** Sends the offer to the relay of the two legs, or to another one in a new session. */
  #relay(offer: RelayedOffer, known: RelaySession | undefined, tried: Set<string>): void {
    const { relays, sessions } = this.#deps
    const { leg, other, sdp, flags, finish } = offer
    const relay = known?.relay ?? (tried.size < MAX_TRIES ? relays.pick(tried) : undefined)
    if (relay === undefined) return finish(failed)
    const session = known ?? sessions.begin(relay, [other.id, leg.id])
    leg.offered = session
    session.offer = { from: other.id, sdp }
    session.answer = undefined
    return sessions.ask(session, offerOf(session, other.id, sdp, flags), (answer) => {
      const rewritten = rewrittenIn(answer)
      // Closed: one of the legs is over.
      if (rewritten.kind === 'rewritten' || session.isClosed) return finish(rewritten)
      if (leg.offered === session) leg.offered = undefined
      this.#release(session)
      if (rewritten.kind === 'unreadable') return finish(rewritten)
      return this.#relay(offer, undefined, tried.add(relay.name))
    })
  }

  /** Passes `leg` the answer to its offer: `sdp`, the SDP of `sdpOwner`. */
  answer(leg: MediaLeg, sdpOwner: string, sdp: string, outlet: Outlet): void {
    const { sessions, legs } = this.#deps
    const session = sessions.between(leg.id, sdpOwner)
    const other = legs.get(sdpOwner)
    if (other === undefined) return this.#withoutPeer(leg, sdpOwner, sdp, outlet)
    if (session === undefined) {
      const refusal = this.#refusalOf(leg, other, sdp)
      return inTurn(leg, () => (refusal ? outlet.fail(refusal) : outlet.pass(sdp)), outlet.drop)
    }
    if (session.answer?.from !== sdpOwner) this.#ask(other, session, sdp)
    // The last offer has failed at the relay: the last SDP sent to the leg stands.
    if (session.answer?.from !== sdpOwner) {
      const stand = leg.lastSdpSent === '' ? outlet.silence : () => outlet.pass(leg.lastSdpSent)
      return inTurn(leg, stand, outlet.drop)
    }
    const pass = (outcome: RelayResult): void => {
      if (outcome.kind === 'unreadable') return outlet.fail(unreadable)
      if (outcome.kind === 'failed') return outlet.fail(relayUnavailable)
      if (outcome.kind === 'unacceptable') return outlet.refuse()
      leg.hasOwnVersions = true
      this.#agreed(leg, session)
      return outlet.pass(outcome.sdp)
    }
    const { answer } = session
    if (answer?.outcome) {
      const { outcome } = answer
      return inTurn(leg, () => pass(outcome), outlet.drop)
    }
    const step = waitingStep(leg, outlet.drop)
    return void answer?.waiting.push((outcome) => this.#finish(leg, step, () => pass(outcome)))
  }

  /** The party of `leg` has answered the offer that it has. `isFinal`: nothing else follows. */
  answered(leg: MediaLeg, body: string | undefined, isFinal: boolean): void {
    const session = leg.offered
    if (session === undefined || session.isClosed) return
    if (isDescription(body)) this.#ask(leg, session, body)
    if (!isFinal) return
    leg.offered = undefined
    if (session.answer) this.#agreed(leg, session)
    else this.#release(session)
  }

  /** The final response to our offer in a dialog, or a provisional one. */
  responded(leg: MediaLeg, { status, body }: SipResponse): void {
    if (status < 200) return undefined
    if (status >= 300) return this.refused(leg)
    // Without an answer, its last SDP stands.
    return this.answered(leg, body || this.#deps.calls.leg(leg.id)?.media, true)
  }

  /** The offer was refused: the previous agreement continues, also at the relay. */
  refused(leg: MediaLeg): void {
    const session = leg.offered
    leg.offered = undefined
    if (session === undefined || session.isClosed) return
    if (leg.current === session) this.#rollBack(leg, session)
    else this.#release(session)
  }

  #rollBack(leg: MediaLeg, session: RelaySession): void {
    const { sessions, legs, calls } = this.#deps
    const other = legs.get(otherLeg(session, leg.id))
    const [offer, answer] = [calls.leg(other?.id)?.media, calls.leg(leg.id)?.media]
    if (!other || !isDescription(offer) || !isDescription(answer)) return
    if (offer === session.offer?.sdp) return
    const [offerer, answerer] = [this.#partyWith(other, offer), this.#partyWith(leg, answer)]
    session.offer = { from: other.id, sdp: offer }
    session.answer = undefined
    const flags = { offer: offerFlags(offerer, answerer), answer: answerFlags(offerer, answerer) }
    sessions.ask(session, offerOf(session, other.id, offer, flags.offer))
    sessions.ask(session, answerOf(session, leg.id, answer, flags.answer))
  }

  /** Asks the relay to convert the answer of `leg` for the other leg. */
  #ask(leg: MediaLeg, session: RelaySession, sdp: string): void {
    const { sessions, legs } = this.#deps
    // The relay has this SDP as an offer: the early media of click-to-call is offered to the other
    // leg.
    if (session.offer?.from === leg.id) return
    const before = session.answer
    const isRepeated = before?.from === leg.id && before.sdp === sdp
    if (isRepeated && before.outcome?.kind !== 'failed') return
    const other = legs.get(otherLeg(session, leg.id))
    const offered = session.offer?.sdp ?? other?.offer ?? ''
    if (other === undefined) return
    const [offerer, answerer] = [this.#partyWith(other, offered), this.#partyWith(leg, sdp)]
    const answer: MediaAnswer = { from: leg.id, sdp, outcome: undefined, waiting: [] }
    session.answer = answer
    // To a second answer, such as the 200 of another phone, rtpengine 10.5 applies the codecs of
    // the first.
    if (before?.from === leg.id)
      sessions.ask(session, offerOf(session, other.id, offered, offerFlags(offerer, answerer)))
    const request = answerOf(session, leg.id, sdp, answerFlags(offerer, answerer))
    sessions.ask(session, request, (response) => {
      const outcome = acceptable(rewrittenIn(response), offerer)
      answer.outcome = outcome
      for (const resolve of answer.waiting.splice(0)) resolve(outcome)
    })
  }

  /** `leg` exchanges media in this session from now on. */
  #agreed(leg: MediaLeg, session: RelaySession): void {
    const before = leg.current
    leg.current = session
    if (before && before !== session) this.#release(before)
    this.settle(session)
  }

  /** Notifies once when both sides have their answers, and their calls are answered. */
  settle(session: RelaySession): void {
    if (session.isConnected || session.isClosed) return
    const { legs, calls, sessions, after } = this.#deps
    if (session.legs.some((legId) => legs.get(legId)?.current !== session)) return
    const isAnswered = ({ callUuids }: RelaySession): boolean =>
      callUuids.every((callUuid) => typeof calls.call(callUuid)?.answeredAt === 'number')
    if (isAnswered(session)) return sessions.connected(session)
    if (session.isSettling) return
    session.isSettling = true
    after(() => {
      session.isSettling = false
      this.settle(session)
    }, SETTLE_MS)
  }

  /** Neither leg exchanges media in it, or is about to. */
  #release(session: RelaySession): void {
    const isUsed = session.legs.some((legId) => {
      const { current, offered } = this.#deps.legs.get(legId) ?? {}
      return current === session || offered === session
    })
    if (!isUsed) this.#close(session)
  }

  #close(session: RelaySession): void {
    for (const legId of session.legs) {
      const leg = this.#deps.legs.get(legId)
      if (leg?.current === session) leg.current = undefined
      if (leg?.offered === session) leg.offered = undefined
    }
    this.#deps.sessions.close(session)
  }

  /** The leg is over. */
  forget(leg: MediaLeg): void {
    for (const session of this.#deps.sessions.ofLeg(leg.id)) {
      const other = this.#deps.legs.get(otherLeg(session, leg.id))
      if (other) other.lostPeer = leg.id
      this.#close(session)
    }
  }
}

/** The relay passes codecs that it cannot transcode, even if the offerer has not offered them. */
function acceptable(outcome: RelayResult, { description }: MediaParty): RelayResult {
  if (outcome.kind !== 'rewritten' || description === undefined) return outcome
  const isOffered = (name: string): boolean =>
    description.codecs.some((each) => each.toLowerCase() === name.toLowerCase())
  const { codecs } = readDescription(outcome.sdp)
  return codecs.every(isOffered) ? outcome : { kind: 'unacceptable' }
}

/** Parses an SDP once: an offer is used again with its answer. */
function descriptionOf(leg: MediaLeg, sdp: string): Description {
  if (leg.parsed?.sdp !== sdp) leg.parsed = { sdp, description: readDescription(sdp) }
  return leg.parsed.description
}

/** Runs a step at once, or after the waiting ones. */
function inTurn(leg: MediaLeg, run: () => void, drop: () => void): void {
  if (leg.steps.length === 0) return run()
  return void leg.steps.push({ isReady: true, run, drop })
}

function waitingStep(leg: MediaLeg, drop: () => void): LegStep {
  const step: LegStep = { isReady: false, run: () => undefined, drop }
  leg.steps.push(step)
  return step
}

// The flags of an offer and its answer for the relay, so that each party gets an SDP of its own
// profile. Names and values of rtpengine 10.5's ng protocol. Pure.

/** `offerer` has a description: the one that is offered. */
export function offerFlags(offerer: MediaParty, answerer: MediaParty): NgDictionary {
  const offered = offerer.description?.profile ?? 'rtp'
  const profile = profileToward(answerer, offered)
  return {
    ...common(offerer, convertsDigits(offerer, answerer)),
    ...toward[profile],
    ...(areApart(offerer.families, answerer.families) && {
      'address family': answerer.families[0] ?? 'IP4',
    }),
    // RTP/AVPF stays what it is where nothing has to be converted.
    ...(profile !== offered && { 'transport protocol': protocols[profile] }),
    ...codecFlags(offerer, answerer),
  }
}

/**
 * The answerer's description goes to the party whose offer it answers, in the profile of that
 * offer.
 */
export function answerFlags(offerer: MediaParty, answerer: MediaParty): NgDictionary {
  const offered = offerer.description?.profile ?? 'rtp'
  return { ...common(answerer, convertsDigits(offerer, answerer)), ...ofAnswer[offered] }
}

function common({ natAddress }: Pick<MediaParty, 'natAddress'>, hasDigits: boolean): NgDictionary {
  const family = natAddress?.includes(':') ? 'IP6' : 'IP4'
  const flags = [
    // The relay learns the source of a party's packets for some seconds; then packets of strangers
    // are dropped.
    'strict source',
    ...(hasDigits ? ['inject DTMF'] : []),
    // `media address` has no effect in 10.5.
    ...(natAddress === undefined ? [] : ['SIP source address']),
  ]
  return {
    replace: ['origin', 'session-connection'],
    // The MOS is computed from receiver reports to our own sender reports.
    'generate RTCP': 'on',
    ...(natAddress !== undefined && { 'received from': [family, natAddress] }),
    flags,
  }
}

const protocols: Readonly<Record<SdpProfile, string>> = {
  rtp: 'RTP/AVP',
  srtp: 'RTP/SAVP',
  webrtc: 'UDP/TLS/RTP/SAVPF',
}

/**
 * RFC 4568 suites without encryption, or that no phone has: left out, an offer still fits into one
 * datagram.
 */
const refusedSuites = [
  'no-NULL_HMAC_SHA1_80',
  'no-NULL_HMAC_SHA1_32',
  'no-F8_128_HMAC_SHA1_80',
  'no-F8_128_HMAC_SHA1_32',
  'no-AES_192_CM_HMAC_SHA1_80',
  'no-AES_192_CM_HMAC_SHA1_32',
  'no-AES_256_CM_HMAC_SHA1_32',
  'no-AEAD_AES_256_GCM',
  'no-AEAD_AES_128_GCM',
]

/** `rtcp-mux` must be a list: a string is silently ignored. */
const toward: Readonly<Record<SdpProfile, NgDictionary>> = {
  rtp: { ICE: 'remove', DTLS: 'off', SDES: ['off'], 'rtcp-mux': ['demux'] },
  srtp: { ICE: 'remove', DTLS: 'off', SDES: refusedSuites, 'rtcp-mux': ['demux'] },
  webrtc: {
    ICE: 'force',
    DTLS: 'passive',
    SDES: ['off'],
    'rtcp-mux': ['require'],
  },
}

const ofAnswer: Readonly<Record<SdpProfile, NgDictionary>> = {
  rtp: {},
  srtp: { SDES: refusedSuites },
  webrtc: { ICE: 'force', 'rtcp-mux': ['accept'] },
}

function codecFlags(offerer: MediaParty, answerer: MediaParty): NgDictionary {
  const offered = offerer.description
  if (!offered) return {}
  const events = telephoneEvents(offerer, answerer)
  const plan = offeredCodecs(offerer, answerer)
  const lists: Record<string, readonly string[]> = {
    // Taken from the offerer, and not offered on: they become SIP INFO.
    ...(events === 'consumed' && { consume: [telephoneEvent] }),
    transcode: [
      ...(plan.kind === 'transcoded' ? plan.to : []),
      ...(events === 'added' ? [telephoneEvent] : []),
    ],
  }
  if (plan.kind === 'filtered') {
    lists['strip'] = ['all']
    const passed = events === 'passed' ? [telephoneEvent] : []
    lists['offer'] = [...plan.codecs, ...passed, ...offered.otherCodecs]
  }
  // Each by its name: with `all`, the answer has none that the offerer knows.
  if (plan.kind === 'transcoded') {
    lists['mask'] = plan.from
    lists['strip'] = [...offered.codecs.filter((name) => !plan.from.includes(name)), 'CN']
  }
  const used = Object.entries(lists).filter(([, names]) => names.length > 0)
  return used.length > 0 ? { codec: Object.fromEntries(used) } : {}
}

const telephoneEvent = 'telephone-event'

/** How the relay treats RFC 4733 in the offer. */
function telephoneEvents(
  offerer: MediaParty,
  answerer: MediaParty,
): 'passed' | 'consumed' | 'added' {
  if (!convertsDigits(offerer, answerer)) return 'passed'
  const isOffered = offerer.description?.hasTelephoneEvents === true
  if (answerer.rules.dtmf === 'info') return isOffered ? 'consumed' : 'passed'
  return isOffered ? 'passed' : 'added'
}
