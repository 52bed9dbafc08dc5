/** One session at a relay: two legs, the offer that is open between them, and what the relay made of its answer. */
import type { MediaSession } from '../call-media.ts'
import type { Description } from '../description.ts'
import type { PartyFacts } from '../parties.ts'
import type { NgAnswer, NgRequest, Relay } from '../relay/relays.ts'

/** What became of a description at the relay. */
export type RelayResult =
  | { readonly kind: 'rewritten'; readonly sdp: string }
  | { readonly kind: 'failed' }
  /** An answer has a codec that was not offered, and the relay cannot transcode it. */
  | { readonly kind: 'unacceptable' }

export interface Answer {
  readonly from: string
  readonly sdp: string
  /** Undefined: the relay is being asked. */
  outcome: RelayResult | undefined
  /** Told of the outcome. */
  readonly waiting: ((outcome: RelayResult) => void)[]
}

export interface QueuedRequest {
  readonly request: NgRequest
  readonly done: (answer: NgAnswer) => void
  /** A relay that is out is not waited for: when it is back, it is too late. */
  readonly isUrgent: boolean
}

export interface Session extends MediaSession {
  readonly relay: Relay
  /** The last offer that the relay has got: whose, and as its party said it. */
  offer: { readonly from: string; readonly sdp: string } | undefined
  answer: Answer | undefined
  isConnected: boolean
  /** It is looked at again soon, whether its calls are answered. */
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
): Session {
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

export const otherLeg = ({ legs: [one, other] }: Pick<Session, 'legs'>, legId: string): string =>
  legId === one ? other : one

/** A description that a leg was told, by its o= line and a digest of the rest. */
export interface SdpFingerprint {
  /** `<username> <session>`, version and address of the o= line. */
  readonly origin: readonly [string, string, string]
  readonly rest: string
}

/** What is to be done for a leg, in order. */
export interface Step {
  /** It does not wait for a relay any more. */
  isReady: boolean
  run: () => void
  /** The leg is over before. */
  readonly drop: () => void
}

export interface MediaLeg {
  readonly id: string
  facts: PartyFacts
  /** Of the descriptions that it exchanged last. */
  current: Session | undefined
  /** Of an offer that it has got and not answered, and what brings the answer: a transaction of ours, or one of these. */
  offered: Session | undefined
  offeredIn: 'invite' | 'ack' | (string & {})
  /** Its INVITE was received, and had an offer. */
  hasOffered: boolean
  /** Its re-INVITE without offer. */
  lateOffer: string | undefined
  /** The description of it that was read last. */
  parsed: { readonly sdp: string; readonly description: Description } | undefined
  /** Its last offer. */
  offer: string
  /** What it was told last; `` in a leg that was restored. */
  lastSdpSent: string
  /** What is kept of it, once it was asked for, and in a leg that was restored. */
  lastSent: SdpFingerprint | undefined
  /** A relay has changed what it was told: its descriptions are counted here from now on. */
  hasOwnVersions: boolean
  /** The leg that it exchanged media with at a relay, which is over. */
  lostPeer: string | undefined
  readonly steps: Step[]
  /** Since when its INVITE waits for a relay, by the steady clock, and how long it did. */
  heldSince: number | undefined
  heldMs: number
}

/** By id. */
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
