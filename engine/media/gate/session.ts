/** One session at a relay: two legs, the offer that is open between them, and what the relay made of its answer. */
import type { MediaSession } from '../call-media.ts'
import type { NgAnswer, NgRequest, Relay } from '../relay/relays.ts'

/** What became of a description at the relay. */
export type Rewritten =
  | { readonly kind: 'rewritten'; readonly sdp: string }
  | { readonly kind: 'failed' }
  /** An answer has a codec that was not offered, and the relay cannot transcode it. */
  | { readonly kind: 'unacceptable' }

export interface Answer {
  readonly from: string
  readonly sdp: string
  /** Undefined: the relay is being asked. */
  outcome: Rewritten | undefined
  /** Told of the outcome. */
  readonly waiting: ((outcome: Rewritten) => void)[]
}

export interface Asked {
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
  readonly requests: Asked[]
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
