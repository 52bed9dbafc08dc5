/** A finished recording as events, webhooks and the API show it. */
import type { RecordedCall } from '../contracts/recordings.ts'

export const recordingView = ({ callUuid, ...recording }: RecordedCall) => ({
  call_uuid: callUuid,
  ...fileView(recording),
})

/** Of the file alone. */
const fileView = ({
  durationMs,
  bytes,
  sha256,
}: Pick<RecordedCall, 'durationMs' | 'bytes' | 'sha256'>) => ({
  /** Seconds. */
  duration: Math.round(durationMs / 1_000),
  bytes,
  sha256,
})
