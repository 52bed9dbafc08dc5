/**
 * What is stored, as types. Columns keep the specification's spelling; times are integers in
 * milliseconds UTC (`…_at`, `…_stamp`), money is integer micro-units (`…_micros`), booleans are
 * 0 or 1, JSON is text. `migrations/` creates exactly these tables.
 */
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
import type { CallSumTables, CdrTable, RecordingTable, RefusedCallsTable } from './tables/calls.ts'
import type {
  CauseTables,
  ChangeEntryTable,
  ChangeProposalTable,
  McpSessionTable,
  McpSubscriptionTable,
  WebhookDeliveryTable,
  WebhookEndpointTable,
  WebhookEventTable,
} from './tables/changes.ts'
import type {
  BillingAlertTable,
  ChargingTables,
  LedgerEntryTable,
  PaymentEventTable,
  PaymentReferenceTable,
  SpendGuardTables,
  WalletTable,
} from './tables/money.ts'
import type {
  CarrierGatewayTable,
  CarrierTable,
  DispatcherNodeTable,
  DispatcherSetTable,
  InboundRouteTable,
  OutboundRouteTable,
} from './tables/routing.ts'
import type {
  AiAgentTable,
  BindingTable,
  CustomerNumberTable,
  CustomerTable,
  ExtensionTable,
  RatePlanTable,
  RateTable,
  TenantDomainTable,
  TenantNumberTable,
  TenantTable,
} from './tables/tenants.ts'
import type { Generated } from 'kysely'
import type { Defaulted } from './columns.ts'

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
  share: ShareTable
  source_ban: SourceBanTable
}

// ---- settings of the database, its nodes, and what they share ----------------------------

/** Values that the process generated and must keep, such as the JWT secret. */
export interface SettingTable {
  name: string
  value: string
}

/** The processes that serve from this database: `schema/nodes`. */
export interface NodeTable {
  name: string
  epoch: number
  install_id: string
  address: string
  /** Where it takes SIP requests of the other nodes; empty: nowhere yet. */
  sip_uri: string
  /** From where they come, joined by blanks. */
  sip_addresses: string
  version: string
  state: 'starting' | 'serving' | 'draining' | 'stopped'
  live_calls: number
  started_at: number
  heartbeat_at: number
  longest_grant_seconds: Generated<number>
  /** How long it grants without the server. */
  away_ms: Generated<number>
}

/** What one run of a node may use of something that all nodes draw from. */
export interface ShareTable {
  kind: 'limit' | 'wallet' | 'cap'
  /** Such as `carrier 7 calls`; the id of a wallet; `capResource`. */
  resource: string
  node: string
  /** Of that run. */
  process: string
  amount: number
  /** The last request of the process that has set it. */
  request: number
  /** Grows with each change. */
  version: number
}

/** A source that no node listens to: `engine/guard`. Times are those of the database server. */
export interface SourceBanTable {
  source: string
  kind: 'operator' | 'proven' | 'claimed'
  reason: string
  since: number
  until: number
  /** Of the transaction that has stored it; 0: an older one. */
  version: Defaulted<number>
}
