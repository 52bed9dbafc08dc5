/**
 * What the API answers with, as its OpenAPI document says. Generated:
 * npx vitest run test/control/console/api-types.test.ts -u
 */
export type Profile =
  | {
      readonly kind: 'key'
      readonly uuid: string
      readonly scopes: readonly string[]
      readonly permissions: readonly string[]
      readonly tenant_slug: string | null
      readonly domain: string | null
    }
  | {
      readonly kind: 'user'
      readonly id: number
      readonly username: string
      readonly role: string
      readonly is_active: boolean
      readonly created_at: string
      readonly updated_at: string
      readonly scopes: readonly string[]
      readonly permissions: readonly string[]
      readonly tenant_slug: string | null
      readonly domain: string | null
      readonly expires_at: string
    }

export interface PageMeta {
  readonly page: number
  readonly limit: number
  readonly total: number
  readonly truncated?: true
}

export interface Error {
  readonly success: false
  readonly error: string
  readonly statusCode: number
  readonly code: string
  readonly details?: readonly {
    readonly path: string
    readonly message: string
  }[]
  readonly request_id: string
}

export interface Telemetry {
  readonly at: string
  readonly uptime_seconds: number
  readonly this_node: {
    readonly name: string
    readonly epoch: number
    readonly condition: 'valid' | 'unheard' | 'fenced'
    readonly heartbeat_age_seconds: number
  }
  readonly calls: {
    readonly active: number
    readonly per_second: number
    readonly total: number
    readonly answered: number
    readonly asr_percent: number | null
    readonly acd_seconds: number | null
    readonly billed_seconds: number
    readonly by_disposition: Readonly<Record<string, number>>
    readonly post_dial_delay: {
      readonly count: number
      readonly average_ms: number | null
      readonly sum_ms: number
      readonly buckets: readonly {
        readonly le_ms: number | null
        readonly count: number
      }[]
    }
    readonly mos: {
      readonly count: number
      readonly average: number | null
      readonly sum: number
      readonly buckets: readonly {
        readonly le: number
        readonly count: number
      }[]
    }
  }
  readonly nodes: readonly {
    readonly set_id: number
    readonly node_id: number
    readonly destination: string
    readonly state: 'active' | 'probing' | 'inactive'
    readonly latency_ms: number | null
    readonly active_calls: number
    readonly probes: {
      readonly sent: number
      readonly answered: number
      readonly failed: number
    }
  }[]
  readonly relays: readonly {
    readonly relay: string
    readonly weight: number
    readonly alive: boolean
    readonly latency_ms: number | null
    readonly sessions: number | null
    readonly outstanding: number
    readonly requests_total: number
    readonly timeouts_total: number
    readonly errors_total: number
    readonly restarts_total: number
  }[]
  readonly registrations: {
    readonly contacts: number
    readonly extensions: number
  }
  readonly api: {
    readonly requests_total: number
    readonly by_status_class: Readonly<Record<string, number>>
    readonly refused: {
      readonly connections: number
      readonly event_readers: number
      readonly audit_entries: number
    }
    readonly routes: readonly {
      readonly method: string
      readonly route: string
      readonly status_class: '1xx' | '2xx' | '3xx' | '4xx' | '5xx'
      readonly count: number
    }[]
  }
  readonly billing: {
    readonly authorizations_total: number
    readonly verdicts: Readonly<Record<string, number>>
    readonly open_calls: number
    readonly reserved: string
    readonly moved: readonly {
      readonly kind: 'topup' | 'debit' | 'adjust' | 'refund'
      readonly currency: string
      readonly count: number
      readonly amount: string
    }[]
    readonly waiting_writes: number
    readonly commits_total: number
    readonly commit_failures: number
    readonly lost_events_total: number
  } | null
  readonly outbox: {
    readonly call_reports: number
    readonly webhook_deliveries: number
    readonly webhook_oldest_seconds: number | null
  }
  readonly event_loop: {
    readonly lag_p50_ms: number
    readonly lag_p99_ms: number
  }
  readonly process: {
    readonly resident_bytes: number
    readonly heap_used_bytes: number
    readonly cpu_seconds: number
  }
  readonly database: {
    readonly bytes: number
    readonly free_bytes: number | null
  }
  readonly engine: Readonly<Record<string, number>>
  readonly platform_nodes?: readonly {
    readonly name: string
    readonly uptime_seconds: number
    readonly active_calls: number
    readonly calls_per_second: number
    readonly event_loop: {
      readonly lag_p50_ms: number
      readonly lag_p99_ms: number
    }
    readonly process: {
      readonly resident_bytes: number
      readonly heap_used_bytes: number
      readonly cpu_seconds: number
    }
  }[]
}

