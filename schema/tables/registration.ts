/** Contacts of extensions' phones. */
import type { Id } from './kinds.ts'

/** One contact of an extension. A binding is valid until `expires_at`, across restarts. */
export interface BindingTable {
  id: Id
  extension_id: number
  /** The contact URI of the phone. */
  contact: string
  /** `+sip.instance` and `reg-id` (RFC 5626); null when the phone sent none. */
  instance: string | null
  reg_id: number | null
  /** Preference in thousandths, 0 to 1000. */
  q: number
  call_id: string
  cseq: number
  /** JSON array of `Path` values (RFC 3327); the proxy next to this server first. */
  path: string
  user_agent: string
  /** The source of the REGISTER. */
  source_protocol: string
  source_address: string
  source_port: number
  /** The node that took the REGISTER; empty: one of an earlier version. */
  node: string
  registered_at: number
  expires_at: number
}
