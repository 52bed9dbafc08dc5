/**
 * What is stored, as types. Columns keep the specification's spelling; times are integers in
 * milliseconds UTC (`…_at`, `…_stamp`), money is integer micro-units (`…_micros`), booleans are
 * 0 or 1, JSON is text. `migrations/` creates exactly these tables.
 */
import type { LimitShareTable, NodeTable, SourceBanTable } from './tables/node.ts'
import type {
  Direction,
  Disposition,
  EntryKind,
  HangupParty,
  MediaPolicy,
  MosSource,
  RecordingError,
} from './contracts/field-values.ts'
import type {
  ApplicationKeyDayTable,
  ApplicationKeyMinuteTable,
  ApplicationKeyPreviousTable,
  ApplicationKeyTable,
  AuditEntryTable,
  IdempotentAnswerTable,
  IdempotentClaimTable,
  JwtDenylistTable,
  RateGrantTable,
  UserTable,
} from './tables/access.ts'
import type { AiAgentTable } from './tables/agent.ts'
import type { CallSumTables } from './tables/call-sums.ts'
import type { ChargingTables } from './tables/charging.ts'
import type { ChangeEntryTable, ChangeProposalTable } from './tables/changes.ts'
import type { CauseTables } from './tables/causes.ts'
import type { Defaulted, Flag, Id, MediaRulesColumns, Sum } from './tables/kinds.ts'
import type {
  BillingAlertTable,
  PaymentEventTable,
  PaymentReferenceTable,
} from './tables/payments.ts'
import type { RecordingTable } from './tables/recordings.ts'
import type { RefusedCallsTable } from './tables/refused-calls.ts'
import type { BindingTable } from './tables/registration.ts'
import type { McpSessionTable, McpSubscriptionTable } from './tables/mcp-sessions.ts'
import type { SpendGuardTables } from './tables/spend-guards.ts'
import type {
  WebhookDeliveryTable,
  WebhookEndpointTable,
  WebhookEventTable,
} from './tables/webhooks.ts'

export type { ApplicationKeyTable, AuditEntryTable, UserTable } from './tables/access.ts'
export type { Flag } from './tables/kinds.ts'
export type { WebhookDeliveryTable, WebhookEndpointTable } from './tables/webhooks.ts'
export type { AlertKind, BillingAlertTable, PaymentEventTable } from './tables/payments.ts'

export interface Database extends CallSumTables, CauseTables, ChargingTables, SpendGuardTables {
  setting: SettingTable
  tenant: TenantTable
  tenant_domain: TenantDomainTable
  tenant_number: TenantNumberTable
  customer: CustomerTable
  customer_number: CustomerNumberTable
  wallet: WalletTable
  ledger_entry: LedgerEntryTable
  rate_plan: RatePlanTable
  rate: RateTable
  dispatcher_set: DispatcherSetTable
  dispatcher_node: DispatcherNodeTable
  carrier: CarrierTable
  carrier_gateway: CarrierGatewayTable
  outbound_route: OutboundRouteTable
  inbound_route: InboundRouteTable
  extension: ExtensionTable
  ai_agent: AiAgentTable
  binding: BindingTable
  cdr: CdrTable
  refused_calls: RefusedCallsTable
  recording: RecordingTable
  payment_event: PaymentEventTable
  payment_reference: PaymentReferenceTable
  billing_alert: BillingAlertTable
  webhook_endpoint: WebhookEndpointTable
  webhook_event: WebhookEventTable
  webhook_delivery: WebhookDeliveryTable
  application_key: ApplicationKeyTable
  application_key_day: ApplicationKeyDayTable
  application_key_minute: ApplicationKeyMinuteTable
  application_key_previous: ApplicationKeyPreviousTable
  user: UserTable
  jwt_denylist: JwtDenylistTable
  idempotent_answer: IdempotentAnswerTable
  idempotent_claim: IdempotentClaimTable
  rate_grant: RateGrantTable
  audit_entry: AuditEntryTable
  change_proposal: ChangeProposalTable
  change_entry: ChangeEntryTable
  mcp_session: McpSessionTable
  mcp_subscription: McpSubscriptionTable
  node: NodeTable
  limit_share: LimitShareTable
  source_ban: SourceBanTable
}