export interface TelemetryHistory {
  readonly interval_seconds: number
  readonly samples: readonly {
    readonly at: string
    readonly active: number
    readonly started: number
    readonly ended: number
    readonly answered: number
    readonly post_dial_delay: {
      readonly count: number
      readonly sum_ms: number
    }
    readonly spent: readonly {
      readonly currency: string
      readonly amount: string
    }[]
    readonly lag_p99_ms: number
  }[]
}

export interface NodeHistory {
  readonly interval_seconds: number
  readonly nodes: readonly {
    readonly node_id: number
    readonly latencies_ms: readonly (number | null)[]
  }[]
}

export interface ActiveCall {
  readonly uuid: string
  readonly call_uuid: string
  readonly caller_id_number: string
  readonly destination_number: string
  readonly duration_seconds: number
  readonly state: 'DIALING' | 'RINGING' | 'EARLY' | 'ACTIVE' | 'HELD'
  readonly direction: 'inbound' | 'outbound' | 'internal'
  readonly start_stamp: string
  readonly answer_stamp: string | null
  readonly set_id: number | null
  readonly node: string | null
  readonly instance: string
  readonly node_state: 'active' | 'probing' | 'inactive' | null
  readonly carrier: string | null
  readonly caller_address: string | null
  readonly callee_address: string | null
  readonly customer_id: number | null
  readonly transfer: {
    readonly state: 'transferring' | 'transferred' | 'failed'
    readonly call_uuid: string
    readonly destination: string
    readonly sip_code: number | null
  } | null
  readonly recording: boolean
  readonly cost: number | null
  readonly cost_exact: string | null
  readonly currency: string | null
  readonly price: CallPrice | null
}

export interface CallReport {
  readonly total_calls: number
  readonly total_billsec: number
  readonly total_refused?: {
    readonly unknown_source: number
    readonly overload: number
  }
  readonly records: readonly CallRecord[]
  readonly truncated?: true
  readonly meta?: {
    readonly page: number
    readonly limit: number
    readonly total: number
  }
}

export interface CallTrace {
  readonly call_uuid: string
  readonly legs: readonly string[]
  readonly peers: readonly LegPeer[]
  readonly is_complete: boolean
  readonly entries: readonly (TraceMessage | TraceDecision)[]
}

export interface CallStatus {
  readonly call_uuid: string
  readonly status:
    | 'originating'
    | 'ringing'
    | 'answered'
    | 'completed'
    | 'busy'
    | 'no_answer'
    | 'failed'
    | 'canceled'
  readonly caller_id_number: string
  readonly destination_number: string
  readonly direction: 'inbound' | 'outbound' | 'internal'
  readonly start_stamp: string
  readonly answer_stamp: string | null
  readonly end_stamp: string | null
  readonly billsec: number | null
  readonly disposition:
    'ANSWERED' | 'NO ANSWER' | 'BUSY' | 'CANCELED' | 'FAILED' | 'CONGESTION' | null
  readonly sip_code: number | null
  readonly hangup_cause: string | null
  readonly hangup_by: 'caller' | 'callee' | 'system' | 'api' | null
  readonly denial_code: string | null
  readonly denial_text: string | null
  readonly transfer: {
    readonly state: 'transferring' | 'transferred' | 'failed'
    readonly call_uuid: string
    readonly destination: string
    readonly sip_code: number | null
  } | null
}

