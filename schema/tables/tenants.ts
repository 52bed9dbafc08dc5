/** Tenants, price lists, customers, extensions and where their phones are, and AI agents. */
import type { ColumnType } from 'kysely'
import type { Defaulted, Flag, Id, MediaRulesColumns } from '../columns.ts'
import type { LossProtection, PriceChangeRule, Rounding } from '../contracts/tariff.ts'

export interface TenantTables {
  tenant: TenantTable
  tenant_domain: TenantDomainTable
  tenant_number: TenantNumberTable
  customer: CustomerTable
  phone_number: PhoneNumberTable
  customer_number: CustomerNumberView
  rate_plan: RatePlanTable
  rate: RateTable
  rate_deck: RateDeckTable
  rate_deck_part: RateDeckPartTable
  extension: ExtensionTable
  ai_agent: AiAgentTable
  binding: BindingTable
}

export interface TenantTable extends MediaRulesColumns {
  id: Id
  slug: string
  name: string
  is_active: Defaulted<Flag>
  /** IANA name; null: UTC. */
  time_zone: Defaulted<string | null>
  created_at: number
}

/** A SIP domain belongs to one tenant; a tenant may have several. */
interface TenantDomainTable {
  domain: string
  tenant_id: number
}

/** A number or number prefix of a tenant; the longest matching prefix counts. */
interface TenantNumberTable {
  /** Without a leading `+`. */
  prefix: string
  tenant_id: number
}

interface RatePlanTable {
  id: Id
  tenant_id: number | null
  name: string
  currency: Defaulted<string>
  /** Decimals to which a price is rounded. */
  decimals: Defaulted<number>
  /** Calls to ported numbers: by the dialled number, or by the routing number. */
  priced_by: Defaulted<'number' | 'rn'>
  rounding: Defaulted<Rounding>
  /** JSON: how its decks are read; null: nobody has said it. */
  deck_mapping: Defaulted<string | null>
  loss_protection: Defaulted<LossProtection | null>
  /** An amount per minute, or a percentage. */
  min_margin: Defaulted<string | null>
  /** A tenant has written the two before. */
  is_loss_by_tenant: Defaulted<Flag>
  /** Null: that of its tenant. */
  time_zone: Defaulted<string | null>
  /** JSON of its periods, and of the days that are holidays; null: there are none. */
  periods: Defaulted<string | null>
  holidays: Defaulted<string | null>
  price_change: Defaulted<PriceChangeRule>
  created_at: number
}

/** A deck that was imported. */
interface RateDeckTable {
  id: Id
  rate_plan_id: number
  file_name: string | null
  mode: 'merge' | 'replace'
  lines: number
  imported: number
  created: number
  updated: number
  removed: number
  imported_by: string
  imported_at: number
  undone_by: string | null
  undone_at: number | null
}

/** A part of what a deck has changed. */
interface RateDeckPartTable {
  rate_deck_id: number
  part: number
  /** JSON, compressed by deflate. */
  changes: Buffer
}

export interface RateTable {
  id: Id
  rate_plan_id: number
  prefix: string
  /** A period of the plan; null: the price whenever no period with a price holds. */
  period: Defaulted<string | null>
  description: string | null
  rate_per_minute_micros: number
  connect_fee_micros: Defaulted<number>
  first_increment_seconds: Defaulted<number>
  first_rate_per_minute_micros: number
  increment_seconds: Defaulted<number>
  is_blocked: Defaulted<Flag>
  effective_from_at: number | null
  effective_to_at: number | null
}

export interface CustomerTable {
  id: Id
  tenant_id: number | null
  name: string
  email: string | null
  /** argon2id of the customer's password on the edge; null: no login. */
  password_hash: string | null
  is_active: Defaulted<Flag>
  rate_plan_id: number | null
  credit_limit_micros: Defaulted<number>
  /** 0: unlimited, as for the next two. */
  max_concurrent_calls: Defaulted<number>
  max_cps: Defaulted<number>
  max_daily_spend_micros: Defaulted<number>
  max_call_seconds: Defaulted<number>
  low_balance_micros: Defaulted<number>
  /** IANA name; null: that of its tenant. */
  time_zone: Defaulted<string | null>
  /** The number that its calls show unless rules say another one. */
  default_number: string | null
  /** JSON of the rules about callers, or null. */
  caller_identity: string | null
  loss_protection: Defaulted<LossProtection | null>
  min_margin: Defaulted<string | null>
  /** A tenant has written the two before. */
  is_loss_by_tenant: Defaulted<Flag>
  created_at: number
  updated_at: number
}

/** A telephone number, or a block of numbers of the same length (`engine/numbers`). */
export interface PhoneNumberTable {
  id: Id
  tenant_id: number | null
  /** As it was written, such as `+4930100`; of a block, its first number. */
  number: string
  /** Without a plus; of a single number, both are the same. */
  first_number: string
  last_number: string
  /** Length of the number; 0: no plain number, such as a user name. */
  digits: number
  customer_id: number | null
  target_type: 'set' | 'extension' | 'agent' | null
  /** Number of a set, `<extension>@<domain>`, or id of an agent. */
  target: string | null
  display_name: string | null
  emergency_address: string | null
  verified_since_at: number | null
  attestation: 'A' | 'B' | 'C' | null
  monthly_fee_micros: Defaulted<number>
  is_active: Defaulted<Flag>
  created_at: number
  updated_at: number
}

/** The single numbers of customers: a view of `phone_number`, only for reading. */
interface CustomerNumberView {
  number: ColumnType<string, never, never>
  customer_id: ColumnType<number, never, never>
}

interface ExtensionTable extends MediaRulesColumns {
  id: Id
  /** The number that its calls show outside. */
  caller_number: string | null
  /** JSON of the rules about callers, or null. */
  caller_identity: string | null
  tenant_id: number
  domain: string
  extension: string
  display_name: string
  email: string | null
  customer_id: number | null
  /** Digest secrets HA1; the password itself is not stored. */
  ha1_md5: string
  ha1_sha256: string
  voicemail_enabled: Defaulted<Flag>
  call_recording: Defaulted<'always' | 'never' | 'on_demand'>
  created_at: number
  updated_at: number
}

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
  /** The instance that took the REGISTER; empty: an instance of an earlier version. */
  node: string
  registered_at: number
  expires_at: number
}

/** Calls to `extension` go to `sip_uri`. */
interface AiAgentTable extends MediaRulesColumns {
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
