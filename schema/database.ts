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
  UserTable,
} from './tables/access.ts'
import type { CallSumTables, CdrTable, RecordingTable, RefusedCallsTable } from './tables/calls.ts'
import type {
  CauseTables,
  ChangeEntryTable,
  ChangeProposalTable,
  McpSessionTable,
  McpSubscriptionTable,
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
import type { NodeTable, SettingTable, ShareTable, SourceBanTable } from './tables/nodes.ts'
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
import type {
  WebhookDeliveryTable,
  WebhookEndpointTable,
  WebhookEventTable,
} from './tables/webhooks.ts'

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
  audit_entry: AuditEntryTable
  change_proposal: ChangeProposalTable
  change_entry: ChangeEntryTable
  mcp_session: McpSessionTable
  mcp_subscription: McpSubscriptionTable
  node: NodeTable
  share: ShareTable
  source_ban: SourceBanTable
}