export interface DispatcherSet {
  readonly id: number
  readonly set_id: number
  readonly endpoint_name: string
  readonly algorithm: 8 | 4 | 9 | 6 | 0
  readonly tenant: string | null
  readonly probe: {
    readonly interval_ms?: number
    readonly timeout_ms?: number
    readonly fail_threshold?: number
    readonly recover_threshold?: number
    readonly ok_codes?: readonly string[]
  } | null
  readonly voicemail_uri: string | null
  readonly spy_uri: string | null
  readonly media: 'bypass' | 'prefer' | 'anchor' | null
  readonly media_profile: 'auto' | 'rtp' | 'srtp' | 'webrtc'
  readonly codecs: readonly string[] | null
  readonly dtmf: 'auto' | 'rfc4733' | 'info'
  readonly nodes: readonly DispatcherNode[]
  readonly created_at: string
  readonly updated_at: string
}

export interface Customer {
  readonly id: number
  readonly name: string
  readonly tenant: string | null
  readonly email: string | null
  readonly has_password: boolean
  readonly is_active: boolean
  readonly rate_plan_id: number | null
  readonly rate_plan: string | null
  readonly numbers: readonly string[]
  readonly credit_limit: number
  readonly max_concurrent_calls: number
  readonly max_cps: number
  readonly max_daily_spend: number
  readonly max_call_seconds: number
  readonly low_balance_threshold: number
  readonly is_balance_low: boolean
  readonly currency: string
  readonly balance: string
  readonly balance_number: number
  readonly created_at: string
  readonly updated_at: string
}

export interface RatePlan {
  readonly id: number
  readonly name: string
  readonly tenant: string | null
  readonly currency: string
  readonly decimals: number
  readonly created_at: string
}

export interface Rate {
  readonly id: number
  readonly rate_plan_id: number
  readonly rate_plan: string
  readonly prefix: string
  readonly description: string | null
  readonly rate_per_minute: number
  readonly rate_per_minute_exact: string
  readonly connect_fee: number
  readonly connect_fee_exact: string
  readonly first_increment: number
  readonly first_rate_per_minute: number
  readonly first_rate_per_minute_exact: string
  readonly increment: number
  readonly blocked: boolean
  readonly effective_from: string | null
  readonly effective_to: string | null
}

export interface Price {
  readonly number: string
  readonly at: string
  readonly rate_plan_id?: number
  readonly prefix: string
  readonly currency: string
  readonly blocked: boolean
  readonly rate_per_minute: number
  readonly rate_per_minute_exact: string
  readonly first_rate_per_minute: number
  readonly first_increment: number
  readonly increment: number
  readonly effective_from: string | null
  readonly effective_to: string | null
  readonly duration: number
  readonly charged_seconds: number
  readonly parts: readonly {
    readonly part: string
    readonly seconds: number
    readonly amount_exact: string
  }[]
  readonly decimals: number
  readonly cost: number | null
  readonly cost_exact: string | null
}

export interface Wallet {
  readonly customer_id: number
  readonly currency: string
  readonly balance: string
  readonly balance_number: number
  readonly credit_limit: number
  readonly reserved: string
  readonly available: string
  readonly open_calls: number
}

export interface LedgerEntry {
  readonly id: number
  readonly kind: 'topup' | 'debit' | 'adjust' | 'refund'
  readonly amount: number
  readonly amount_exact: string
  readonly balance_after: number
  readonly balance_after_exact: string
  readonly ref: string
  readonly actor: string
  readonly note: string | null
  readonly created_at: string
}

export interface ApplicationKey {
  readonly uuid: string
  readonly kind: 'sbc' | 'pbx' | 'billing'
  readonly name: string
  readonly description: string | null
  readonly key_prefix: string
  readonly scopes: readonly string[]
  readonly rate_limit_rpm: number
  readonly expires_at: string | null
  readonly is_active: boolean
  readonly state: 'active' | 'inactive' | 'suspended' | 'expired' | 'revoked'
  readonly suspended_at: string | null
  readonly revoked_at: string | null
  readonly tenant_scope: 'global' | 'tenant'
  readonly tenant_slug: string | null
  readonly domain: string | null
  readonly allowed_ips: readonly string[]
  readonly owner_username: string | null
  readonly request_count: number
  readonly last_used_at: string | null
  readonly created_at: string
}

