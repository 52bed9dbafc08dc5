/** AI agents that answer calls. */
import type { Defaulted, Flag, Id, MediaRulesColumns } from './kinds.ts'

/** Calls to `extension` go to `sip_uri`. */
export interface AiAgentTable extends MediaRulesColumns {
  id: Id
  /** Null for an agent of the platform, available to every tenant. */
  tenant_id: number | null
  name: string
  extension: string
  sip_uri: string
  description: string | null
  /** 0: unlimited. */
  max_calls: Defaulted<number>
  is_active: Defaulted<Flag>
  /** A tenant has written `sip_uri`. */
  is_by_tenant: Defaulted<Flag>
  /** JSON array of header names that its calls do not carry, or null. */
  strip_headers: string | null
  created_at: number
  updated_at: number
}
