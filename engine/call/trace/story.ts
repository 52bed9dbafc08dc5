import type { Attempt, CallRecord } from '../../../schema/call-record.ts'
import type { Note } from '../call-machine/state.ts'

/** What is remembered of a call besides its messages. */
export interface CallStory {
  readonly tenantId: number | null
  readonly startedAt: number
  /** What the times of notes and messages lack to be stamps. */
  readonly stampOffsetMs: number
  readonly legs: readonly string[]
  readonly notes: readonly Note[]
  readonly attempts: readonly Attempt[]
  /** Undefined: it lives. */
  readonly record: CallRecord | undefined
}
