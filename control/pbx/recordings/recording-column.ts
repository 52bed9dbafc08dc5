/** The recording of a call in queries of call records. */
import { sql } from 'kysely'

/** JSON as the API shows it; null: there is none. Bench: `reports`. */
export const recordingOfCall = sql<string | null>`(
  SELECT json_object(
    'duration', CAST(round(duration_ms / 1000.0) AS INTEGER), 'bytes', bytes, 'sha256', sha256
  ) FROM recording WHERE recording.call_uuid = cdr.call_uuid
)`.as('recording')

export interface RecordingView {
  /** Seconds. */
  readonly duration: number
  readonly bytes: number
  readonly sha256: string
}
