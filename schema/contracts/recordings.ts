/** Recordings of calls: who is recorded, and what the API may do about it. */

/** What an extension wishes for its calls. */
export type CallRecording = 'always' | 'never' | 'on_demand'

export type RecordingAction = 'start' | 'stop'

export type RecordingResult =
  | { readonly kind: 'recording' | 'stopped' }
  | {
      readonly kind:
        | ('unknown_call' | 'call_not_answered')
        /** No extension of the call allows it. */
        | 'recording_not_allowed'
        /** Its media does not go through a relay. */
        | 'call_not_anchored'
        /** Nothing is set up to record. */
        | 'recording_unavailable'
        /** The relay did not do it. */
        | 'relay_failed'
    }

export interface RecordingsPort {
  /** Relay, folder and spool are set. */
  readonly isAvailable: boolean
  /** Whether this call is being recorded at the moment. */
  isRecording(callUuid: string): boolean
  control(callUuid: string, action: RecordingAction): Promise<RecordingResult>
}

/** A finished file. */
export interface RecordedCall {
  readonly callUuid: string
  readonly tenantId: number | null
  /** Milliseconds UTC. */
  readonly startedAt: number
  readonly durationMs: number
  readonly bytes: number
  /** In small hexadecimal digits. */
  readonly sha256: string
}
