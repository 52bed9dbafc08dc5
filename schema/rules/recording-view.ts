/** A finished recording as events and webhooks show it. */
import type { RecordedCall } from '../contracts/recordings.ts'

export const recordingView = ({ callUuid, durationMs, bytes, sha256 }: RecordedCall) => ({
  call_uuid: callUuid,
  /** Seconds. */
  duration: Math.round(durationMs / 1_000),
  bytes,
  sha256,
})