export interface NewApplicationKey {
  readonly uuid: string
  readonly kind: 'sbc' | 'pbx' | 'billing'
  readonly name: string
  readonly description: string | null
  readonly key_prefix: string
  readonly scopes: readonly string[]
  readonly rate_limit_rpm: number
  readonly expires_at: string | null
  readonly is_active: boolean
  readonly state: 'active' | 'inactive' | 'suspended' | 'expired' | 'revoked'
  readonly suspended_at: string | null
  readonly revoked_at: string | null
  readonly tenant_scope: 'global' | 'tenant'
  readonly tenant_slug: string | null
  readonly domain: string | null
  readonly allowed_ips: readonly string[]
  readonly owner_username: string | null
  readonly request_count: number
  readonly last_used_at: string | null
  readonly created_at: string
  readonly token?: string
  readonly token_omitted?: string
}

export interface Carrier {
  readonly id: number
  readonly name: string
  readonly tenant: string | null
  readonly customer_id: number | null
  readonly customer: string | null
  readonly payer: 'customer' | 'from_number'
  readonly is_active: boolean
  readonly direction: 'in' | 'out' | 'both'
  readonly gateways: readonly {
    readonly id: number
    readonly host: string
    readonly port: number
    readonly transport: 'udp' | 'tcp' | 'tls'
    readonly netmask: number
    readonly inbound: boolean
    readonly outbound: boolean
    readonly priority: number
    readonly weight: number
    readonly status: {
      readonly state: 'active' | 'probing' | 'inactive'
      readonly latency_ms: number | null
      readonly last_probe: {
        readonly at: string
        readonly status: number
        readonly reason: string
      } | null
      readonly probes: {
        readonly sent: number
        readonly answered: number
        readonly failed: number
      }
    } | null
  }[]
  readonly auth: {
    readonly type: 'ip' | 'digest' | 'register'
    readonly username: string | null
    readonly realm: string | null
    readonly from_user: string | null
    readonly from_domain: string | null
    readonly expires: number | null
  }
  readonly caller_id: {
    readonly mode: 'pass' | 'fixed' | 'pai'
    readonly value: string | null
  }
  readonly number_rules: {
    readonly in: readonly {
      readonly match: string
      readonly replace: string
    }[]
    readonly out: readonly {
      readonly match: string
      readonly replace: string
    }[]
  }
  readonly media: 'bypass' | 'prefer' | 'anchor'
  readonly media_profile: 'auto' | 'rtp' | 'srtp' | 'webrtc'
  readonly codecs: readonly string[] | null
  readonly dtmf: 'auto' | 'rfc4733' | 'info'
  readonly strip_headers: readonly string[]
  readonly max_calls: number
  readonly max_cps: number
  readonly rate_plan_id: number | null
  readonly rate_plan: string | null
  readonly inbound_set_id: number | null
  readonly registration: 'registered' | 'unregistered' | 'registering' | 'failed' | null
  readonly status: {
    readonly is_usable: boolean
    readonly active_calls: number
    readonly registration: {
      readonly registrar: string
      readonly expires_at: string | null
      readonly next_attempt_at: string | null
      readonly last_answer: {
        readonly at: string
        readonly status: number
        readonly reason: string
      } | null
    } | null
  }
  readonly created_at: string
  readonly updated_at: string
}

export interface AuditEntry {
  readonly id: number
  readonly at: string
  readonly actor: string
  readonly actor_name: string | null
  readonly actor_key_prefix: string | null
  readonly tenant_id: number | null
  readonly address: string
  readonly action: string
  readonly target: string
  readonly outcome: 'success' | 'refused' | 'failed'
  readonly status: number
  readonly code: string | null
  readonly before_digest: string | null
  readonly after_digest: string | null
  readonly correlation_id: string
  readonly change_id: string | null
  readonly reason: string | null
  readonly is_agent: boolean
}

export interface ProcessNode {
  readonly name: string
  readonly epoch: number
  readonly address: string
  readonly version: string
  readonly state: 'starting' | 'serving' | 'draining' | 'stopped' | 'lost'
  readonly live_calls: number
  readonly started_at: string
  readonly heartbeat_at: string
  readonly is_this: boolean
  readonly differing_settings: readonly string[]
}