/** Values that the process generated and must keep, such as the JWT secret. */
interface SettingTable {
  name: string
  value: string
}

export interface TenantTable extends MediaRulesColumns {
  id: Id
  slug: string
  name: string
  is_active: Defaulted<Flag>
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
  created_at: number
  updated_at: number
}

/** Calling numbers by which a customer is recognized. */
interface CustomerNumberTable {
  number: string
  customer_id: number
}

interface WalletTable {
  id: Id
  customer_id: number
  currency: string
  /** Always the sum of the wallet's ledger entries. */
  balance_micros: Sum
  /** Whether a depletion event was sent and no money has been added since. */
  is_depleted: Defaulted<Flag>
  /** The sum of its leases. */
  leased_micros: Sum
  /** Debited on the day `spent_on`. Kept where several processes share the database. */
  spent_micros: Sum
  /** Midnight UTC in milliseconds. */
  spent_on: Defaulted<number>
  updated_at: number
}

/** Append only: triggers refuse UPDATE and DELETE. */
export interface LedgerEntryTable {
  id: Id
  wallet_id: number
  kind: EntryKind
  amount_micros: number
  balance_after_micros: Sum
  /** Unique per kind: the call uuid of a debit, the payment reference of a top-up. */
  ref: string
  actor: string
  note: string | null
  created_at: number
}

export interface RatePlanTable {
  id: Id
  tenant_id: number | null
  name: string
  currency: Defaulted<string>
  /** Decimals to which a price is rounded up. */
  decimals: Defaulted<number>
  created_at: number
}

