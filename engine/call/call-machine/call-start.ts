/** What is known of a call at its beginning. */
export interface CallStart {
  readonly callUuid: string
  readonly callId: string
  readonly callerNumber: string
  readonly callerName: string | null
  readonly calledNumber: string
  /** `address:port` of the sender, or which part of Tollgate began the call. */
  readonly sourceAddress: string
  /** The call began here: no INVITE was received. */
  readonly isOurs?: boolean
  /** It connects another node to a call of this one, and that node records what is said. */
  readonly isRecordedElsewhere?: boolean
  /** Milliseconds by the steady clock, as all times of a call (schema/clock.ts). */
  readonly startedAt: number
}
