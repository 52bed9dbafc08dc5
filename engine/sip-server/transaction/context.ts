/** What a transaction needs from its surroundings, and its user, which hears what happened (RFC 3261 §17, "TU"). */
import type { Flow } from '../flow.ts'
import type { SipMessage } from '../message/message.ts'
import type { Deadlines } from './deadlines.ts'
import type { Timers } from './timers.ts'

export interface TransactionContext {
  readonly timers: Timers
  readonly deadlines: Deadlines
  /** `reference` comes back if the transport fails. */
  send(text: string, flow: Flow, reference: string): void
  /** The same for a copy of what was sent before. */
  repeat(text: string, flow: Flow, reference: string): void
  /** For 64·T1 a copy of the request gets `response` again; '': it is absorbed. `toTag` is ours. */
  keepResponse(key: string, toTag: string, response: string, flow: Flow, now: number): void
  /** For 64·T1 a copy of the failure response to the INVITE with this branch gets its ACK again. */
  keepAck(branch: string, ack: string, flow: Flow, now: number): void
}

export type ClientFailure = 'timeout' | 'transport'

export interface ClientUser {
  onResponse(response: SipMessage, flow: Flow, now: number): void
  onFailure(failure: ClientFailure, now: number): void
  /** Nothing more is heard. */
  onTerminated(now: number): void
}

export interface ServerUser {
  /** Our tag in the responses; '' while there is none. */
  readonly toTag: string
  /** Timer H: the final response was not acknowledged. */
  onAckTimeout(now: number): void
  /** Nothing more is heard; copies of an answered request may still come. */
  onTerminated(now: number): void
}
