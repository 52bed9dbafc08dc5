/** The answers of the API: the types of the server's own views, none of its code. */
import type { ActiveCallView } from '../../../calls/active-call-view.ts'
import type { SettingView } from '../../../observe/health-routes.ts'
import type { CdrView } from '../../../reports/cdr-view.ts'
import type { keyView } from '../../../resources/key-view.ts'
import type { EndpointView } from '../../../webhooks/endpoint-store.ts'
import type { userView } from '../../../auth/user-store.ts'
import type { DayOfKey } from '../../../auth/key-usage.ts'
import type { TraceView } from '../../../calls/trace.ts'

export type { PriceView as CallPrice } from '../../../calls/active-call-view.ts'
export type { CallStatusView as CallStatus } from '../../../calls/call-status.ts'
export type { SimulationView as Simulation } from '../../../calls/simulate.ts'
export type { TestCallView as TestCall } from '../../../calls/originate-routes.ts'
export type { AuditEntryView as AuditEntry } from '../../../changes/audit.ts'
export type { ChangeView as Change } from '../../../changes/change-store.ts'
export type { ProposalView as Proposal } from '../../../agents/proposals/proposal-store.ts'
export type { ErrorBody, PageMeta } from '../../../http/envelope.ts'
export type { WalletView as Wallet } from '../../../money/customer-routes.ts'
export type { AlertView as BillingAlert } from '../../../money/alert-store.ts'
export type { LedgerEntryView as LedgerEntry } from '../../../money/ledger-store.ts'
export type { InstanceView as ProcessNode } from '../../../instances/membership.ts'
export type {
  HistoryView as TelemetryHistory,
  NodeHistoryView as NodeHistory,
  TelemetryView as Telemetry,
} from '../../../observe/telemetry/telemetry-view.ts'
export type {
  AnomaliesView as Anomalies,
  FoundView as FoundFinding,
} from '../../../observe/causes/find-anomalies.ts'
export type {
  KeptFindingsView as KeptFindings,
  KeptFindingView as KeptFinding,
} from '../../../observe/causes/finding-routes.ts'
export type { FindingView as Finding } from '../../../observe/causes/finding.ts'
export type { Summary as CallSummary } from '../../../reports/summary.ts'
export type { MarginReport } from '../../../reports/margins.ts'
export type { CarrierSums } from '../../../reports/carrier-sums.ts'
export type { BanView as Ban } from '../../../resources/ban-routes.ts'
export type { LiveAgent as AiAgent } from '../../../resources/ai-agents.ts'
export type { LiveRoutingWebhook as RoutingWebhook } from '../../../resources/routing-webhooks.ts'
export type { LiveProvider as IdentityProvider } from '../../../resources/identity-providers.ts'
export type {
  EnrolmentView as Enrolment,
  SecondFactorStateView as SecondFactorState,
  SignInPolicyView as SignInPolicy,
} from '../../../auth/second-factor-routes.ts'
export type { SeenSessionView as SeenSession } from '../../../auth/session-routes.ts'
export type { SignInChallengeView as SignInChallenge } from '../../../auth/sign-in.ts'
export type { OfferedProvider } from '../../../resources/single-sign-on-routes.ts'
export type { LiveStirKey as StirKey } from '../../../resources/stir-keys.ts'
export type { LoggedAlert } from '../../../alerts/alert-log.ts'
export type { AlertChannelTest } from '../../../alerts/alert-routes.ts'
export type { AlertChannelView as AlertChannel } from '../../../resources/alert-channels.ts'
export type { AlertRuleView as AlertRule } from '../../../resources/alert-rules.ts'
export type { WebhookTest } from '../../../resources/routing-webhook-routes.ts'
export type { LiveCarrier as Carrier } from '../../../resources/carriers.ts'
export type { ExtensionDetails } from '../../../resources/extensions.ts'
export type { CustomerView as Customer } from '../../../resources/customers.ts'
export type {
  LiveNode as DispatcherNode,
  LiveSet as DispatcherSet,
} from '../../../resources/dispatcher-sets.ts'
export type { InboundRouteView as InboundRoute } from '../../../resources/inbound-routes.ts'
export type { OutboundRouteView as OutboundRoute } from '../../../resources/outbound-routes.ts'
export type { GeneralScreen } from '../../../resources/general-screens.ts'
export type { NumberReport } from '../../../resources/number-import.ts'
export type { NumberView as PhoneNumber } from '../../../resources/numbers.ts'
export type { ImportReport } from '../../../resources/rate-import.ts'
export type {
  DeckDiffView as DeckDiff,
  DeckImportView as DeckImport,
  DeckPreviewView as DeckPreview,
  DeckProgressView as DeckProgress,
  StoredDeckView as StoredDeck,
} from '../../../resources/decks/deck-routes.ts'
export type {
  ReratingDetailView as ReratingDetail,
  ReratingPreviewView as ReratingPreview,
} from '../../../resources/reratings/rerating-routes.ts'
export type { ReratingView as Rerating } from '../../../resources/reratings/rerating-view.ts'
export type { TenantView as Tenant } from '../../../resources/tenants.ts'
export type { SavedView } from '../../../resources/saved-view-store.ts'
export type { SpendingCapView as SpendingCap } from '../../../resources/spending-cap-view.ts'
export type { PriceExplanation as Price } from '../../../resources/rate-routes.ts'
export type { RatePlanView as RatePlan } from '../../../resources/rate-plans.ts'
export type { RateView as Rate } from '../../../resources/rates.ts'
export type { DeliveryView as WebhookDelivery } from '../../../webhooks/delivery-store.ts'

