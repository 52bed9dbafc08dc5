/** One session at a relay: two legs, their open offer, and the result of its answer. */
import type { MediaSession } from '../call-media.ts'
import type { Description } from '../description.ts'
import type { PartyFacts } from '../parties.ts'
import type { NgAnswer, NgRequest, Relay } from '../relay/relays.ts'

/** The result of an SDP at the relay. */
export type RelayResult =
  | { readonly kind: 'rewritten'; readonly sdp: string }
  | { readonly kind: 'failed' }
  /** The relay answers, and cannot read the SDP. */
  | { readonly kind: 'unreadable' }
  /** An answer has a codec that was not offered, and the relay cannot transcode it. */
  | { readonly kind: 'unacceptable' }

export interface MediaAnswer {
  readonly from: string
  readonly sdp: string
  /** Undefined: the relay has not answered yet. */
  outcome: RelayResult | undefined
  /** Called with the outcome. */
  readonly waiting: ((outcome: RelayResult) => void)[]
}

export interface QueuedRequest {
  readonly request: NgRequest
  readonly done: (answer: NgAnswer) => void
  /** Ends at once if the relay is unavailable: a later answer would be useless. */
  readonly isUrgent: boolean
}

export interface RelaySession extends MediaSession {
  readonly relay: Relay
  /** The last offer to the relay, as its party has sent it. */
  offer: { readonly from: string; readonly sdp: string } | undefined
  answer: MediaAnswer | undefined
  isConnected: boolean
  /** A timer checks again whether its calls are answered. */
  isSettling: boolean
  isClosed: boolean
  /** Requests to the relay, one after the other: the first one is on its way. */
  readonly requests: QueuedRequest[]
}

export function newSession(
  id: string,
  relay: Relay,
  legs: readonly [string, string],
  callUuids: readonly string[],
): RelaySession {
  return {
    id,
    relay,
    legs,
    callUuids,
    offer: undefined,
    answer: undefined,
    isConnected: false,
    isSettling: false,
    isClosed: false,
    requests: [],
  }
}

export const otherLeg = (
  { legs: [one, other] }: Pick<RelaySession, 'legs'>,
  legId: string,
): string => (legId === one ? other : one)

/** An SDP sent to a leg: its o= line and a digest of the rest. */
export interface SdpFingerprint {
  /** `<username> <session>`, version and address of the o= line. */
  readonly origin: readonly [string, string, string]
  readonly rest: string
}

/** A command for a leg, in its order. */
export interface LegStep {
  /** The step no longer waits for a relay. */
  isReady: boolean
  run: () => void
  /** The leg is over before. */
  readonly drop: () => void
}

export interface MediaLeg {
  readonly id: string
  facts: PartyFacts
  /** The session of its last agreement. */
  current: RelaySession | undefined
  /**
   * The session of an unanswered offer to the leg, and the carrier of the answer: `invite`, `ack`,
   * or a transaction of ours.
   */
  offered: RelaySession | undefined
  offeredIn: 'invite' | 'ack' | (string & {})
  /** The leg is that of a received INVITE with an offer. */
  hasOffered: boolean
  /** The request id of its re-INVITE without offer. */
  lateOffer: string | undefined
  /** Its SDP that was parsed last. */
  parsed: { readonly sdp: string; readonly description: Description } | undefined
  /** Its last offer. */
  offer: string
  /** The last SDP sent to its peer; empty in a restored leg. */
  lastSdpSent: string
  /** The fingerprint of that SDP; undefined until it is needed. */
  lastSent: SdpFingerprint | undefined
  /**
   * A relay has changed an SDP for the leg: the versions of its SDPs are counted here from now on.
   */
  hasOwnVersions: boolean
  /** The leg with which it exchanged media at a relay, and which is over. */
  lostPeer: string | undefined
  readonly steps: LegStep[]
  /** Time since which its INVITE waits for a relay, by the steady clock, and how long it did. */
  heldSince: number | undefined
  heldMs: number
}

/** The legs by id. */
export interface MediaLegs {
  get(legId: string): MediaLeg | undefined
}

export const newMediaLeg = (id: string, facts: PartyFacts): MediaLeg => ({
  id,
  facts,
  current: undefined,
  offered: undefined,
  offeredIn: 'invite',
  hasOffered: false,
  lateOffer: undefined,
  parsed: undefined,
  offer: '',
  lastSdpSent: '',
  lastSent: undefined,
  hasOwnVersions: false,
  lostPeer: undefined,
  steps: [],
  heldSince: undefined,
  heldMs: 0,
})
