/** Whether a call is recorded, by what the extensions of its parties wish (pure). */
import type { CallRecording } from '../../../schema/contracts/calls.ts'

/**
 * The strongest wish counts: an extension says what happens to its own calls, and `never` of the other party
 * does not take that away. A call without extensions is never recorded.
 */
export function recordingOf(wishes: readonly (CallRecording | undefined)[]): CallRecording {
  if (wishes.includes('always')) return 'always'
  return wishes.includes('on_demand') ? 'on_demand' : 'never'
}

/** Only what goes through a relay can be recorded, and a call cannot be moved there when it is answered. */
export const needsRelay = (recording: CallRecording): boolean => recording !== 'never'
