/** Why a call that was to be recorded has no recording. */
export const sql = `
ALTER TABLE cdr ADD COLUMN recording_error TEXT
  CHECK (recording_error IN ('not_relayed', 'relay_failed', 'nothing_captured', 'unknown_codec', 'not_written'));
`
