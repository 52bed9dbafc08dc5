/** The media sessions of calls, as the rest of the engine sees them. */
import type { Family } from '../call/sdp.ts'
import type { Description, SdpProfile } from './description.ts'
import type { NgDictionary, Relay } from './relay/relays.ts'
import type { MediaRules } from '../../schema/contracts/field-values.ts'

/**
 * Two legs that exchange media through a relay. The ng call-id is `id`, the tags are the legs' ids.
 */
export interface MediaSession {
  readonly id: string
  readonly relay: Relay
  readonly legs: readonly [string, string]
  /** The calls of the legs: one, or two after a transfer. */
  readonly callUuids: readonly string[]
}

export interface MediaObserver {
  /** Both sides have an answer, and the call is answered. */
  connected?(session: MediaSession): void
  /**
   * The session is deleted. `values`: the answer of the relay, with the statistics. Undefined:
   * there was no answer.
   */
  closed?(session: MediaSession, values: NgDictionary | undefined): void
}

export interface ClosedSession {
  readonly session: MediaSession
  readonly values: NgDictionary | undefined
}

export interface CallMedia {
  /** Sessions that are not deleted yet. */
  sessionsOf(callUuid: string): readonly MediaSession[]
  observe(observer: MediaObserver): void
  /**
   * Returns the deleted sessions of an ended call with their statistics, after 500 ms at the
   * latest. Undefined: there were none.
   */
  closedSessions(callUuid: string): Promise<readonly ClosedSession[]> | undefined
}

/** The known facts of one party of a media session. */
export interface MediaParty {
  readonly rules: MediaRules
  readonly isOnWebSocket: boolean
  /**
   * The source address of its packets, if it is behind NAT: media is sent there instead of the
   * address in its SDP.
   */
  readonly natAddress: string | undefined
  /** The IP versions of its media, as it says or as its address for SIP shows; empty: unknown. */
  readonly families: readonly Family[]
  /** Its last SDP. Undefined: it has sent none. */
  readonly description: Description | undefined
}

/**
 * The profile for the answerer: that of its own SDP, else of its rule, else of its transport, else
 * of the offer.
 */
export function profileToward(answerer: MediaParty, offered: SdpProfile): SdpProfile {
  if (answerer.description) return answerer.description.profile
  if (answerer.rules.profile !== 'auto') return answerer.rules.profile
  if (answerer.isOnWebSocket) return 'webrtc'
  return offered === 'webrtc' ? 'rtp' : offered
}