export interface KeyUsage {
  readonly days: readonly {
    readonly date: string
    readonly requests: number
  }[]
}

export interface CarrierSums {
  readonly carrier: string
  readonly outbound: DirectionSums
  readonly inbound: DirectionSums
}

export interface ExtensionDetails {
  readonly id: number
  readonly extension: string
  readonly domain: string
  readonly tenant: string
  readonly display_name: string
  readonly email: string | null
  readonly customer_id: number | null
  readonly customer: string | null
  readonly voicemail_enabled: boolean
  readonly call_recording: 'always' | 'never' | 'on_demand'
  readonly media: 'bypass' | 'prefer' | 'anchor' | null
  readonly media_profile: 'auto' | 'rtp' | 'srtp' | 'webrtc'
  readonly codecs: readonly string[] | null
  readonly dtmf: 'auto' | 'rfc4733' | 'info'
  readonly recording_active: boolean
  readonly status: 'registered' | 'unregistered'
  readonly contacts: readonly {
    readonly uri: string
    readonly user_agent: string
    readonly source: string
    readonly node: string | null
    readonly expires_at: string
  }[]
  readonly created_at: string
  readonly updated_at: string
}

export interface Settings {
  readonly settings: readonly Setting[]
  readonly notes: readonly string[]
}

export interface Ban {
  readonly source: string
  readonly reason: 'password_guessing' | 'unknown_calls' | 'operator'
  readonly since: string
  readonly until: string
  readonly dropped_packets: number
}

export interface WebhookEndpoint {
  readonly id: number
  readonly url: string
  readonly description: string | null
  readonly events: readonly (
    | '*'
    | 'call.authorized'
    | 'call.denied'
    | 'call.answered'
    | 'call.ended'
    | 'recording.ready'
    | 'wallet.topped_up'
    | 'wallet.low_balance'
    | 'wallet.depleted'
    | 'wallet.adjusted'
    | 'dispatcher.node.down'
    | 'dispatcher.node.up'
    | 'node.lost'
    | 'node.recovered'
    | 'node.fenced'
    | 'key.revoked'
    | 'proposal.created'
    | 'proposal.decided'
  )[]
  readonly is_active: boolean
  readonly approval_links: boolean
  readonly disabled_reason: 'gone' | 'backlog' | null
  readonly previous_secret_expires_at: string | null
  readonly created_at: string
  readonly updated_at: string
}

export interface WebhookEndpointWithSecret {
  readonly id: number
  readonly url: string
  readonly description: string | null
  readonly events: readonly (
    | '*'
    | 'call.authorized'
    | 'call.denied'
    | 'call.answered'
    | 'call.ended'
    | 'recording.ready'
    | 'wallet.topped_up'
    | 'wallet.low_balance'
    | 'wallet.depleted'
    | 'wallet.adjusted'
    | 'dispatcher.node.down'
    | 'dispatcher.node.up'
    | 'node.lost'
    | 'node.recovered'
    | 'node.fenced'
    | 'key.revoked'
    | 'proposal.created'
    | 'proposal.decided'
  )[]
  readonly is_active: boolean
  readonly approval_links: boolean
  readonly disabled_reason: 'gone' | 'backlog' | null
  readonly previous_secret_expires_at: string | null
  readonly created_at: string
  readonly updated_at: string
  readonly secret: string
}

export interface WebhookDelivery {
  readonly id: number
  readonly webhook_id: string
  readonly type: string
  readonly state: 'pending' | 'delivered' | 'failed'
  readonly attempts: number
  readonly next_attempt_at: string | null
  readonly last_attempt_at: string | null
  readonly last_status: number | null
  readonly last_error: string | null
  readonly last_answer: string | null
  readonly created_at: string
  readonly payload: unknown
}

