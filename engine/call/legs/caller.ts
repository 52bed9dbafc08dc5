/** The calling side of a call that has no answer yet: an INVITE that came in, or a phone that we rang. */
import type { Headers, SipResponse, SrfDialog } from '../srf/drachtio.ts'
import type { Participant } from './conversation.ts'
import type { SrfClient } from '../srf/srf-client.ts'

export interface Caller {
  /** Whether its ACK is still to come when `accept` brings the dialog. */
  readonly owesAck: boolean
  /** Whether it was told of somebody else before the called side. */
  readonly keepsOrigin: boolean
  /** What the called side says before its answer. */
  progress(response: Pick<SipResponse, 'status' | 'reason' | 'body'>, headers: Headers): void
  /**
   * The called side has answered. `done` gets the caller's dialog; or the participant of another call
   * who takes the caller's place, and whose leg stays that other call's; or undefined when it has gone.
   */
  accept(
    client: SrfClient,
    body: string,
    headers: Headers,
    done: (taken: SrfDialog | Participant | undefined) => void,
  ): void
}
