/** The recording of a call in queries of call records. */
import { sql } from 'kysely'

/**
 * JSON as the API shows it; null: there is none. Hexadecimal digits need no escape, and `||` is the same in every
 * database. Bench: `reports`.
 */
export const recordingOfCall = sql<string | null>`(
  SELECT '{"duration":' || ((duration_ms + 500) / 1000) || ',"bytes":' || bytes || ',"sha256":"' || sha256 || '"}'
  FROM recording WHERE recording.call_uuid = cdr.call_uuid
)`.as('recording')

export interface RecordingView {
  /** Seconds. */
  readonly duration: number
  readonly bytes: number
  readonly sha256: string
}