export interface Simulation {
  readonly verdict: 'goes_on' | 'refused' | 'dropped'
  readonly sip_code: number | null
  readonly reason: string | null
  readonly code: string | null
  readonly denial_text: string | null
  readonly from: string
  readonly to: string
  readonly direction: 'inbound' | 'outbound' | 'internal'
  readonly emergency: boolean
  readonly source: {
    readonly kind: 'trusted' | 'carrier' | 'node' | 'proxy' | 'extension' | 'unknown'
    readonly id: number | null
    readonly name: string | null
  }
  readonly payment: {
    readonly kind: 'asked' | 'free' | 'not_asked' | 'elsewhere'
    readonly customer_id: number | null
    readonly customer: string | null
    readonly code: string | null
    readonly rate: {
      readonly prefix: string
      readonly currency: string
      readonly connect_fee_exact: string
      readonly rate_per_minute_exact: string
      readonly first_increment: number
      readonly increment: number
    } | null
    readonly at: string | null
    readonly longest_seconds: number | null
  }
  readonly order: 'fixed' | 'turn' | 'drawn' | 'call_id'
  readonly set_id: number | null
  readonly candidates: readonly {
    readonly kind: 'node' | 'gateway' | 'agent' | 'extension' | 'domain'
    readonly uri: string
    readonly name: string | null
    readonly id: number | null
    readonly number: string | null
    readonly route: string | null
    readonly phones: number | null
    readonly withheld: string | null
    readonly withheld_text: string | null
    readonly share: number
    readonly carrier_price_exact: string | null
  }[]
  readonly passed_over: readonly {
    readonly kind: 'node' | 'route' | 'gateway'
    readonly name: string
    readonly uri: string | null
    readonly why:
      | 'drained'
      | 'out_of_service'
      | 'node_limit'
      | 'other_caller'
      | 'after_block'
      | 'no_carrier'
      | 'blocked_by_carrier'
      | 'carrier_limit'
      | 'number_blocked'
      | 'number_stripped'
      | 'inbound_only'
      | 'gateway_down'
      | 'leads_to_platform'
  }[]
}

export interface TestCall {
  readonly call_uuid: string
  readonly status: 'originating'
  readonly max_seconds: number
}

export interface Proposal {
  readonly proposal_id: string
  readonly at: string
  readonly tenant_slug: string | null
  readonly proposed_by: string
  readonly proposed_by_name: string | null
  readonly tool: string
  readonly arguments: Readonly<Record<string, unknown>>
  readonly reason: string
  readonly effect: string
  readonly target: string | null
  readonly affected: Readonly<Record<string, number>>
  readonly previous_state: unknown
  readonly undo: string
  readonly risk: 'low' | 'medium' | 'high'
  readonly revision: number
  readonly state: 'open' | 'approved' | 'refused' | 'expired' | 'failed'
  readonly expires_at: string
  readonly decided_at: string | null
  readonly decided_by: string | null
  readonly decided_by_name: string | null
  readonly decided_via: 'api' | 'link' | null
  readonly note: string | null
  readonly change_id: string | null
  readonly failure: string | null
}

export interface Change {
  readonly change_id: string
  readonly at: string
  readonly state: 'pending' | 'made' | 'unconfirmed' | 'undone' | 'expired' | 'superseded'
  readonly actor: string
  readonly actor_name: string | null
  readonly tenant_id: number | null
  readonly tool: string
  readonly target_kind: string
  readonly target_id: string
  readonly reason: string | null
  readonly effect: string
  readonly before: unknown
  readonly after: unknown
  readonly is_reversible: boolean
  readonly is_state_kept: boolean
  readonly expires_at: string | null
  readonly undone_at: string | null
  readonly undone_by: string | null
  readonly undo_reason: string | null
  readonly proposal_id: string | null
}

export interface SpendGuard {
  readonly guard_id: string
  readonly scope: 'customer' | 'extension' | 'tenant'
  readonly scope_id: number
  readonly name: string | null
  readonly prefix: string
  readonly action: 'block' | 'cap'
  readonly amount_exact: string | null
  readonly currency: string | null
  readonly per: 'duration' | 'day' | null
  readonly used_exact: string | null
  readonly left_exact: string | null
  readonly state: 'active' | 'expired' | 'removed'
  readonly set_by: 'platform' | 'tenant'
  readonly reason: string
  readonly created_by: string
  readonly created_at: string
  readonly expires_at: string | null
  readonly ends_calls_before: string | null
  readonly removed_at: string | null
}

