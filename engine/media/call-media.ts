/** What the rest of the engine knows of the media sessions of calls. */
import type { Description, SdpProfile } from './description.ts'
import type { NgDictionary, Relay } from './relay/relays.ts'
import type { MediaRules } from '../../schema/contracts/field-values.ts'

/** Two legs that exchange media through a relay. The ng call-id is `id`, the tags are the legs' ids. */
export interface MediaSession {
  readonly id: string
  readonly relay: Relay
  readonly legs: readonly [string, string]
  /** One, or two after a transfer. */
  readonly callUuids: readonly string[]
}

export interface MediaObserver {
  /** Both sides have an answer, and the call is answered. */
  connected?(session: MediaSession): void
  /** Deleted; `values`: the answer of the relay, with its statistics. Undefined: it gave none. */
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
   * What the sessions of a call that ends tell, each once deleted; resolved at the latest after 500 ms. Undefined:
   * there were none.
   */
  closedSessions(callUuid: string): Promise<readonly ClosedSession[]> | undefined
}

/** One of the two parties of a media session, as far as it is known. */
export interface MediaParty {
  readonly rules: MediaRules
  readonly isOnWebSocket: boolean
  /** Where its packets come from, when it is behind NAT: media goes there, and not where its description says. */
  readonly natAddress: string | undefined
  /** Its last description; undefined: it has sent none. */
  readonly description: Description | undefined
}

/** Which profile the answerer gets: what it has shown, its rule, what its transport tells, or that of the offer. */
export function profileToward(answerer: MediaParty, offered: SdpProfile): SdpProfile {
  if (answerer.description) return answerer.description.profile
  if (answerer.rules.profile !== 'auto') return answerer.rules.profile
  if (answerer.isOnWebSocket) return 'webrtc'
  return offered === 'webrtc' ? 'rtp' : offered
}
