/** What the rest of the engine knows of the media sessions of calls. */
import type { NgDictionary, Relay } from './relay/relays.ts'

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