export interface RateTable {
  id: Id
  rate_plan_id: number
  prefix: string
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

export interface DispatcherSetTable extends MediaRulesColumns {
  id: Id
  set_id: number
  endpoint_name: string
  tenant_id: number | null
  /** 8 failover, 4 round robin, 9 weight, 6 random, 0 Call-ID hash. */
  algorithm: number
  /** Null for the default of the process (`PROBE_…` settings). */
  probe_interval_ms: number | null
  probe_timeout_ms: number | null
  probe_fail_threshold: number | null
  probe_recover_threshold: number | null
  /** JSON array of status numbers and ranges, such as `["200-299", 404]`. */
  probe_ok_codes: string | null
  voicemail_uri: string | null
  spy_uri: string | null
  /** A tenant has written `voicemail_uri` or `spy_uri`. */
  is_by_tenant: Defaulted<Flag>
  created_at: number
  updated_at: number
}

export interface DispatcherNodeTable {
  id: Id
  dispatcher_set_id: number
  host: string
  internal_port: Defaulted<number>
  external_port: Defaulted<number>
  weight: Defaulted<number>
  priority: Defaulted<number>
  description: string | null
  transport: Defaulted<'udp' | 'tcp' | 'tls'>
  is_enabled: Defaulted<Flag>
  /** 0: unlimited. */
  max_calls: Defaulted<number>
  /** The state that an operator set. `inactive` survives restarts; probe state does not. */
  operator_state: Defaulted<'active' | 'inactive'>
  /** A tenant has written `host` and `internal_port`. */
  is_by_tenant: Defaulted<Flag>
}

export interface CarrierTable extends Omit<MediaRulesColumns, 'media'> {
  id: Id
  name: string
  tenant_id: number | null
  customer_id: number | null
  /** The payer of its calls: its customer, or the customer that owns the number in From. */
  payer: Defaulted<'customer' | 'from_number'>
  is_active: Defaulted<Flag>
  direction: Defaulted<'in' | 'out' | 'both'>
  auth_type: Defaulted<'ip' | 'digest' | 'register'>
  auth_username: string | null
  /** Encrypted (`schema/secrets`). */
  auth_password: string | null
  auth_realm: string | null
  auth_from_user: string | null
  auth_from_domain: string | null
  auth_expires_seconds: number | null
  caller_id_mode: Defaulted<'pass' | 'fixed' | 'pai'>
  caller_id_value: string | null
  /** JSON `{in: [{match, replace}], out: […]}`. */
  number_rules: Defaulted<string>
  media: Defaulted<MediaPolicy>
  /** JSON array of header names that its calls do not carry, or null. */
  strip_headers: string | null
  /** 0: unlimited. */
  max_calls: Defaulted<number>
  max_cps: Defaulted<number>
  inbound_set_id: number | null
  /** The carrier's prices, compared by least-cost routes; null when unknown. */
  rate_plan_id: number | null
  created_at: number
  updated_at: number
}

export interface CarrierGatewayTable {
  id: Id
  carrier_id: number
  host: string
  port: Defaulted<number>
  transport: Defaulted<'udp' | 'tcp' | 'tls'>
  /** Prefix length of the source network that is recognized as this gateway. */
  netmask: Defaulted<number>
  is_inbound: Defaulted<Flag>
  is_outbound: Defaulted<Flag>
  priority: Defaulted<number>
  weight: Defaulted<number>
  /** A tenant has written `host` and `port`. */
  is_by_tenant: Defaulted<Flag>
}

export interface OutboundRouteTable {
  id: Id
  name: string
  tenant_id: number | null
  customer_id: number | null
  carrier_id: number | null
  prefix: string
  priority: Defaulted<number>
  weight: Defaulted<number>
  mode: Defaulted<'static' | 'lcr' | 'block'>
  strip: Defaulted<number>
  prepend: Defaulted<string>
  is_active: Defaulted<Flag>
  is_emergency: Defaulted<Flag>
  created_at: number
}

export interface InboundRouteTable {
  id: Id
  name: string
  tenant_id: number | null
  carrier_id: number | null
  /** Called number prefix, or null: any. */
  prefix: string | null
  /** Domain of the Request-URI, or null: any. */
  domain: string | null
  target_type: 'set' | 'extension' | 'agent'
  /** Set id, `<extension>@<domain>` or agent id, by `target_type`. */
  target: string
  priority: Defaulted<number>
  is_active: Defaulted<Flag>
  created_at: number
}

export interface ExtensionTable extends MediaRulesColumns {
  id: Id
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

/** One row for every INVITE, refused and cancelled ones included. */
export interface CdrTable {
  id: Id
  call_uuid: string
  call_id: string
  direction: Direction
  caller_id_number: string
  caller_id_name: string | null
  destination_number: string
  start_stamp: number
  answer_stamp: number | null
  end_stamp: number
  /** Milliseconds from INVITE to the first 18x or 2xx, null when none came. */
  post_dial_delay_ms: number | null
  duration: number
  billsec: number
  disposition: Disposition
  sip_code: number
  hangup_cause: string
  hangup_by: HangupParty
  /** Why the platform refused or ended the call, such as `insufficient_funds`; null otherwise. */
  denial_code: string | null
  set_id: number | null
  node: string | null
  carrier: string | null
  /** JSON array of `{destination, status, reason, startedAt, endedAt}`, in order. */
  attempts: string
  tenant_id: number | null
  customer_id: number | null
  rate_prefix: string | null
  cost_micros: number
  currency: string | null
  /** The lower one of both directions. */
  mos_score: number | null
  mos_source: MosSource | null
  /** The higher ones. */
  jitter_ms: number | null
  packet_loss_pct: number | null
  /** JSON of both directions (see call-quality.ts); null: nothing is known. */
  media_quality: string | null
  /** Known after the call, and of those alone that were to be recorded. */
  recording_error: RecordingError | null
  source_address: string
  /** A restart closed the call, at its last heartbeat. */
  is_recovered: Defaulted<Flag>
  is_unauthorized_by_ocs: Defaulted<Flag>
  /** Of a call refused for money: what its first seconds cost, and what there was. */
  required_micros: number | null
  available_micros: number | null
  /** The sentence of its `denial_code`; null: there is none, or an earlier version has written the record. */
  denial_text: string | null
  /** The node of Tollgate that had the call; null: recorded by an earlier version. */
  instance: string | null
}