export type ShownCall = ActiveCallView
export type CallTrace = TraceView
export type TraceEntryView = CallTrace['entries'][number]
export type TraceMessageView = Extract<TraceEntryView, { kind: 'message' }>
export type TraceDecision = Extract<TraceEntryView, { kind: 'decision' }>
export type CallRecordView = CdrView

/** Sums of all calls that match; amounts by currency. */
export interface MatchedCalls {
  readonly calls: number
  readonly answered: number
  readonly billsec: number
  readonly asr_percent: number | null
  readonly acd_seconds: number | null
  readonly cost: Readonly<Record<string, string>>
  readonly carrier_cost: Readonly<Record<string, string>>
  readonly margin: Readonly<Record<string, string>>
}

export interface CallReport {
  readonly records: readonly CallRecordView[]
  readonly totals?: MatchedCalls
  /** False: time was up before all records were looked at. */
  readonly complete?: boolean
  readonly missing?: { readonly text: string }
  /** For the next page; null: this is the last one. */
  readonly next_cursor?: string | null
}

export type UserAccount = ReturnType<typeof userView>
export type User = UserAccount & { readonly permissions: readonly string[] }
export type ApplicationKey = ReturnType<typeof keyView>

export interface KeyUsageView {
  readonly days: readonly DayOfKey[]
}

export type ShownSetting = SettingView

export interface ShownSettings {
  readonly settings: readonly ShownSetting[]
  readonly notes: readonly string[]
}

export type WebhookEndpoint = EndpointView

/** The secret of a new endpoint, or of one whose secret was rotated. */
export interface WithSecret {
  readonly secret: string
}

/** The token of a new key; absent where the same request was answered before. */
export interface WithToken {
  readonly token?: string
}

/** A part of JSON Schema, as far as forms read it. */
export interface FieldSchema {
  readonly type?: string | readonly string[]
  readonly anyOf?: readonly FieldSchema[]
  readonly enum?: readonly (string | number)[]
  readonly items?: FieldSchema
  readonly properties?: Readonly<Record<string, FieldSchema>>
  readonly required?: readonly string[]
  readonly format?: string
  /** A text of several lines: PEM. */
  readonly contentMediaType?: string
  readonly maxLength?: number
  readonly minimum?: number
  readonly maximum?: number
  readonly default?: unknown
  readonly description?: string
}

interface ObjectSchema {
  readonly properties: Readonly<Record<string, FieldSchema>>
  readonly required?: readonly string[]
}

/** The bodies that create and change a resource. */
export interface BodySchema {
  readonly create: ObjectSchema
  readonly change: ObjectSchema
}
export type { SearchHit } from '../../../search/search-routes.ts'
