/** Where the phones of extensions can be reached. */
import type { Id } from './kinds.ts'

/** One contact of an extension. A binding lives until `expires_at`, whatever happens to the process. */
export interface BindingTable {
  id: Id
  extension_id: number
  /** The URI that the phone gave. */
  contact: string
  /** `+sip.instance` and `reg-id` (RFC 5626), null where the phone gave none. */
  instance: string | null
  reg_id: number | null
  /** Preference in thousandths, 0 to 1000. */
  q: number
  call_id: string
  cseq: number
  /** JSON array of `Path` values (RFC 3327), the proxy next to us first. */
  path: string
  user_agent: string
  /** Where the REGISTER came from. */
  source_protocol: string
  source_address: string
  source_port: number
  registered_at: number
  expires_at: number
}