export interface CallPrice {
  readonly currency: string
  readonly connect_fee: string
  readonly first_increment: number
  readonly first_rate_per_minute: string
  readonly increment: number
  readonly rate_per_minute: string
  readonly decimals: number
}

export interface CallRecord {
  readonly call_uuid: string
  readonly caller_id_number: string
  readonly destination_number: string
  readonly start_stamp: string
  readonly billsec: number
  readonly disposition: 'ANSWERED' | 'NO ANSWER' | 'BUSY' | 'CANCELED' | 'FAILED' | 'CONGESTION'
  readonly mos_score: number | null
  readonly cost: number
  readonly cost_exact: string
  readonly currency: string | null
  readonly answer_stamp: string | null
  readonly end_stamp: string
  readonly duration: number
  readonly post_dial_delay_ms: number | null
  readonly sip_code: number
  readonly hangup_cause: string
  readonly hangup_by: 'caller' | 'callee' | 'system' | 'api'
  readonly denial_code: string | null
  readonly direction: 'inbound' | 'outbound' | 'internal'
  readonly set_id: number | null
  readonly node: string | null
  readonly instance: string | null
  readonly carrier: string | null
  readonly attempts: readonly {
    readonly destination: string
    readonly status: number
    readonly reason: string
    readonly start_stamp: string
    readonly end_stamp: string
  }[]
  readonly jitter_ms: number | null
  readonly packet_loss_pct: number | null
  readonly customer_id: number | null
  readonly tenant_slug: string | null
  readonly call_id: string
  readonly recovered: boolean
  readonly unauthorized_by_ocs: boolean
  readonly mos_source: 'measured' | 'computed' | 'reported' | null
  readonly media_quality: MediaQuality | null
  readonly recording: {
    readonly duration: number
    readonly bytes: number
    readonly sha256: string
  } | null
  readonly recording_error:
    'not_relayed' | 'relay_failed' | 'nothing_captured' | 'unknown_codec' | 'not_written' | null
  readonly denial_text: string | null
}

export interface LegPeer {
  readonly role: 'caller' | 'called' | null
  readonly name: string | null
  readonly address: string | null
}

export interface TraceMessage {
  readonly at: string
  readonly kind: 'message'
  readonly direction: 'received' | 'sent'
  readonly leg: number
  readonly transport: string
  readonly address: string
  readonly summary: string
  readonly text: string
}

export interface TraceDecision {
  readonly at: string
  readonly kind: 'decision'
  readonly what: string
  readonly detail: Readonly<Record<string, unknown>>
}

export interface DispatcherNode {
  readonly id: number
  readonly host: string
  readonly internal_port: number
  readonly external_port: number
  readonly weight: number
  readonly priority: number
  readonly description: string | null
  readonly transport: 'udp' | 'tcp' | 'tls'
  readonly is_enabled: boolean
  readonly max_calls: number
  readonly operator_state: 'active' | 'inactive'
  readonly destination: string
  readonly status: {
    readonly state: 'active' | 'probing' | 'inactive'
    readonly latency_ms: number | null
    readonly last_probe: {
      readonly at: string
      readonly status: number
      readonly reason: string
    } | null
    readonly probes: {
      readonly sent: number
      readonly answered: number
      readonly failed: number
    }
    readonly active_calls: number
  } | null
}

export interface DirectionSums {
  readonly calls: number
  readonly answered: number
  readonly billsec: number
  readonly asr_percent: number | null
  readonly acd_seconds: number | null
}

export interface Setting {
  readonly name: string
  readonly value: string | null
  readonly source: 'environment' | 'file' | 'default'
  readonly allowed: string
  readonly meaning: string
  readonly is_set: boolean
  readonly is_secret: boolean
  readonly when_unset: string
}

export interface MediaQuality {
  readonly caller: StreamQuality | null
  readonly callee: StreamQuality | null
}

export interface StreamQuality {
  readonly mos: number | null
  readonly mos_source: 'measured' | 'computed' | 'reported' | null
  readonly jitter_ms: number | null
  readonly packet_loss_pct: number | null
  readonly round_trip_ms: number | null
  readonly packets: number
}
