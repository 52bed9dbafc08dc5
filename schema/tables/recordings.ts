/** A finished file; the call's record is found by the same uuid, and may be gone before it. */
export interface RecordingTable {
  call_uuid: string
  tenant_id: number | null
  started_at: number
  duration_ms: number
  bytes: number
  sha256: string
}
