/**
 * The operations of the API and their types, from its OpenAPI document. Nobody writes here: `npm run client-operations`
 * writes it anew after a change of the API.
 */

export type ActiveCall = {
  /** Same value as `call_uuid`. */
  uuid: string
  call_uuid: string
  caller_id_number: string
  destination_number: string
  /** Seconds since the answer, or since the start before it. */
  duration_seconds: number
  state: 'DIALING' | 'RINGING' | 'EARLY' | 'ACTIVE' | 'HELD'
  direction: 'inbound' | 'outbound' | 'internal'
  start_stamp: string
  answer_stamp: string | null
  set_id: number | null
  node: string | null
  /** Node of this platform that has the call. */
  instance: string
  /** `inactive` when the node is being drained. The call continues until it ends. */
  node_state: 'active' | 'probing' | 'inactive' | null
  carrier: string | null
  /** Remote address of the caller leg. */
  caller_address: string | null
  /** Remote address of the callee leg. Null before the answer. */
  callee_address: string | null
  customer_id: number | null
  /** Null when the call was not transferred. */
  transfer: {
    state: 'transferring' | 'transferred' | 'failed'
    /** The related call: the call to the transfer destination, or the call being transferred. */
    call_uuid: string
    destination: string
    /** The SIP status with which the transfer failed. */
    sip_code: number | null
  } | null
  /** Whether the call is being recorded. */
  recording: boolean
  /** Cost if the call ended now. Null when another OCS charges the call. */
  cost: number | null
  cost_exact: string | null
  currency: string | null
  price: CallPrice | null
}

export type AdjustWalletBody = {
  /** Added to the balance; an adjustment may be negative. */
  amount: string | number
  reason: string
  kind?: 'adjust' | 'topup' | 'refund' | undefined
}

export type AiAgent = {
  id: number
  name: string
  tenant: string | null
  extension: string
  sip_uri: string
  description: string | null
  max_calls: number
  is_active: boolean
  /** Null: as the tenant says, then as MEDIA_POLICY says. */
  media: 'bypass' | 'prefer' | 'anchor' | null
  media_profile: 'auto' | 'rtp' | 'srtp' | 'webrtc'
  /** Null: all. */
  codecs: readonly string[] | null
  dtmf: 'auto' | 'rfc4733' | 'info'
  strip_headers: readonly string[]
  created_at: string
  updated_at: string
  active_calls: number
}

export type Anomalies = {
  start: string
  end: string
  /** The worst first; those that a change in force deals with last. */
  findings: readonly {
    kind:
      | 'spend'
      | 'destination'
      | 'wallet'
      | 'rate'
      | 'unknown_callers'
      | 'key_use'
      | 'node'
      | 'trunk'
      | 'registration'
      | 'capacity'
      | 'certificate'
      | 'payment'
    severity: 'critical' | 'high' | 'medium' | 'low'
    /** Such as "customer 7" or "key <uuid>". */
    subject: string
    /** With figures, against the past of the same subject. */
    what: string
    first_at: string
    last_at: string
    /** The numbers of `what`, and flags as 0 or 1. */
    figures: Readonly<Record<string, number>>
    /** Uuids of calls or keys, correlation ids of the audit log, addresses, or names of payments. */
    evidence: readonly string[]
    /** What to do about it, in a sentence. */
    advice: string
    /** The tool to ask next. */
    next: { tool: string; arguments: Readonly<Record<string, unknown>> }
    /** A change that can be undone. Null: a person has to act. Try it with dry_run. */
    first_step: { tool: string; arguments: Readonly<Record<string, unknown>> } | null
    /** The change in force that deals with it. Null: there is none. */
    handled_by: {
      /** For undo_change and list_changes. */
      change_id: string
      at: string
      /** The tool or the request that made it. */
      tool: string
      /** Who. Null: the credential lacks audit:read. */
      by: string | null
      reason: string | null
      /** When the platform undoes it. */
      expires_at: string | null
      /** It has gone on since: the change may not be enough. */
      seen_since: boolean
    } | null
    /** The change in force that made it so, such as a node taken out by hand. */
    caused_by: {
      /** For undo_change and list_changes. */
      change_id: string
      at: string
      /** The tool or the request that made it. */
      tool: string
      /** Who. Null: the credential lacks audit:read. */
      by: string | null
      reason: string | null
      /** When the platform undoes it. */
      expires_at: string | null
    } | null
  }[]
  total: number
  /** Of `total`, those that a change in force deals with. */
  handled: number
  /** False: there is more; ask again with the cursor. */
  complete: boolean
  /** For what comes next. Null: these are the last. */
  cursor: string | null
  searched: readonly (
    | 'spend'
    | 'destination'
    | 'wallet'
    | 'rate'
    | 'unknown_callers'
    | 'key_use'
    | 'node'
    | 'trunk'
    | 'registration'
    | 'capacity'
    | 'certificate'
    | 'payment'
  )[]
  /** Kinds for which the credential has no scope. */
  skipped: readonly {
    kind:
      | 'spend'
      | 'destination'
      | 'wallet'
      | 'rate'
      | 'unknown_callers'
      | 'key_use'
      | 'node'
      | 'trunk'
      | 'registration'
      | 'capacity'
      | 'certificate'
      | 'payment'
    needs: string
  }[]
}

export type ApplicationKey = {
  uuid: string
  kind: 'sbc' | 'pbx' | 'billing'
  name: string
  description: string | null
  /** The first 12 characters of the token. */
  key_prefix: string
  scopes: readonly string[]
  rate_limit_rpm: number
  expires_at: string | null
  is_active: boolean
  state: 'active' | 'inactive' | 'suspended' | 'expired' | 'revoked'
  /** Until it is resumed. */
  suspended_at: string | null
  revoked_at: string | null
  tenant_scope: 'global' | 'tenant'
  tenant_slug: string | null
  domain: string | null
  allowed_ips: readonly string[]
  owner_username: string | null
  request_count: number
  last_used_at: string | null
  created_at: string
}

export type ApproveProposalBody = {
  /** `revision` of the proposal as it was read: only what it showed is approved. */
  revision: number
  /** What the agent and others read beside it. */
  note?: string | undefined
}

export type AssignPaymentBody = {
  /** Id or exact name. */
  customer: number | string
  /** Amount to credit, in the currency of the wallet. Absent: that of the payment, which needs the same currency and no refund. */
  amount?: string | number | undefined
}

export type AuditEntry = {
  id: number
  at: string
  /** `key:<uuid>`, `user:<username>`, `customer:<id>`, `anonymous`, `console` or `platform`. */
  actor: string
  /** For a key: its name at that time. */
  actor_name: string | null
  /** For a key: the start of its token at that time. */
  actor_key_prefix: string | null
  tenant_id: number | null
  address: string
  action: string
  target: string
  outcome: 'success' | 'refused' | 'failed'
  status: number
  /** Of a refusal; `idempotency_replayed`: the answer to an `Idempotency-Key` was given again, and nothing was done. */
  code: string | null
  /** SHA-256 of the resource as the API shows it. */
  before_digest: string | null
  after_digest: string | null
  correlation_id: string
  /** Of the change that was made or undone. */
  change_id: string | null
  /** Of that change, in a sentence. */
  effect: string | null
  /** As given with the change. */
  reason: string | null
  /** The call of a tool, or by a key that names a scope of MCP. */
  is_agent: boolean
}

export type Ban = {
  /** An IPv4 address or an IPv6 network. */
  source: string
  /** Of a lock: the account whose passwords are not checked from there. Null: a ban. */
  account: string | null
  /** `wrong_passwords`: too many for one account. */
  reason: 'password_guessing' | 'unknown_calls' | 'operator' | 'wrong_passwords'
  since: string
  until: string
  dropped_packets: number
}

export type BillingAlert = {
  id: number
  kind:
    | 'unknown_customer'
    | 'currency_mismatch'
    | 'amount_mismatch'
    | 'unreadable_event'
    | 'balance_out_of_range'
    | 'resolved_before'
    | 'refund'
    | 'dispute'
    | 'subscription_ended'
  event_id: string
  event_kind: string
  customer_id: number | null
  reference: string | null
  amount: number | null
  amount_exact: string | null
  currency: string | null
  detail: string
  created_at: string
  resolved_at: string | null
  resolved_by: string | null
  /** It can be assigned to a customer, who is credited. */
  assignable: boolean
}

export type CallPrice = {
  currency: string
  connect_fee: string
  /** Seconds. */
  first_increment: number
  first_rate_per_minute: string
  /** Seconds. */
  increment: number
  rate_per_minute: string
  /** To which the price is rounded up. */
  decimals: number
}

export type CallRecord = {
  call_uuid: string
  caller_id_number: string
  destination_number: string
  start_stamp: string
  billsec: number
  disposition: 'ANSWERED' | 'NO ANSWER' | 'BUSY' | 'CANCELED' | 'FAILED' | 'CONGESTION'
  /** 1 to 4.5, of the worse direction. Null when nothing is known. */
  mos_score: number | null
  /** Null: a customer of the platform pays, and a credential of the tenant asks. */
  cost: number | null
  cost_exact: string | null
  currency: string | null
  answer_stamp: string | null
  end_stamp: string
  duration: number
  post_dial_delay_ms: number | null
  sip_code: number
  hangup_cause: string
  hangup_by: 'caller' | 'callee' | 'system' | 'api'
  denial_code: string | null
  direction: 'inbound' | 'outbound' | 'internal'
  set_id: number | null
  node: string | null
  /** Node of this platform that had the call. Null when an earlier version recorded it, or another system reported it. */
  instance: string | null
  carrier: string | null
  attempts: readonly {
    destination: string
    status: number
    reason: string
    start_stamp: string
    end_stamp: string
  }[]
  jitter_ms: number | null
  packet_loss_pct: number | null
  customer_id: number | null
  tenant_slug: string | null
  call_id: string
  recovered: boolean
  unauthorized_by_ocs: boolean
  mos_source: 'measured' | 'computed' | 'reported' | null
  media_quality: MediaQuality | null
  recording: {
    /** Seconds. */
    duration: number
    bytes: number
    /** Of the file, in hexadecimal digits. */
    sha256: string
  } | null
  recording_error:
    'not_relayed' | 'relay_failed' | 'nothing_captured' | 'unknown_codec' | 'not_written' | null
  /** Why the platform refused or ended the call, and what to do: one sentence. Null: it did not. `/guide#denial-<code>` is the entry of the guide. */
  denial_text: string | null
}

export type CallReport = {
  /** Calls that match the filter, on all pages. */
  total_calls: number
  total_billsec: number
  /** Calls of the period that were refused without a record. Absent when there are none, when a filter is set, and for tenant credentials. */
  total_refused?: { unknown_source: number; overload: number } | undefined
  records: readonly CallRecord[]
  /** True when the list was cut at 10,000 records because `page` was absent. */
  truncated?: true | undefined
  meta?: { page: number; limit: number; total: number } | undefined
}

export type CallStatus = {
  call_uuid: string
  status:
    | 'originating'
    | 'ringing'
    | 'answered'
    | 'completed'
    | 'busy'
    | 'no_answer'
    | 'failed'
    | 'canceled'
  caller_id_number: string
  destination_number: string
  direction: 'inbound' | 'outbound' | 'internal'
  start_stamp: string
  answer_stamp: string | null
  end_stamp: string | null
  billsec: number | null
  disposition: 'ANSWERED' | 'NO ANSWER' | 'BUSY' | 'CANCELED' | 'FAILED' | 'CONGESTION' | null
  sip_code: number | null
  hangup_cause: string | null
  hangup_by: 'caller' | 'callee' | 'system' | 'api' | null
  denial_code: string | null
  /** Why the platform refused or ended the call, and what to do: one sentence. Null: it did not. `/guide#denial-<code>` is the entry of the guide. */
  denial_text: string | null
  /** Null when the call was not transferred. */
  transfer: {
    state: 'transferring' | 'transferred' | 'failed'
    /** The related call: the call to the transfer destination, or the call being transferred. */
    call_uuid: string
    destination: string
    /** The SIP status with which the transfer failed. */
    sip_code: number | null
  } | null
}

export type CallSummary = {
  /** Later than asked for when not complete. */
  start: string
  end: string
  /** False: calls before start were not read. Ask for a shorter period. */
  complete: boolean
  /** For the next groups, of totals.groups. Null: these are the last. */
  cursor: string | null
  /** Kept sums of days, or single records. */
  source: 'sums' | 'records'
  /** Of all groups, listed or not. */
  totals: {
    groups: number
    calls: number
    answered: number
    /** Refused by the platform. */
    denied: number
    /** Failed, and neither refused by the platform, busy, cancelled nor unanswered. */
    failed: number
    /** Answered of all. */
    asr_percent: number | null
    billsec: number
    /** Exact amount by currency. */
    cost: Readonly<Record<string, string>>
    /** Mean post-dial delay. */
    mean_pdd_ms: number | null
    first_call: string | null
    last_call: string | null
  }
  /** Calls of groups that are too many to be kept apart: only in totals. */
  other_calls: number
  groups: readonly {
    /** Null: calls without one. */
    group: string | null
    /** Of a customer; slug of a tenant. */
    name: string | null
    calls: number
    answered: number
    /** Refused by the platform. */
    denied: number
    /** Failed, and neither refused by the platform, busy, cancelled nor unanswered. */
    failed: number
    /** Answered of all. */
    asr_percent: number | null
    billsec: number
    /** Exact amount by currency. */
    cost: Readonly<Record<string, string>>
    /** Mean post-dial delay. */
    mean_pdd_ms: number | null
    first_call: string | null
    last_call: string | null
    /** The dearest, the first and the last call. */
    call_uuids: readonly string[]
  }[]
}

export type CallToolBody = Readonly<Record<string, unknown>>

export type CallTrace = {
  call_uuid: string
  /** Call-IDs of the legs; the first belongs to the caller leg. */
  legs: readonly string[]
  /** Who is at the far end of each leg. */
  peers: readonly LegPeer[]
  /** False when the first messages are no longer stored. */
  is_complete: boolean
  entries: readonly (TraceMessage | TraceDecision)[]
}

export type Carrier = {
  id: number
  name: string
  tenant: string | null
  customer_id: number | null
  customer: string | null
  payer: 'customer' | 'from_number'
  is_active: boolean
  direction: 'in' | 'out' | 'both'
  gateways: readonly {
    id: number
    host: string
    port: number
    transport: 'udp' | 'tcp' | 'tls'
    netmask: number
    inbound: boolean
    outbound: boolean
    priority: number
    weight: number
    /** Null when the gateway is not probed. */
    status: {
      state: 'active' | 'probing' | 'inactive'
      /** Smoothed round-trip time of the probes. */
      latency_ms: number | null
      last_probe: {
        at: string
        /** 0 when there was no response; `reason` says why. */
        status: number
        reason: string
      } | null
      probes: { sent: number; answered: number; failed: number }
    } | null
  }[]
  auth: {
    type: 'ip' | 'digest' | 'register'
    username: string | null
    realm: string | null
    from_user: string | null
    from_domain: string | null
    expires: number | null
  }
  caller_id: { mode: 'pass' | 'fixed' | 'pai'; value: string | null }
  number_rules: {
    in: readonly { match: string; replace: string }[]
    out: readonly { match: string; replace: string }[]
  }
  media: 'bypass' | 'prefer' | 'anchor'
  media_profile: 'auto' | 'rtp' | 'srtp' | 'webrtc'
  /** Null: all. */
  codecs: readonly string[] | null
  dtmf: 'auto' | 'rfc4733' | 'info'
  strip_headers: readonly string[]
  max_calls: number
  max_cps: number
  rate_plan_id: number | null
  rate_plan: string | null
  inbound_set_id: number | null
  created_at: string
  updated_at: string
  /** Null when the carrier requires no registration. */
  registration: 'registered' | 'unregistered' | 'registering' | 'failed' | null
  status: {
    is_usable: boolean
    active_calls: number
    registration: {
      registrar: string
      expires_at: string | null
      next_attempt_at: string | null
      last_answer: { at: string; status: number; reason: string } | null
    } | null
  }
}

export type CarrierSums = { carrier: string; outbound: DirectionSums; inbound: DirectionSums }

export type Change = {
  change_id: string
  at: string
  /** `made`: it stands. `superseded`: its time ran out after a later change. `unconfirmed`: the process ended while it was made. */
  state: 'pending' | 'made' | 'unconfirmed' | 'undone' | 'expired' | 'superseded'
  /** As in the audit log. */
  actor: string
  actor_name: string | null
  tenant_id: number | null
  tool: string
  target_kind: string
  target_id: string
  reason: string | null
  effect: string
  /** JSON; null: it is not there. */
  before: unknown
  /** JSON; null: it is not there. */
  after: unknown
  is_reversible: boolean
  /** False: `before` and `after` have the names of the fields, and no values: they were too long, or have given way to later changes. */
  is_state_kept: boolean
  /** When the platform undoes it. */
  expires_at: string | null
  undone_at: string | null
  undone_by: string | null
  undo_reason: string | null
  proposal_id: string | null
}

export type ChangeOwnPasswordBody = { old_password: string; new_password: string }

export type ChangedKey = {
  dry_run: boolean
  /** False: it was so already. In a dry run: whether it would change. */
  changed: boolean
  /** For undo_change; null when nothing was changed. */
  change_id: string | null
  effect: string
  affected: Readonly<Record<string, number>>
  previous_state: unknown
  /** How it is undone, or that it cannot be. */
  undo: string
  /** When the platform undoes it. */
  expires_at: string | null
  key: ApplicationKey
}

export type ControlRecordingBody = { call_uuid: string; action: 'start' | 'stop' }

export type CreateAIAgentBody = {
  name: string
  /** The number of the agent. */
  extension: string
  /** SIP URI to which its calls are sent. */
  sip_uri: string
  description?: string | null | undefined
  /** 0: unlimited. Further callers get 503. */
  max_calls?: number | undefined
  is_active?: boolean | undefined
  /** Absent: a platform agent, available to every tenant. */
  tenant?: number | string | null | undefined
  /** Whether media passes a relay: `anchor` always, `prefer` when one is alive, `bypass` only where it could not flow otherwise. Null: as the tenant says, then as MEDIA_POLICY says. The stronger of both parties counts. */
  media?: 'bypass' | 'prefer' | 'anchor' | null | undefined
  /** What its calls are offered: RTP, SRTP (SDES), or DTLS-SRTP with ICE. */
  media_profile?: 'auto' | 'rtp' | 'srtp' | 'webrtc' | undefined
  /** The only audio codecs, the preferred first; the relay transcodes where the other party has none of them. Null: all. */
  codecs?: readonly string[] | null | undefined
  /** How it takes digits: as RFC 4733 events in RTP, or as SIP INFO. */
  dtmf?: 'auto' | 'rfc4733' | 'info' | undefined
  /** Headers that are not sent to it, in any case. */
  strip_headers?: readonly string[] | undefined
  /** Fills in the fields for an AI voice service that have their default: TLS, SRTP, codecs, DTMF and headers to strip. */
  preset?: 'ai-openai' | 'ai-livekit' | 'ai-generic' | undefined
}

export type CreateApplicationKeyBody = {
  name: string
  description?: string | null | undefined
  scopes?: readonly string[] | undefined
  /** Defaults to 1200. Cannot exceed the limit of the creating credential. */
  rate_limit_rpm?: number | undefined
  /** Null: never. Absent: with the creating credential, or never. */
  expires_at?: string | null | undefined
  is_active?: boolean | undefined
  tenant_scope?: 'global' | 'tenant' | undefined
  tenant_slug?: string | undefined
  domain?: string | null | undefined
  kind?: 'sbc' | 'pbx' | 'billing' | undefined
  /** Absent: the addresses of the creating credential, or any. */
  allowed_ips?: readonly string[] | undefined
}

export type CreateBanBody = { address: string; duration_seconds?: number | undefined }

export type CreateCarrierBody = {
  name: string
  tenant?: number | string | null | undefined
  /** The customer that pays for calls from this carrier. */
  customer?: number | string | null | undefined
  customer_id?: number | string | null | undefined
  /** The payer of calls from this carrier. `customer`: the carrier’s customer. `from_number`, only without a customer: the customer that owns the number in From, within the carrier’s tenant if it has one. */
  payer?: 'customer' | 'from_number' | undefined
  is_active?: boolean | undefined
  direction?: 'in' | 'out' | 'both' | undefined
  gateways: readonly {
    host: string
    /** 0: use the SRV records of the host, else port 5060 (5061 for TLS), and accept calls from any port. */
    port?: number | undefined
    transport?: 'udp' | 'tcp' | 'tls' | undefined
    /** Prefix length of the source network. Defaults to the single address. */
    netmask?: number | undefined
    inbound?: boolean | undefined
    outbound?: boolean | undefined
    /** A lower number is preferred. */
    priority?: number | undefined
    weight?: number | undefined
  }[]
  auth?:
    | {
        /** How the platform authenticates to the carrier: by IP address, by digest, or by registration. */
        type?: 'ip' | 'digest' | 'register' | undefined
        /** Required for `digest` and `register`. */
        username?: string | null | undefined
        /** Write only. Absent in an update: keeps the stored password; null clears it. */
        password?: string | null | undefined
        /** Only challenges of this realm are answered. Absent: any realm. */
        realm?: string | null | undefined
        /** User part of the From header. Defaults to the caller. */
        from_user?: string | null | undefined
        /** Host part of the From header. Defaults to the platform’s address. */
        from_domain?: string | null | undefined
        /** Requested registration lifetime in seconds. Defaults to 3600. */
        expires?: number | null | undefined
      }
    | undefined
  caller_id?:
    { mode?: 'pass' | 'fixed' | 'pai' | undefined; value?: string | null | undefined } | undefined
  number_rules?:
    | {
        in?: readonly { match: string; replace: string }[] | undefined
        out?: readonly { match: string; replace: string }[] | undefined
      }
    | undefined
  /** Whether media passes a relay: `anchor` always, `prefer` when one is alive, `bypass` only where it could not flow otherwise. Null: as the tenant says, then as MEDIA_POLICY says. The stronger of both parties counts. */
  media?: 'bypass' | 'prefer' | 'anchor' | undefined
  /** What its calls are offered: RTP, SRTP (SDES), or DTLS-SRTP with ICE. */
  media_profile?: 'auto' | 'rtp' | 'srtp' | 'webrtc' | undefined
  /** The only audio codecs, the preferred first; the relay transcodes where the other party has none of them. Null: all. */
  codecs?: readonly string[] | null | undefined
  /** How it takes digits: as RFC 4733 events in RTP, or as SIP INFO. */
  dtmf?: 'auto' | 'rfc4733' | 'info' | undefined
  /** Headers that are not sent to it, in any case. */
  strip_headers?: readonly string[] | undefined
  /** Fills in the fields for an AI voice service that have their default: TLS, SRTP, codecs, DTMF and headers to strip. */
  preset?: 'ai-openai' | 'ai-livekit' | 'ai-generic' | undefined
  /** 0: unlimited. */
  max_calls?: number | undefined
  /** 0: unlimited. */
  max_cps?: number | undefined
  /** Prices of the carrier, compared by routes with mode "lcr". */
  rate_plan?: number | string | null | undefined
  rate_plan_id?: number | string | null | undefined
  /** Number or name of the dispatcher set for its calls. Absent: inbound routes decide. */
  inbound_set?: number | string | null | undefined
  inbound_set_id?: number | string | null | undefined
}

export type CreateCustomerBody = {
  name: string
  tenant?: number | string | null | undefined
  email?: string | null | undefined
  /** Write only: the login of the edge. Null removes the login. */
  password?: string | null | undefined
  is_active?: boolean | undefined
  rate_plan?: number | string | null | undefined
  rate_plan_id?: number | string | null | undefined
  numbers?: readonly string[] | undefined
  /** How far the balance may go below zero. */
  credit_limit?: string | number | undefined
  /** 0: unlimited, here and in the next three fields. */
  max_concurrent_calls?: number | undefined
  /** Calls per second. */
  max_cps?: number | undefined
  max_daily_spend?: string | number | undefined
  max_call_seconds?: number | undefined
  low_balance_threshold?: string | number | undefined
  /** Absent: the rate plan's, or USD. */
  currency?: string | null | undefined
  /** Credited once, the first time that it is given. */
  balance?: string | number | undefined
}

export type CreateDispatcherNodeBody = {
  host: string
  /** Port to which calls and probes are sent. */
  internal_port?: number | undefined
  /** A second port from which calls of the node are accepted. */
  external_port?: number | undefined
  weight?: number | undefined
  /** A lower number is preferred. */
  priority?: number | undefined
  description?: string | null | undefined
  transport?: 'udp' | 'tcp' | 'tls' | undefined
  is_enabled?: boolean | undefined
  /** 0: unlimited. */
  max_calls?: number | undefined
}

export type CreateDispatcherSetBody = {
  endpoint_name: string
  algorithm: 8 | 4 | 9 | 6 | 0 | string
  /** Defaults to the lowest free number. */
  set_id?: number | undefined
  tenant?: number | string | null | undefined
  nodes: readonly {
    host: string
    /** Port to which calls and probes are sent. */
    internal_port?: number | undefined
    /** A second port from which calls of the node are accepted. */
    external_port?: number | undefined
    weight?: number | undefined
    /** A lower number is preferred. */
    priority?: number | undefined
    description?: string | null | undefined
    transport?: 'udp' | 'tcp' | 'tls' | undefined
    is_enabled?: boolean | undefined
    /** 0: unlimited. */
    max_calls?: number | undefined
  }[]
  probe?:
    | {
        interval_ms?: number | undefined
        timeout_ms?: number | undefined
        fail_threshold?: number | undefined
        recover_threshold?: number | undefined
        ok_codes?: readonly (number | string)[] | undefined
      }
    | null
    | undefined
  /** Receives calls that no phone of the tenant answers. The tenant’s set with the lowest number counts. */
  voicemail_uri?: string | null | undefined
  /** SIP URI at which a supervisor joins a call. Must contain {call_uuid}; may contain {mode}, {side} and {node}. */
  spy_uri?: string | null | undefined
  /** Whether media passes a relay: `anchor` always, `prefer` when one is alive, `bypass` only where it could not flow otherwise. Null: as the tenant says, then as MEDIA_POLICY says. The stronger of both parties counts. */
  media?: 'bypass' | 'prefer' | 'anchor' | null | undefined
  /** What its calls are offered: RTP, SRTP (SDES), or DTLS-SRTP with ICE. */
  media_profile?: 'auto' | 'rtp' | 'srtp' | 'webrtc' | undefined
  /** The only audio codecs, the preferred first; the relay transcodes where the other party has none of them. Null: all. */
  codecs?: readonly string[] | null | undefined
  /** How it takes digits: as RFC 4733 events in RTP, or as SIP INFO. */
  dtmf?: 'auto' | 'rfc4733' | 'info' | undefined
}

export type CreateExtensionBody = {
  extension: string
  /** Required at creation. Write only: stored as digest secrets. */
  password: string
  display_name: string
  voicemail_enabled?: boolean | undefined
  /** Whether calls are recorded, where recording is set up. */
  call_recording?: 'always' | 'never' | 'on_demand' | undefined
  email?: string | null | undefined
  tenant?: number | string | null | undefined
  /** Absent: the domain of the key, or the only one of the tenant; required where it has several. */
  domain?: string | null | undefined
  /** The customer that pays for its calls. */
  customer?: number | string | null | undefined
  customer_id?: number | string | null | undefined
  /** Whether media passes a relay: `anchor` always, `prefer` when one is alive, `bypass` only where it could not flow otherwise. Null: as the tenant says, then as MEDIA_POLICY says. The stronger of both parties counts. */
  media?: 'bypass' | 'prefer' | 'anchor' | null | undefined
  /** What its calls are offered: RTP, SRTP (SDES), or DTLS-SRTP with ICE. */
  media_profile?: 'auto' | 'rtp' | 'srtp' | 'webrtc' | undefined
  /** The only audio codecs, the preferred first; the relay transcodes where the other party has none of them. Null: all. */
  codecs?: readonly string[] | null | undefined
  /** How it takes digits: as RFC 4733 events in RTP, or as SIP INFO. */
  dtmf?: 'auto' | 'rfc4733' | 'info' | undefined
}

export type CreateInboundRouteBody = {
  name: string
  tenant?: number | string | null | undefined
  /** Absent: any carrier. */
  carrier?: number | string | null | undefined
  carrier_id?: number | string | null | undefined
  /** Start of the called number; absent: every number. */
  prefix?: string | null | undefined
  /** Domain of the Request-URI. Absent: every domain. */
  domain?: string | null | undefined
  /** A lower number is preferred. */
  priority?: number | undefined
  is_active?: boolean | undefined
  /** Number or name of a dispatcher set. */
  set?: number | string | null | undefined
  set_id?: number | string | null | undefined
  extension?: string | null | undefined
  /** Domain of the extension. May be absent if only one domain has the extension. */
  extension_domain?: string | null | undefined
  /** Name of an AI agent. */
  agent?: string | null | undefined
}

export type CreateOutboundRouteBody = {
  name: string
  tenant?: number | string | null | undefined
  /** Absent: every customer. */
  customer?: number | string | null | undefined
  customer_id?: number | string | null | undefined
  /** Required unless mode is "block". */
  carrier?: number | string | null | undefined
  carrier_id?: number | string | null | undefined
  /** Start of the called number; empty: every number. */
  prefix?: string | undefined
  /** A lower number is preferred. */
  priority?: number | undefined
  weight?: number | undefined
  /** Routes with mode "lcr" and the same prefix are tried in order of carrier price. */
  mode?: 'static' | 'lcr' | 'block' | undefined
  /** Number of digits removed from the start of the number. */
  strip?: number | undefined
  /** Added at the start of the number, after `strip`. */
  prepend?: string | undefined
  is_active?: boolean | undefined
  /** Emergency calls skip the wallet and all limits. */
  emergency?: boolean | undefined
}

export type CreateRateBody = {
  rate_plan?: number | string | null | undefined
  rate_plan_id?: number | string | null | undefined
  /** The tenant of the plan; needed where several tenants have a plan of this name. */
  tenant?: number | string | null | undefined
  /** Start of the called number; empty: every number. */
  prefix: string
  description?: string | null | undefined
  rate_per_minute: string | number
  connect_fee?: string | number | undefined
  /** The least number of seconds that is charged. */
  first_increment?: number | undefined
  /** Price of the first increment; absent: `rate_per_minute`. */
  first_rate_per_minute?: string | number | undefined
  /** Seconds of each further step that is charged. */
  increment?: number | undefined
  /** Calls to this prefix are refused. */
  blocked?: boolean | undefined
  effective_from?: string | null | undefined
  /** The first moment at which the rate no longer applies. */
  effective_to?: string | null | undefined
}

export type CreateRatePlanBody = {
  name: string
  tenant?: number | string | null | undefined
  currency?: string | undefined
  /** Prices are rounded up to these decimals. */
  decimals?: number | undefined
}

export type CreateTenantBody = {
  slug: string
  /** Display name. Defaults to the slug. */
  name?: string | undefined
  is_active?: boolean | undefined
  domains?: readonly string[] | undefined
  /** Numbers of the tenant, or prefixes of number blocks. The tenant may route calls to them from platform carriers. */
  numbers?: readonly string[] | undefined
  /** Whether media passes a relay: `anchor` always, `prefer` when one is alive, `bypass` only where it could not flow otherwise. Null: as the tenant says, then as MEDIA_POLICY says. The stronger of both parties counts. */
  media?: 'bypass' | 'prefer' | 'anchor' | null | undefined
  /** What its calls are offered: RTP, SRTP (SDES), or DTLS-SRTP with ICE. */
  media_profile?: 'auto' | 'rtp' | 'srtp' | 'webrtc' | undefined
  /** The only audio codecs, the preferred first; the relay transcodes where the other party has none of them. Null: all. */
  codecs?: readonly string[] | null | undefined
  /** How it takes digits: as RFC 4733 events in RTP, or as SIP INFO. */
  dtmf?: 'auto' | 'rfc4733' | 'info' | undefined
}

export type CreateUserBody = {
  username: string
  password: string
  role: 'admin' | 'operator' | 'auditor'
  tenant_slug?: string | null | undefined
  is_active?: boolean | undefined
}

export type CreateWebhookEndpointBody = {
  url: string
  events?:
    | readonly (
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
        | 'payment.alert'
      )[]
    | undefined
  description?: string | null | undefined
  is_active?: boolean | undefined
  /** Whether `proposal.created` has `approve_url`: who follows it decides with the rights of the user who has set this. */
  approval_links?: boolean | undefined
  tenant?: number | string | null | undefined
}

export type Customer = {
  id: number
  name: string
  tenant: string | null
  email: string | null
  has_password: boolean
  is_active: boolean
  rate_plan_id: number | null
  rate_plan: string | null
  numbers: readonly string[]
  credit_limit: number
  max_concurrent_calls: number
  max_cps: number
  max_daily_spend: number
  max_call_seconds: number
  low_balance_threshold: number
  /** The balance is below the threshold, or the next call would be refused. */
  is_balance_low: boolean
  /** ISO 4217. */
  currency: string
  /** Exact amount. */
  balance: string
  balance_number: number
  created_at: string
  updated_at: string
}

export type DirectionSums = {
  calls: number
  answered: number
  billsec: number
  /** Answered of all. Null without a call. */
  asr_percent: number | null
  /** The mean call. Null without an answered one. */
  acd_seconds: number | null
}

export type DispatcherNode = {
  id: number
  host: string
  internal_port: number
  external_port: number
  weight: number
  priority: number
  description: string | null
  transport: 'udp' | 'tcp' | 'tls'
  is_enabled: boolean
  max_calls: number
  /** The state that an operator set. */
  operator_state: 'active' | 'inactive'
  destination: string
  /** Current health as the engine sees it. Null when the node is disabled. */
  status: {
    state: 'active' | 'probing' | 'inactive'
    /** Smoothed round-trip time of the probes. */
    latency_ms: number | null
    last_probe: {
      at: string
      /** 0 when there was no response; `reason` says why. */
      status: number
      reason: string
    } | null
    probes: { sent: number; answered: number; failed: number }
    /** Live calls on this node. A drained node can be stopped when this is 0. */
    active_calls: number
  } | null
}

export type DispatcherNodeHistory = {
  node: {
    id: number
    set_id: number
    destination: string
    state: 'active' | 'probing' | 'inactive'
    active_calls: number
  }
  /** When it went out of service first, on any node of the platform. Null: it is active. */
  down_since: string | null
  down_because: string | null
  /** Status 0: no answer. */
  last_probe: { at: string; status: number; reason: string } | null
  /** Newest first. */
  changes: readonly {
    at: string
    from: string
    to: string
    cause: 'probe' | 'call' | 'operator' | 'reload' | 'register'
    reason: string
    /** The operator, as in the audit log. */
    by: string | null
    /** The instance of Tollgate. */
    seen_by: string
  }[]
  /** The period has older changes. */
  has_older: boolean
  /** False: there is more; ask again with the cursor. */
  complete: boolean
  /** For what comes next. Null: these are the last. */
  cursor: string | null
}

export type DispatcherNodeInState = {
  id: number
  host: string
  internal_port: number
  external_port: number
  weight: number
  priority: number
  description: string | null
  transport: 'udp' | 'tcp' | 'tls'
  is_enabled: boolean
  max_calls: number
  /** The state that an operator set. */
  operator_state: 'active' | 'inactive'
  destination: string
  /** Current health as the engine sees it. Null when the node is disabled. */
  status: {
    state: 'active' | 'probing' | 'inactive'
    /** Smoothed round-trip time of the probes. */
    latency_ms: number | null
    last_probe: {
      at: string
      /** 0 when there was no response; `reason` says why. */
      status: number
      reason: string
    } | null
    probes: { sent: number; answered: number; failed: number }
    /** Live calls on this node. A drained node can be stopped when this is 0. */
    active_calls: number
  } | null
  state: 'active' | 'probing' | 'inactive'
  /** Null: it was so already. */
  change_id: string | null
}

export type DispatcherSet = {
  id: number
  set_id: number
  endpoint_name: string
  algorithm: 8 | 4 | 9 | 6 | 0
  tenant: string | null
  probe: {
    interval_ms?: number | undefined
    timeout_ms?: number | undefined
    fail_threshold?: number | undefined
    recover_threshold?: number | undefined
    ok_codes?: readonly string[] | undefined
  } | null
  voicemail_uri: string | null
  spy_uri: string | null
  /** Null: as the tenant says, then as MEDIA_POLICY says. */
  media: 'bypass' | 'prefer' | 'anchor' | null
  media_profile: 'auto' | 'rtp' | 'srtp' | 'webrtc'
  /** Null: all. */
  codecs: readonly string[] | null
  dtmf: 'auto' | 'rfc4733' | 'info'
  nodes: readonly DispatcherNode[]
  created_at: string
  updated_at: string
}

export type Event = {
  id: string
  type:
    | 'call.started'
    | 'call.ringing'
    | 'call.answered'
    | 'call.ended'
    | 'call.transferring'
    | 'call.transferred'
    | 'call.transfer_failed'
    | 'recording.started'
    | 'recording.stopped'
    | 'recording.ready'
    | 'recording.failed'
    | 'node.down'
    | 'node.up'
    | 'registration'
    | 'node.lost'
    | 'node.recovered'
    | 'node.fenced'
    | 'relay.down'
    | 'relay.up'
    | 'relay.restarted'
    | 'storage.failed'
    | 'storage.recovered'
    | 'proposal.created'
    | 'proposal.decided'
    | 'payment.alert'
  data: { at: string } & Readonly<Record<string, unknown>>
}

export type Extension = {
  id: number
  extension: string
  display_name: string
  voicemail_enabled: boolean
  status: 'registered' | 'unregistered'
  /** User-Agent of the phone that registered last; empty when there is none. */
  user_agent: string
}

export type ExtensionDetails = {
  id: number
  extension: string
  domain: string
  tenant: string
  display_name: string
  email: string | null
  customer_id: number | null
  customer: string | null
  voicemail_enabled: boolean
  call_recording: 'always' | 'never' | 'on_demand'
  /** Null: as the tenant says, then as MEDIA_POLICY says. */
  media: 'bypass' | 'prefer' | 'anchor' | null
  media_profile: 'auto' | 'rtp' | 'srtp' | 'webrtc'
  /** Null: all. */
  codecs: readonly string[] | null
  dtmf: 'auto' | 'rfc4733' | 'info'
  created_at: string
  updated_at: string
  /** Whether each call is recorded: `call_recording` is `always`, and recording is set up. */
  recording_active: boolean
  status: 'registered' | 'unregistered'
  /** Where its phones register, and send their calls: SIP URIs of this process. */
  registrars: readonly string[]
  contacts: readonly {
    uri: string
    user_agent: string
    source: string
    /** The node that took the REGISTER; null: one of an earlier version. */
    node: string | null
    expires_at: string
  }[]
}

export type Failures = {
  start: string
  end: string
  calls: {
    total: number
    answered: number
    /** Not answered, and not refused by the platform. */
    failed: number
    /** By denial_code. */
    refused: Readonly<Record<string, number>>
  }
  /** Of keys, whole hours. */
  api_requests: { total: number; failed: number }
  /** Most frequent first; whole hours. */
  api_failures: readonly {
    route: string
    /** The code of the error, or its status. */
    code: string
    /** Uuid. Null: no key, or one that the credential may not see. */
    key: string | null
    requests: number
    first_at: string
    last_at: string
  }[]
  /** Of this period, listed or not. */
  api_failures_total: number
  /** False: only the most frequent are listed. Raise limit, or ask for a shorter period. */
  complete: boolean
}

export type HangUpCallBody = { call_uuid: string; cause?: number | undefined }

export type Health = { status: 'ok'; service: string; version: string }

export type ImportReport = {
  imported: number
  created: number
  updated: number
  removed: number
  /** Such as a rate that prices every number. Absent: there are none. */
  warnings?: readonly string[] | undefined
}

export type InboundRoute = {
  id: number
  name: string
  tenant: string | null
  carrier_id: number | null
  carrier: string | null
  prefix: string | null
  domain: string | null
  priority: number
  is_active: boolean
  set_id: number | null
  extension: string | null
  extension_domain: string | null
  agent: string | null
  created_at: string
}

export type KeyActivity = {
  uuid: string
  name: string
  state: 'active' | 'inactive' | 'suspended' | 'expired' | 'revoked'
  /** Last seen first, of the period and before: those used most, and those seen last. */
  addresses: readonly {
    address: string
    /** First seen in the period. */
    is_new: boolean
    first_at: string
    last_at: string
    /** Since first_at, refused ones included. */
    requests: number
    /** Of them those refused with 401, 403 or 429. */
    denied: number
  }[]
  routes: readonly { route: string; requests: number; failed: number }[]
  /** Whatever was not carried out, most attempts first. */
  refused: readonly {
    /** A route, or `tool` and its name. */
    what: string
    code: string
    attempts: number
    first_at: string
    last_at: string
  }[]
  /** What it has changed, newest first. */
  changes: readonly {
    at: string
    action: string
    target: string
    address: string
    correlation_id: string
  }[]
  /** Hours with requests, newest first. */
  hours: readonly { at: string; requests: number; failed: number }[]
  /** Of each list, listed or not. */
  totals: { addresses: number; routes: number; refused: number; changes: number; hours: number }
  /** False: a list is shorter than its total. Raise limit, or ask for a shorter period. */
  complete: boolean
}

export type KeyUsage = {
  /** The last 30 days in UTC, oldest first. */
  days: readonly { date: string; requests: number }[]
}

export type LedgerEntry = {
  id: number
  kind: 'topup' | 'debit' | 'adjust' | 'refund'
  /** Amount added to the balance; negative for a charge. */
  amount: number
  amount_exact: string
  balance_after: number
  balance_after_exact: string
  ref: string
  actor: string
  note: string | null
  /** The call that was charged. Null for other entries, and when its record is gone. */
  call: { destination_number: string; billsec: number } | null
  created_at: string
}

export type LegPeer = {
  /** Whether it sent or received the INVITE. Null when no INVITE of the leg is stored. */
  role: 'caller' | 'called' | null
  /** A carrier, an extension or an agent; else as the INVITE names the peer. */
  name: string | null
  /** Remote address of its first message. */
  address: string | null
}

export type LoginBody = { username: string; password: string }

export type MediaQuality = { caller: StreamQuality | null; callee: StreamQuality | null }

export type NewApplicationKey = {
  uuid: string
  kind: 'sbc' | 'pbx' | 'billing'
  name: string
  description: string | null
  /** The first 12 characters of the token. */
  key_prefix: string
  scopes: readonly string[]
  rate_limit_rpm: number
  expires_at: string | null
  is_active: boolean
  state: 'active' | 'inactive' | 'suspended' | 'expired' | 'revoked'
  /** Until it is resumed. */
  suspended_at: string | null
  revoked_at: string | null
  tenant_scope: 'global' | 'tenant'
  tenant_slug: string | null
  domain: string | null
  allowed_ips: readonly string[]
  owner_username: string | null
  request_count: number
  last_used_at: string | null
  created_at: string
  /** Shown only in this response: absent when an Idempotency-Key repeats it. */
  token?: string | undefined
  /** Why a repeated response has no token. */
  token_omitted?: string | undefined
}

export type NodeHistory = {
  /** Between two values. */
  interval_seconds: number
  nodes: readonly {
    node_id: number
    /** Oldest first, at most ten minutes. Null while the latency was not known. */
    latencies_ms: readonly (number | null)[]
  }[]
}

export type OpenSessionBody = { username: string; password: string }

export type OriginateCallBody = {
  /** Extension whose phones ring first. */
  source_extension: string
  destination_number: string
  /** One of the tenant’s numbers. Defaults to the extension. */
  caller_id_number?: string | undefined
  caller_id_name?: string | undefined
  /** Required when several domains have this extension. */
  domain?: string | undefined
  /** Asks the phone to answer automatically. */
  auto_answer?: boolean | undefined
  /** Ring timeout of the extension. */
  timeout_seconds?: number | undefined
}

export type OriginateTelephonyCallBody = {
  /** Extension whose phones ring first. */
  source_extension: string
  destination_number: string
  /** One of the tenant’s numbers. Defaults to the extension. */
  caller_id_number?: string | undefined
  caller_id_name?: string | undefined
  /** Required when several domains have this extension. */
  domain?: string | undefined
  /** Asks the phone to answer automatically. */
  auto_answer?: boolean | undefined
  /** Ring timeout of the extension. */
  timeout_seconds?: number | undefined
}

export type OriginatedCall = { call_uuid: string; status: 'originating' }

export type OutboundRoute = {
  id: number
  name: string
  tenant: string | null
  customer_id: number | null
  customer: string | null
  carrier_id: number | null
  carrier: string | null
  prefix: string
  priority: number
  weight: number
  mode: 'static' | 'lcr' | 'block'
  strip: number
  prepend: string
  is_active: boolean
  emergency: boolean
  created_at: string
}

export type OwnKey = {
  uuid: string
  kind: 'sbc' | 'pbx' | 'billing'
  name: string
  description: string | null
  /** The first 12 characters of the token. */
  key_prefix: string
  scopes: readonly string[]
  rate_limit_rpm: number
  expires_at: string | null
  is_active: boolean
  state: 'active' | 'inactive' | 'suspended' | 'expired' | 'revoked'
  /** Until it is resumed. */
  suspended_at: string | null
  revoked_at: string | null
  tenant_scope: 'global' | 'tenant'
  tenant_slug: string | null
  domain: string | null
  allowed_ips: readonly string[]
  owner_username: string | null
  request_count: number
  last_used_at: string | null
  created_at: string
  permissions: readonly string[]
}

export type PlaceTestCallBody = {
  /** A number of a customer, or an extension: as if it called. It pays. */
  from: string
  /** The called number. */
  to: string
  /** Required when several domains have this extension. */
  domain?: string | undefined
  /** An answered call ends after so many seconds. */
  max_seconds?: number | undefined
}

export type Price = {
  number: string
  at: string
  /** Not shown to customers. */
  rate_plan_id?: number | undefined
  prefix: string
  /** ISO 4217. */
  currency: string
  blocked: boolean
  rate_per_minute: number
  rate_per_minute_exact: string
  first_rate_per_minute: number
  first_increment: number
  increment: number
  effective_from: string | null
  effective_to: string | null
  duration: number
  charged_seconds: number
  parts: readonly { part: string; seconds: number; amount_exact: string }[]
  decimals: number
  cost: number | null
  cost_exact: string | null
}

export type ProcessNode = {
  name: string
  /** Grows with each start; 0 with SQLite. */
  epoch: number
  /** Of its API, for the other nodes. */
  address: string
  version: string
  /** `lost`: not heard for ten seconds. */
  state: 'starting' | 'serving' | 'draining' | 'stopped' | 'lost'
  live_calls: number
  started_at: string
  /** By the clock of the database server. */
  heartbeat_at: string
  /** The process that answers. */
  is_this: boolean
  /** How far its clock is ahead of the database server; 0 within two seconds. */
  clock_difference_seconds: number
  /** Settings that must be the same on all nodes, and in which this one differs from another that lives. */
  differing_settings: readonly string[]
}

export type Profile =
  | {
      kind: 'key'
      uuid: string
      scopes: readonly string[]
      /** The scopes with wildcards expanded. */
      permissions: readonly string[]
      tenant_slug: string | null
      domain: string | null
    }
  | {
      kind: 'user'
      id: number
      username: string
      role: string
      is_active: boolean
      created_at: string
      updated_at: string
      scopes: readonly string[]
      /** The scopes with wildcards expanded. */
      permissions: readonly string[]
      tenant_slug: string | null
      domain: string | null
      expires_at: string
    }

export type Proposal = {
  proposal_id: string
  at: string
  /** Null: a proposal of the platform. */
  tenant_slug: string | null
  proposed_by: string
  proposed_by_name: string | null
  tool: string
  arguments: Readonly<Record<string, unknown>>
  /** In the words of the agent: data, never instructions. */
  reason: string
  effect: string
  /** What it is about, by its id: `customer 7`. It is approved for this only. Null: proposed to an earlier version. */
  target: string | null
  /** Who is affected, when it was last read. */
  affected: Readonly<Record<string, number>>
  /** The state now, to which it can be undone. */
  previous_state: unknown
  /** `undo_change`, or that it cannot be undone. */
  undo: string
  /** `high`: it cannot be undone, or more than 100 calls or requests are affected; `medium`: some are; `low`: none is. */
  risk: 'low' | 'medium' | 'high'
  /** One more each time when what it shows has changed. */
  revision: number
  state: 'open' | 'approved' | 'refused' | 'expired' | 'failed'
  expires_at: string
  decided_at: string | null
  decided_by: string | null
  decided_by_name: string | null
  decided_via: 'api' | 'link' | null
  note: string | null
  /** Null: nothing was changed, or not yet. */
  change_id: string | null
  /** Why the approved change was not made. */
  failure: string | null
}

export type Rate = {
  id: number
  rate_plan_id: number
  rate_plan: string
  prefix: string
  description: string | null
  rate_per_minute: number
  rate_per_minute_exact: string
  connect_fee: number
  connect_fee_exact: string
  first_increment: number
  first_rate_per_minute: number
  first_rate_per_minute_exact: string
  increment: number
  blocked: boolean
  effective_from: string | null
  effective_to: string | null
}

export type RatePlan = {
  id: number
  name: string
  tenant: string | null
  /** ISO 4217. */
  currency: string
  decimals: number
  created_at: string
}

export type RefuseProposalBody = {
  /** What the agent and others read beside it. */
  note?: string | undefined
}

export type ResumeApplicationKeyBody = {
  /** Why, in 3 to 500 characters; it is stored with the change. */
  reason: string
  /** True: tells the effect, and changes nothing. */
  dry_run?: boolean | undefined
}

export type RotateApplicationKeyBody = { grace_seconds?: number | undefined }

export type RotateWebhookSecretBody = {
  /** Seconds during which the old secret also signs. */
  overlap_seconds?: number | undefined
}

export type SetDispatcherNodeStateBody = {
  state: 'active' | 'probing' | 'inactive'
  /** Refused with 409 when the node has another state. */
  expected_state?: 'active' | 'probing' | 'inactive' | undefined
  /** Why, in 3 to 500 characters; it is stored with the change. */
  reason?: string | undefined
  /** Seconds after which the platform undoes it. Absent: until it is undone. */
  duration?: number | undefined
}

export type SetSpendGuardBody = {
  /** Id or name: all calls that it pays. */
  customer?: number | string | undefined
  /** Id, or as in "101@acme.example". */
  extension?: number | string | undefined
  /** Id or slug: all calls of its customers and phones. */
  tenant?: number | string | undefined
  /** First digits of called numbers, with spaces or without; "" for all. Leading 0, 00, + and exit codes are the same. */
  prefix: string
  /** block: no call. cap: calls may cost amount in all. */
  action: 'block' | 'cap'
  /** Of a cap, in the currency of the payer. */
  amount?: string | number | undefined
  /** Of a cap: the whole time (default), or each UTC day. */
  per?: 'duration' | 'day' | undefined
  /** True: ends answered calls within 5 s. */
  end_live_calls?: boolean | undefined
  /** Why, in 3 to 500 characters; it is stored with the change. */
  reason: string
  /** True: tells the effect, and changes nothing. */
  dry_run?: boolean | undefined
  /** Seconds after which the platform undoes it. Absent: until it is undone. */
  duration?: number | undefined
}

export type Setting = {
  name: string
  /** Null when it is unset, and for secrets. */
  value: string | null
  /** `file`: `.env`. */
  source: 'environment' | 'file' | 'default'
  allowed: string
  meaning: string
  is_set: boolean
  is_secret: boolean
  when_unset: string
}

export type Settings = {
  settings: readonly Setting[]
  /** Settings without effect, and listeners that others reach and that do not encrypt. */
  notes: readonly string[]
}

export type SimulateCallBody = {
  /** The calling number, or the extension that calls. */
  from: string
  /** The called number, or `user@domain`. */
  to: string
  /** Where the call comes from: the name of a carrier, an address such as `203.0.113.7:5060`, or an extension as `100@acme.example`. Absent: the extension `from`, or else the only carrier whose calls are taken, or else a program of the platform (`TRUSTED_SOURCES`). */
  source?: string | undefined
  /** Its Call-ID, which chooses the node where a set goes by Call-IDs. */
  call_id?: string | undefined
  /** Charges the call at the rates in force then. All else is as it is now. Refused for a call that asks no rate. */
  at?: string | undefined
}

export type Simulation = {
  /** `goes_on`: an INVITE is sent. `dropped`: the source is banned; no answer is sent. */
  verdict: 'goes_on' | 'refused' | 'dropped'
  /** With which the call would be refused. */
  sip_code: number | null
  reason: string | null
  /** As `denial_code` of a call record. */
  code: string | null
  /** Why the platform refused or ended the call, and what to do: one sentence. Null: it did not. `/guide#denial-<code>` is the entry of the guide. */
  denial_text: string | null
  from: string
  /** After the number rules of the carrier that calls. */
  to: string
  direction: 'inbound' | 'outbound' | 'internal'
  /** It skips the wallet and all limits. */
  emergency: boolean
  /** Who would be recognized as the caller. */
  source: {
    kind: 'trusted' | 'carrier' | 'node' | 'proxy' | 'extension' | 'unknown'
    id: number | null
    name: string | null
  }
  /** What `source` may name instead, where the request named none and it was chosen; at most 10. */
  other_sources: readonly string[]
  payment: {
    /** `free`: no wallet is asked. `not_asked`: the call ends before. `elsewhere`: another system charges. */
    kind: 'asked' | 'free' | 'not_asked' | 'elsewhere'
    customer_id: number | null
    customer: string | null
    /** Why charging would refuse. */
    code: string | null
    /** Null: there is none, or the credential lacks `rates:read`. */
    rate: {
      prefix: string
      currency: string
      connect_fee_exact: string
      rate_per_minute_exact: string
      first_increment: number
      increment: number
    } | null
    /** What the customer pays for a call of one minute, with its connect fee. */
    price_exact: string | null
    /** When that rate is in force. */
    at: string | null
    /** The longest call that the wallet pays for now. Null: not limited, or not known. */
    longest_seconds: number | null
  }
  /** Of the candidates. `turn`: that of the next call. `drawn`: by chance; the most probable one is shown. `call_id`: that of this Call-ID. */
  order: 'fixed' | 'turn' | 'drawn' | 'call_id'
  /** The dispatcher set that was asked. */
  set_id: number | null
  /** In the order in which they are tried. */
  candidates: readonly {
    kind: 'node' | 'gateway' | 'agent' | 'extension' | 'domain'
    uri: string
    /** Of the carrier, the agent or the extension. */
    name: string | null
    /** Of the node, the carrier or the agent. */
    id: number | null
    /** The number sent there. Null: as dialled. */
    number: string | null
    /** The outbound route. */
    route: string | null
    /** Registered phones of an extension. */
    phones: number | null
    /** Why nothing would be sent there, as a `denial_code`. Null: it is tried. */
    withheld: string | null
    /** The same in a sentence, with what to do. */
    withheld_text: string | null
    /** The part of many such calls that is sent here first. */
    share: number
    /** What a call of one minute costs by this carrier. Null: it has no price for the number, or the credential is of a tenant. */
    carrier_price_exact: string | null
    /** What is left of the price of one minute after that cost; below zero: a loss. Null: one of both is not known, or they differ in currency. */
    margin_exact: string | null
  }[]
  /** What takes no part, and why; at most 50. */
  passed_over: readonly {
    kind: 'node' | 'route' | 'gateway'
    name: string
    uri: string | null
    why:
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

export type SpendGuard = {
  guard_id: string
  scope: 'customer' | 'extension' | 'tenant'
  scope_id: number
  name: string | null
  prefix: string
  action: 'block' | 'cap'
  amount_exact: string | null
  currency: string | null
  per: 'duration' | 'day' | null
  /** Of a cap: spent, or granted to live calls. */
  used_exact: string | null
  left_exact: string | null
  state: 'active' | 'expired' | 'removed'
  /** A tenant cannot change those of the platform. */
  set_by: 'platform' | 'tenant'
  reason: string
  created_by: string
  created_at: string
  expires_at: string | null
  ends_calls_before: string | null
  removed_at: string | null
}

export type SpendGuardChange = {
  guard: SpendGuard
  dry_run: boolean
  /** False: it was so already. In a dry run: whether it would change. */
  changed: boolean
  /** For undo_change; null when nothing was changed. */
  change_id: string | null
  effect: string
  affected: Readonly<Record<string, number>>
  previous_state: unknown
  /** How it is undone, or that it cannot be. */
  undo: string
  /** When the platform undoes it. */
  expires_at: string | null
}

export type SpyOnCallBody = {
  call_uuid: string
  /** Extension whose phones ring. */
  supervisor_extension: string
  mode: 'listen' | 'whisper' | 'barge'
  /** The party that hears a whisper, or that is listened to. */
  side?: 'caller' | 'callee' | 'both' | undefined
  /** Required when several domains have this extension. */
  domain?: string | undefined
}

export type StreamQuality = {
  mos: number | null
  mos_source: 'measured' | 'computed' | 'reported' | null
  jitter_ms: number | null
  packet_loss_pct: number | null
  round_trip_ms: number | null
  packets: number
}

export type SuspendApplicationKeyBody = {
  /** Why, in 3 to 500 characters; it is stored with the change. */
  reason: string
  /** True: tells the effect, and changes nothing. */
  dry_run?: boolean | undefined
  /** Seconds after which the platform undoes it. Absent: until it is undone. */
  duration?: number | undefined
  /** True: it may be the key of this request, which is rejected afterwards. */
  confirm_self?: boolean | undefined
}

export type Telemetry = {
  at: string
  uptime_seconds: number
  /** The process that answers. */
  this_node: {
    name: string
    /** Grows with each start of the node; 0 on SQLite. */
    epoch: number
    /** Unless `valid`, the node takes no new calls: see `GET /nodes`. */
    condition: 'valid' | 'unheard' | 'fenced'
    heartbeat_age_seconds: number
  }
  calls: {
    active: number
    /** Calls started per second, averaged over the last ten seconds. */
    per_second: number
    /** Ended calls. */
    total: number
    answered: number
    /** Answer-seizure ratio; null before the first call. */
    asr_percent: number | null
    /** Average duration of answered calls. */
    acd_seconds: number | null
    billed_seconds: number
    by_disposition: Readonly<Record<string, number>>
    post_dial_delay: {
      count: number
      average_ms: number | null
      sum_ms: number
      buckets: readonly {
        /** Upper bound of the bucket. Null for the last one, which has none. */
        le_ms: number | null
        /** Delays up to this bound, lower buckets included. */
        count: number
      }[]
    }
    /** Answered calls whose quality is known, by the MOS of their worse direction. */
    mos: {
      count: number
      average: number | null
      sum: number
      buckets: readonly {
        le: number
        /** Calls whose MOS is at most this, lower buckets included. */
        count: number
      }[]
    }
  }
  nodes: readonly {
    set_id: number
    node_id: number
    destination: string
    state: 'active' | 'probing' | 'inactive'
    latency_ms: number | null
    active_calls: number
    probes: { sent: number; answered: number; failed: number }
  }[]
  /** Media relays. */
  relays: readonly {
    /** host:port of its control protocol. */
    relay: string
    weight: number
    /** It answers, and new sessions may go to it. */
    alive: boolean
    /** Smoothed. Null before the first answer. */
    latency_ms: number | null
    /** Sessions at the relay, those of other programs included. Null when unknown. */
    sessions: number | null
    /** Requests without an answer so far. */
    outstanding: number
    requests_total: number
    timeouts_total: number
    errors_total: number
    /** How often it has started anew, which ends its sessions. */
    restarts_total: number
  }[]
  registrations: { contacts: number; extensions: number }
  api: {
    requests_total: number
    by_status_class: Readonly<Record<string, number>>
    refused: {
      /** Connections refused over the limit of an address or a listener. */
      connections: number
      /** Streams refused over the limit of a credential or a tenant. */
      event_readers: number
      /** Failed logins not logged, over the limit of the audit log. */
      audit_entries: number
    }
    routes: readonly {
      method: string
      /** The path pattern, or `none` when no route matched. */
      route: string
      status_class: '1xx' | '2xx' | '3xx' | '4xx' | '5xx'
      count: number
    }[]
  }
  /** Null when another OCS charges the calls. */
  billing: {
    authorizations_total: number
    /** Counts of `granted`, `overloaded` and each denial code. */
    verdicts: Readonly<Record<string, number>>
    open_calls: number
    /** Decimal number as text. */
    reserved: string
    moved: readonly {
      kind: 'topup' | 'debit' | 'adjust' | 'refund'
      currency: string
      count: number
      /** Decimal number as text. */
      amount: string
    }[]
    waiting_writes: number
    commits_total: number
    /** Consecutive failures. */
    commit_failures: number
    /** Webhook events `call.authorized`, `call.denied` and `call.answered` that could not be stored. */
    lost_events_total: number
  } | null
  /** Data waiting to be delivered to its receivers. */
  outbox: {
    call_reports: number
    /** Waiting deliveries, counted up to 10,000. */
    webhook_deliveries: number
    /** Age of the oldest waiting event. Null when none is waiting. */
    webhook_oldest_seconds: number | null
  }
  /** Measured over the last ten seconds. */
  event_loop: { lag_p50_ms: number; lag_p99_ms: number }
  process: { resident_bytes: number; heap_used_bytes: number; cpu_seconds: number }
  database: {
    bytes: number
    /** Null on PostgreSQL. */
    free_bytes: number | null
  }
  /** Table sizes and totals of the SIP server and of call control. */
  engine: Readonly<Record<string, number>>
  /** Where several nodes share a database: each that has answered. `calls`, `api`, `billing` and `active_calls` of `nodes` are then sums of them; the rest is of the node that answers. */
  platform_nodes?:
    | readonly {
        name: string
        uptime_seconds: number
        active_calls: number
        calls_per_second: number
        event_loop: { lag_p50_ms: number; lag_p99_ms: number }
        process: { resident_bytes: number; heap_used_bytes: number; cpu_seconds: number }
      }[]
    | undefined
}

export type TelemetryHistory = {
  /** Between two samples. */
  interval_seconds: number
  /** Oldest first; at most ten minutes, since the start of the process. */
  samples: readonly {
    at: string
    /** Live calls at this time. */
    active: number
    /** In the interval that ends here, as the next ones. */
    started: number
    ended: number
    /** Of those that ended. */
    answered: number
    post_dial_delay: { count: number; sum_ms: number }
    /** Debits for calls. Empty when another OCS charges them. */
    spent: readonly { currency: string; amount: string }[]
    /** Of the event loop, over about ten seconds. */
    lag_p99_ms: number
  }[]
}

export type Tenant = {
  id: number
  slug: string
  name: string
  is_active: boolean
  domains: readonly string[]
  numbers: readonly string[]
  /** Null: as the tenant says, then as MEDIA_POLICY says. */
  media: 'bypass' | 'prefer' | 'anchor' | null
  media_profile: 'auto' | 'rtp' | 'srtp' | 'webrtc'
  /** Null: all. */
  codecs: readonly string[] | null
  dtmf: 'auto' | 'rfc4733' | 'info'
  created_at: string
}

export type TenantTelemetry = {
  at: string
  calls: { active: number }
  nodes: readonly {
    set_id: number
    node_id: number
    destination: string
    state: 'active' | 'probing' | 'inactive'
    latency_ms: number | null
    active_calls: number
    probes: { sent: number; answered: number; failed: number }
  }[]
}

export type TestCall = {
  call_uuid: string
  status: 'originating'
  /** The call is ended when it has been answered for so long. */
  max_seconds: number
}

export type TestCarrierBody = {
  /** Extension whose phones ring first. */
  source_extension: string
  destination_number: string
  /** Required when several domains have this extension. */
  domain?: string | undefined
  /** Asks the phone to answer automatically. */
  auto_answer?: boolean | undefined
}

export type Tool = {
  name: string
  title: string
  description: string
  /** JSON Schema 2020-12. */
  inputSchema: { type: 'object' } & Readonly<Record<string, unknown>>
  /** JSON Schema 2020-12. */
  outputSchema: { type: 'object' } & Readonly<Record<string, unknown>>
  annotations: {
    readOnlyHint: boolean
    destructiveHint: boolean
    idempotentHint: boolean
    openWorldHint: false
  }
  /** All of them are required. */
  scopes: readonly string[]
}

export type TraceDecision = {
  at: string
  kind: 'decision'
  what: string
  detail: Readonly<Record<string, unknown>>
}

export type TraceMessage = {
  at: string
  kind: 'message'
  direction: 'received' | 'sent'
  /** Index into `legs`. */
  leg: number
  transport: string
  /** The remote address; of a message that was sent by UDP, the local one. */
  address: string
  summary: string
  /** The message, with credentials and media keys removed. */
  text: string
}

export type TransferCallBody = {
  /** An extension or a number, as the paying party would dial it. */
  destination: string
  /** The party to transfer. The other party is released when the destination answers. */
  leg?: 'caller' | 'callee' | undefined
  mode?: 'blind' | undefined
  call_uuid: string
}

export type TransferCallByPathBody = {
  /** An extension or a number, as the paying party would dial it. */
  destination: string
  /** The party to transfer. The other party is released when the destination answers. */
  leg?: 'caller' | 'callee' | undefined
  mode?: 'blind' | undefined
}

export type TransferredCall = {
  call_uuid: string
  /** The call to the transfer destination. */
  transfer_uuid: string
  destination: string
  leg: 'caller' | 'callee'
  mode: 'blind'
  status: 'transferring'
}

export type Trunks = {
  trunks: readonly {
    id: number
    name: string
    tenant: string | null
    /** degraded: a part of its gateways is down. down: all, or the registration. */
    state: 'up' | 'degraded' | 'down' | 'inactive'
    /** Null: it asks for none. */
    registration: {
      state: 'registered' | 'unregistered' | 'registering' | 'failed'
      /** Failed since then. */
      since: string | null
      last_answer: string | null
      next_attempt_at: string | null
    } | null
    /** At most 5. */
    gateways: readonly {
      destination: string
      /** unproven: it has never answered OPTIONS, which many carriers ignore. */
      state: 'up' | 'unproven' | 'down' | 'not_probed'
      /** Down since then. */
      since: string | null
      reason: string | null
      latency_ms: number | null
    }[]
    active_calls: number
    /** Calls at once that it may have; 0: no limit. */
    max_calls: number
    /** Calls that it may start in a second; 0: no limit. */
    max_cps: number
    /** Of gateways and registration, within 90 days. */
    last_failure: { at: string; what: string; reason: string } | null
    /** Calls of the last hour that ended. Null: too many reports are in progress. */
    recent: {
      /** Without those that this platform refused. */
      calls: number
      answered: number
      /** Null: no call. */
      asr_percent: number | null
    } | null
  }[]
  total: number
  /** False: there is more; ask again with the cursor. */
  complete: boolean
  /** For what comes next. Null: these are the last. */
  cursor: string | null
}

export type UndoChangeBody = {
  /** Why, in 3 to 500 characters; it is stored with the change. */
  reason: string
  /** True: tells the effect, and changes nothing. */
  dry_run?: boolean | undefined
}

export type UndoneChange = {
  dry_run: boolean
  /** False: it was undone before. In a dry run: whether it would be. */
  changed: boolean
  effect: string
  change: Change
}

export type UpdateAIAgentBody = {
  name?: string | null | undefined
  extension?: string | null | undefined
  sip_uri?: string | null | undefined
  description?: string | null | undefined
  max_calls?: number | null | undefined
  is_active?: boolean | null | undefined
  tenant?: number | string | null | undefined
  media?: 'bypass' | 'prefer' | 'anchor' | null | undefined
  media_profile?: 'auto' | 'rtp' | 'srtp' | 'webrtc' | null | undefined
  codecs?: readonly string[] | null | undefined
  dtmf?: 'auto' | 'rfc4733' | 'info' | null | undefined
  strip_headers?: readonly string[] | null | undefined
}

export type UpdateApplicationKeyBody = {
  name?: string | undefined
  description?: string | null | undefined
  scopes?: readonly string[] | undefined
  rate_limit_rpm?: number | null | undefined
  expires_at?: string | null | undefined
  is_active?: boolean | undefined
  domain?: string | null | undefined
  allowed_ips?: readonly string[] | null | undefined
}

export type UpdateCarrierBody = {
  name?: string | null | undefined
  tenant?: number | string | null | undefined
  customer?: number | string | null | undefined
  customer_id?: number | string | null | undefined
  payer?: 'customer' | 'from_number' | null | undefined
  is_active?: boolean | null | undefined
  direction?: 'in' | 'out' | 'both' | null | undefined
  gateways?:
    | readonly {
        host: string
        /** 0: use the SRV records of the host, else port 5060 (5061 for TLS), and accept calls from any port. */
        port?: number | undefined
        transport?: 'udp' | 'tcp' | 'tls' | undefined
        /** Prefix length of the source network. Defaults to the single address. */
        netmask?: number | undefined
        inbound?: boolean | undefined
        outbound?: boolean | undefined
        /** A lower number is preferred. */
        priority?: number | undefined
        weight?: number | undefined
      }[]
    | null
    | undefined
  auth?:
    | {
        type?: 'ip' | 'digest' | 'register' | null | undefined
        username?: string | null | undefined
        password?: string | null | undefined
        realm?: string | null | undefined
        from_user?: string | null | undefined
        from_domain?: string | null | undefined
        expires?: number | null | undefined
      }
    | null
    | undefined
  caller_id?:
    | { mode?: 'pass' | 'fixed' | 'pai' | null | undefined; value?: string | null | undefined }
    | null
    | undefined
  number_rules?:
    | {
        in?: readonly { match: string; replace: string }[] | null | undefined
        out?: readonly { match: string; replace: string }[] | null | undefined
      }
    | null
    | undefined
  media?: 'bypass' | 'prefer' | 'anchor' | null | undefined
  media_profile?: 'auto' | 'rtp' | 'srtp' | 'webrtc' | null | undefined
  codecs?: readonly string[] | null | undefined
  dtmf?: 'auto' | 'rfc4733' | 'info' | null | undefined
  strip_headers?: readonly string[] | null | undefined
  max_calls?: number | null | undefined
  max_cps?: number | null | undefined
  rate_plan?: number | string | null | undefined
  rate_plan_id?: number | string | null | undefined
  inbound_set?: number | string | null | undefined
  inbound_set_id?: number | string | null | undefined
}

export type UpdateCustomerBody = {
  name?: string | null | undefined
  tenant?: number | string | null | undefined
  email?: string | null | undefined
  password?: string | null | undefined
  is_active?: boolean | null | undefined
  rate_plan?: number | string | null | undefined
  rate_plan_id?: number | string | null | undefined
  numbers?: readonly string[] | null | undefined
  credit_limit?: string | number | null | undefined
  max_concurrent_calls?: number | null | undefined
  max_cps?: number | null | undefined
  max_daily_spend?: string | number | null | undefined
  max_call_seconds?: number | null | undefined
  low_balance_threshold?: string | number | null | undefined
  currency?: string | null | undefined
}

export type UpdateDispatcherNodeBody = {
  host?: string | null | undefined
  internal_port?: number | null | undefined
  external_port?: number | null | undefined
  weight?: number | null | undefined
  priority?: number | null | undefined
  description?: string | null | undefined
  transport?: 'udp' | 'tcp' | 'tls' | null | undefined
  is_enabled?: boolean | null | undefined
  max_calls?: number | null | undefined
}

export type UpdateDispatcherSetBody = {
  endpoint_name?: string | null | undefined
  algorithm?: 8 | 4 | 9 | 6 | 0 | string | null | undefined
  set_id?: number | null | undefined
  tenant?: number | string | null | undefined
  nodes?:
    | readonly {
        host: string
        /** Port to which calls and probes are sent. */
        internal_port?: number | undefined
        /** A second port from which calls of the node are accepted. */
        external_port?: number | undefined
        weight?: number | undefined
        /** A lower number is preferred. */
        priority?: number | undefined
        description?: string | null | undefined
        transport?: 'udp' | 'tcp' | 'tls' | undefined
        is_enabled?: boolean | undefined
        /** 0: unlimited. */
        max_calls?: number | undefined
      }[]
    | null
    | undefined
  probe?:
    | {
        interval_ms?: number | null | undefined
        timeout_ms?: number | null | undefined
        fail_threshold?: number | null | undefined
        recover_threshold?: number | null | undefined
        ok_codes?: readonly (number | string)[] | null | undefined
      }
    | null
    | undefined
  voicemail_uri?: string | null | undefined
  spy_uri?: string | null | undefined
  media?: 'bypass' | 'prefer' | 'anchor' | null | undefined
  media_profile?: 'auto' | 'rtp' | 'srtp' | 'webrtc' | null | undefined
  codecs?: readonly string[] | null | undefined
  dtmf?: 'auto' | 'rfc4733' | 'info' | null | undefined
}

export type UpdateExtensionBody = {
  extension?: string | null | undefined
  /** Required at creation. Write only: stored as digest secrets. */
  password?: string | undefined
  display_name?: string | null | undefined
  voicemail_enabled?: boolean | null | undefined
  call_recording?: 'always' | 'never' | 'on_demand' | null | undefined
  email?: string | null | undefined
  tenant?: number | string | null | undefined
  domain?: string | null | undefined
  customer?: number | string | null | undefined
  customer_id?: number | string | null | undefined
  media?: 'bypass' | 'prefer' | 'anchor' | null | undefined
  media_profile?: 'auto' | 'rtp' | 'srtp' | 'webrtc' | null | undefined
  codecs?: readonly string[] | null | undefined
  dtmf?: 'auto' | 'rfc4733' | 'info' | null | undefined
}

export type UpdateInboundRouteBody = {
  name?: string | null | undefined
  tenant?: number | string | null | undefined
  carrier?: number | string | null | undefined
  carrier_id?: number | string | null | undefined
  prefix?: string | null | undefined
  domain?: string | null | undefined
  priority?: number | null | undefined
  is_active?: boolean | null | undefined
  set?: number | string | null | undefined
  set_id?: number | string | null | undefined
  extension?: string | null | undefined
  extension_domain?: string | null | undefined
  agent?: string | null | undefined
}

export type UpdateOutboundRouteBody = {
  name?: string | null | undefined
  tenant?: number | string | null | undefined
  customer?: number | string | null | undefined
  customer_id?: number | string | null | undefined
  carrier?: number | string | null | undefined
  carrier_id?: number | string | null | undefined
  prefix?: string | null | undefined
  priority?: number | null | undefined
  weight?: number | null | undefined
  mode?: 'static' | 'lcr' | 'block' | null | undefined
  strip?: number | null | undefined
  prepend?: string | null | undefined
  is_active?: boolean | null | undefined
  emergency?: boolean | null | undefined
}

export type UpdateRateBody = {
  rate_plan?: number | string | null | undefined
  rate_plan_id?: number | string | null | undefined
  tenant?: number | string | null | undefined
  prefix?: string | null | undefined
  description?: string | null | undefined
  rate_per_minute?: string | number | null | undefined
  connect_fee?: string | number | null | undefined
  first_increment?: number | null | undefined
  first_rate_per_minute?: string | number | null | undefined
  increment?: number | null | undefined
  blocked?: boolean | null | undefined
  effective_from?: string | null | undefined
  effective_to?: string | null | undefined
}

export type UpdateRatePlanBody = {
  name?: string | null | undefined
  tenant?: number | string | null | undefined
  currency?: string | null | undefined
  decimals?: number | null | undefined
}

export type UpdateTenantBody = {
  slug?: string | null | undefined
  name?: string | null | undefined
  is_active?: boolean | null | undefined
  domains?: readonly string[] | null | undefined
  numbers?: readonly string[] | null | undefined
  media?: 'bypass' | 'prefer' | 'anchor' | null | undefined
  media_profile?: 'auto' | 'rtp' | 'srtp' | 'webrtc' | null | undefined
  codecs?: readonly string[] | null | undefined
  dtmf?: 'auto' | 'rfc4733' | 'info' | null | undefined
}

export type UpdateUserBody = {
  password?: string | undefined
  role?: 'admin' | 'operator' | 'auditor' | undefined
  is_active?: boolean | undefined
}

export type UpdateWebhookEndpointBody = {
  url?: string | undefined
  events?:
    | readonly (
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
        | 'payment.alert'
      )[]
    | undefined
  description?: string | null | undefined
  is_active?: boolean | undefined
  /** Whether `proposal.created` has `approve_url`: who follows it decides with the rights of the user who has set this. */
  approval_links?: boolean | undefined
}

export type User = {
  id: number
  username: string
  role: 'admin' | 'operator' | 'auditor'
  tenant_slug: string | null
  is_active: boolean
  created_at: string
  updated_at: string
}

export type VCon = {
  vcon: string
  uuid: string
  created_at: string
  subject: string
  parties: readonly Readonly<Record<string, unknown>>[]
  dialog: readonly ({ type: 'recording' | 'incomplete'; start: string } & Readonly<
    Record<string, unknown>
  >)[]
  analysis: readonly ({ type: string; vendor: string } & Readonly<Record<string, unknown>>)[]
  attachments: readonly ({ purpose: string; start: string } & Readonly<Record<string, unknown>>)[]
} & Readonly<Record<string, unknown>>

export type Wallet = {
  customer_id: number
  /** ISO 4217. */
  currency: string
  balance: string
  balance_number: number
  credit_limit: number
  /** Amount reserved for live calls. */
  reserved: string
  available: string
  open_calls: number
}

export type WalletMove = {
  customer_id: number
  /** ISO 4217. */
  currency: string
  balance: string
  balance_number: number
  credit_limit: number
  /** Amount reserved for live calls. */
  reserved: string
  available: string
  open_calls: number
  kind: 'topup' | 'adjust' | 'refund'
  amount: number
  amount_exact: string
  reason: string
}

export type WebhookDelivery = {
  id: number
  webhook_id: string
  type: string
  state: 'pending' | 'delivered' | 'failed'
  attempts: number
  next_attempt_at: string | null
  last_attempt_at: string | null
  last_status: number | null
  last_error: string | null
  /** The start of the last response body. */
  last_answer: string | null
  created_at: string
  /** The request body. */
  payload: unknown
}

export type WebhookEndpoint = {
  id: number
  url: string
  description: string | null
  events: readonly (
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
    | 'payment.alert'
  )[]
  is_active: boolean
  approval_links: boolean
  disabled_reason: 'gone' | 'backlog' | null
  previous_secret_expires_at: string | null
  created_at: string
  updated_at: string
}

export type WebhookEndpointWithSecret = {
  id: number
  url: string
  description: string | null
  events: readonly (
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
    | 'payment.alert'
  )[]
  is_active: boolean
  approval_links: boolean
  disabled_reason: 'gone' | 'backlog' | null
  previous_secret_expires_at: string | null
  created_at: string
  updated_at: string
  /** The signing secret. Shown only in this response: absent when an Idempotency-Key repeats it. */
  secret?: string | undefined
  /** Why a repeated response has no secret. */
  secret_omitted?: string | undefined
}

export interface Operations {
  /** Verify the presented credential */
  getHealth: {
    input: {}
    result: Health
  }
  /** Get telemetry. A tenant credential sees its own calls and nodes. */
  getTelemetry: {
    input: {}
    result: Telemetry | TenantTelemetry
  }
  /** Get what was counted in the last ten minutes. Requires a global credential. */
  getTelemetryHistory: {
    input: {}
    result: TelemetryHistory
  }
  /** Get the latencies of nodes in the last ten minutes. A tenant credential sees its own nodes. */
  getNodeHistory: {
    input: {}
    result: NodeHistory
  }
  /** Log in as staff */
  login: {
    input: { body: LoginBody }
    result: {
      /** A JWT. */
      token: string
      token_type: 'Bearer'
      /** Lifetime in seconds. */
      expires_in: number
      user: User
    }
  }
  /** Sign in to the console: the session is a cookie that scripts cannot read */
  openSession: {
    input: { body: OpenSessionBody }
    result: {
      user: User
      /** Lifetime in seconds. */
      expires_in: number
    }
  }
  /** Get the user of this session; null without a session. Renews a session by cookie of which less than half is left. */
  getSession: {
    input: {}
    result: { profile: Profile | null }
  }
  /** Sign out of the console */
  closeSession: {
    input: {}
    result: { logged_out: true }
  }
  /** Change the own password. It ends all sessions of the user but this one, which goes on with a new token: in the cookie of the console, else in the answer. */
  changeOwnPassword: {
    input: { body: ChangeOwnPasswordBody }
    result: {
      user: User
      /** A JWT; null when the session is a cookie. */
      token: string | null
      /** Lifetime in seconds. */
      expires_in: number
    }
  }
  /** Get the principal of the presented credential */
  getProfile: {
    input: {}
    result: Profile
  }
  /** Log out: end this session */
  logout: {
    input: {}
    result: { logged_out: true }
  }
  /** Create a staff account */
  createUser: {
    input: { body: CreateUserBody }
    result: User
  }
  /** List staff accounts */
  listUsers: {
    input: {
      query?: { page?: number | undefined; limit?: number | undefined; search?: string | undefined }
    }
    item: User
  }
  /** Get a staff account */
  getUser: {
    input: { path: readonly [id: number] }
    result: User
  }
  /** Update a staff account */
  updateUser: {
    input: { path: readonly [id: number]; body: UpdateUserBody }
    result: User
  }
  /** Delete a staff account */
  deleteUser: {
    input: { path: readonly [id: number] }
    result: { id: number; deleted: true }
  }
  /** List audit log entries, newest first */
  listAuditEntries: {
    input: {
      query?: {
        page?: number | undefined
        limit?: number | undefined
        actor?: string | undefined
        action?: string | undefined
        target?: string | undefined
        agents?: 'true' | 'false' | undefined
        outcome?: 'success' | 'refused' | 'failed' | undefined
        start_date?: string | undefined
        end_date?: string | undefined
      }
    }
    item: AuditEntry
  }
  /** Create a key. Only this response contains the token. */
  createApplicationKey: {
    input: { query?: { reason?: string | undefined }; body: CreateApplicationKeyBody }
    result: NewApplicationKey
  }
  /** List keys */
  listApplicationKeys: {
    input: {
      query?: {
        page?: number | undefined
        limit?: number | undefined
        search?: string | undefined
        tenant?: string | undefined
        state?: 'active' | 'inactive' | 'suspended' | 'expired' | 'revoked' | undefined
        kind?: 'sbc' | 'pbx' | 'billing' | undefined
      }
    }
    item: ApplicationKey
  }
  /** Rotate the token of a key. The old token stays valid during the grace period. */
  rotateApplicationKey: {
    input: {
      path: readonly [uuid: string]
      query?: { reason?: string | undefined }
      body: RotateApplicationKeyBody
    }
    result: NewApplicationKey
  }
  /** Get the presented key and its permissions */
  getOwnKey: {
    input: {}
    result: OwnKey
  }
  /** Get a key */
  getApplicationKey: {
    input: { path: readonly [uuid: string] }
    result: ApplicationKey
  }
  /** Update a key. Takes effect immediately. */
  updateApplicationKey: {
    input: {
      path: readonly [uuid: string]
      query?: { reason?: string | undefined }
      body: UpdateApplicationKeyBody
    }
    result: ApplicationKey
  }
  /** Revoke a key permanently */
  revokeApplicationKey: {
    input: {
      path: readonly [uuid: string]
      query?: { confirm_self?: 'true' | 'false' | undefined; reason?: string | undefined }
    }
    result: ApplicationKey
  }
  /** Get the successful requests of a key by day */
  getKeyUsage: {
    input: { path: readonly [uuid: string] }
    result: KeyUsage
  }
  /** Suspend a key. Takes effect immediately, and can be undone. */
  suspendApplicationKey: {
    input: { path: readonly [uuid: string]; body: SuspendApplicationKeyBody }
    result: ChangedKey
  }
  /** Resume a suspended key */
  resumeApplicationKey: {
    input: { path: readonly [uuid: string]; body: ResumeApplicationKeyBody }
    result: ChangedKey
  }
  /** List changes, newest first */
  listChanges: {
    input: {
      query?: {
        page?: number | undefined
        limit?: number | undefined
        actor?: string | undefined
        tool?: string | undefined
        target_kind?: string | undefined
        target?: string | undefined
        state?: 'pending' | 'made' | 'unconfirmed' | 'undone' | 'expired' | 'superseded' | undefined
        start_date?: string | undefined
        end_date?: string | undefined
      }
    }
    item: Change
  }
  /** Get a change */
  getChange: {
    input: { path: readonly [changeId: string] }
    result: Change
  }
  /** Undo a change. Requires the scopes of the tool that made it, too. */
  undoChange: {
    input: { path: readonly [changeId: string]; body: UndoChangeBody }
    result: UndoneChange
  }
  /** List the settings in force, without secrets */
  listSettings: {
    input: {}
    result: Settings
  }
  /** List the processes of this installation; with SQLite there is one. */
  listNodes: {
    input: {}
    result: readonly ProcessNode[]
  }
  /** List banned SIP sources and locked accounts */
  listBans: {
    input: {}
    result: readonly Ban[]
  }
  /** Ban a SIP source for a period */
  createBan: {
    input: { query?: { reason?: string | undefined }; body: CreateBanBody }
    result: { address: string; duration_seconds: number }
  }
  /** Lift a ban and the locks of a source */
  deleteBan: {
    input: { path: readonly [source: string]; query?: { reason?: string | undefined } }
    result: { source: string; banned: false }
  }
  /** Reload sets and nodes from the database */
  reloadDispatcher: {
    input: { query?: { reason?: string | undefined } }
    result: { message: string; status: 'synchronized' }
  }
  /** Create a dispatcher set */
  createDispatcherSet: {
    input: { query?: { reason?: string | undefined }; body: CreateDispatcherSetBody }
    result: DispatcherSet
  }
  /** List dispatcher sets */
  listDispatcherSets: {
    input: {
      query?: { page?: number | undefined; limit?: number | undefined; search?: string | undefined }
    }
    item: DispatcherSet
  }
  /** Get a dispatcher set */
  getDispatcherSet: {
    input: { path: readonly [id: number] }
    result: DispatcherSet
  }
  /** Update a dispatcher set. Absent fields keep their values. */
  updateDispatcherSet: {
    input: {
      path: readonly [id: number]
      query?: { reason?: string | undefined }
      body: UpdateDispatcherSetBody
    }
    result: DispatcherSet
  }
  /** Delete a dispatcher set */
  deleteDispatcherSet: {
    input: { path: readonly [id: number]; query?: { reason?: string | undefined } }
    result: { id: number; deleted: true }
  }
  /** List the nodes of a set */
  listDispatcherNodes: {
    input: { path: readonly [id: number] }
    result: readonly DispatcherNode[]
  }
  /** Add a node to a set */
  createDispatcherNode: {
    input: {
      path: readonly [id: number]
      query?: { reason?: string | undefined }
      body: CreateDispatcherNodeBody
    }
    result: DispatcherNode
  }
  /** Get a node */
  getDispatcherNode: {
    input: { path: readonly [id: number, nodeId: number] }
    result: DispatcherNode
  }
  /** Update a node */
  updateDispatcherNode: {
    input: {
      path: readonly [id: number, nodeId: number]
      query?: { reason?: string | undefined }
      body: UpdateDispatcherNodeBody
    }
    result: DispatcherNode
  }
  /** Remove a node from its set */
  deleteDispatcherNode: {
    input: { path: readonly [id: number, nodeId: number]; query?: { reason?: string | undefined } }
    result: { id: number; deleted: true }
  }
  /** Set a node's state: drain it, or return it to service. Live calls continue. */
  setDispatcherNodeState: {
    input: { path: readonly [id: number, nodeId: number]; body: SetDispatcherNodeStateBody }
    result: DispatcherNodeInState
  }
  /** Find what is unusual in a period against the 14 days before; of less than a day, against the same hours of them. Kinds need the scopes of what they show. */
  findAnomalies: {
    input: {
      query?: {
        start_date?: string | undefined
        end_date?: string | undefined
        kinds?: string | undefined
        limit?: number | undefined
        cursor?: string | undefined
      }
    }
    result: Anomalies
  }
  /** List carriers as trunks: registration, gateways, since when they are down and why. Troubled ones first. */
  listTrunks: {
    input: {
      query?: {
        search?: string | undefined
        troubled?: 'true' | 'false' | undefined
        limit?: number | undefined
        cursor?: string | undefined
      }
    }
    result: Trunks
  }
  /** Get what failed in a period: calls by denial code, and requests of the API by route and key */
  getFailures: {
    input: {
      query?: {
        start_date?: string | undefined
        end_date?: string | undefined
        limit?: number | undefined
      }
    }
    result: Failures
  }
  /** Get what changed the state of a node, and since when it is out of service */
  getDispatcherNodeHistory: {
    input: {
      path: readonly [id: number, nodeId: number]
      query?: {
        start_date?: string | undefined
        end_date?: string | undefined
        limit?: number | undefined
        cursor?: string | undefined
      }
    }
    result: DispatcherNodeHistory
  }
  /** Get what a key did: addresses, routes, refused attempts, changes. Requires audit:read, too. */
  getKeyActivity: {
    input: {
      path: readonly [uuid: string]
      query?: {
        start_date?: string | undefined
        end_date?: string | undefined
        limit?: number | undefined
      }
    }
    result: KeyActivity
  }
  /** Ring an extension, then call a number through this carrier only, for 30 s at most */
  testCarrier: {
    input: { path: readonly [id: number]; body: TestCarrierBody }
    result: TestCall
  }
  /** Place a call that Tollgate itself makes in the name of a number or extension */
  placeTestCall: {
    input: { body: PlaceTestCallBody }
    result: TestCall
  }
  /** Create a tenant */
  createTenant: {
    input: { query?: { reason?: string | undefined }; body: CreateTenantBody }
    result: Tenant
  }
  /** List tenants */
  listTenants: {
    input: {
      query?: { page?: number | undefined; limit?: number | undefined; search?: string | undefined }
    }
    item: Tenant
  }
  /** Get a tenant */
  getTenant: {
    input: { path: readonly [id: number] }
    result: Tenant
  }
  /** Update a tenant. Absent fields keep their values. */
  updateTenant: {
    input: {
      path: readonly [id: number]
      query?: { reason?: string | undefined }
      body: UpdateTenantBody
    }
    result: Tenant
  }
  /** Delete a tenant */
  deleteTenant: {
    input: { path: readonly [id: number]; query?: { reason?: string | undefined } }
    result: { id: number; deleted: true }
  }
  /** Create an outbound route */
  createOutboundRoute: {
    input: { query?: { reason?: string | undefined }; body: CreateOutboundRouteBody }
    result: OutboundRoute
  }
  /** List outbound routes */
  listOutboundRoutes: {
    input: {
      query?: { page?: number | undefined; limit?: number | undefined; search?: string | undefined }
    }
    item: OutboundRoute
  }
  /** Get an outbound route */
  getOutboundRoute: {
    input: { path: readonly [id: number] }
    result: OutboundRoute
  }
  /** Update an outbound route. Absent fields keep their values. */
  updateOutboundRoute: {
    input: {
      path: readonly [id: number]
      query?: { reason?: string | undefined }
      body: UpdateOutboundRouteBody
    }
    result: OutboundRoute
  }
  /** Delete an outbound route */
  deleteOutboundRoute: {
    input: { path: readonly [id: number]; query?: { reason?: string | undefined } }
    result: { id: number; deleted: true }
  }
  /** Create an inbound route */
  createInboundRoute: {
    input: { query?: { reason?: string | undefined }; body: CreateInboundRouteBody }
    result: InboundRoute
  }
  /** List inbound routes */
  listInboundRoutes: {
    input: {
      query?: { page?: number | undefined; limit?: number | undefined; search?: string | undefined }
    }
    item: InboundRoute
  }
  /** Get an inbound route */
  getInboundRoute: {
    input: { path: readonly [id: number] }
    result: InboundRoute
  }
  /** Update an inbound route. Absent fields keep their values. */
  updateInboundRoute: {
    input: {
      path: readonly [id: number]
      query?: { reason?: string | undefined }
      body: UpdateInboundRouteBody
    }
    result: InboundRoute
  }
  /** Delete an inbound route */
  deleteInboundRoute: {
    input: { path: readonly [id: number]; query?: { reason?: string | undefined } }
    result: { id: number; deleted: true }
  }
  /** Create a carrier */
  createCarrier: {
    input: { query?: { reason?: string | undefined }; body: CreateCarrierBody }
    result: Carrier
  }
  /** List carriers */
  listCarriers: {
    input: {
      query?: { page?: number | undefined; limit?: number | undefined; search?: string | undefined }
    }
    item: Carrier
  }
  /** Get a carrier */
  getCarrier: {
    input: { path: readonly [id: number] }
    result: Carrier
  }
  /** Update a carrier. Absent fields keep their values. */
  updateCarrier: {
    input: {
      path: readonly [id: number]
      query?: { reason?: string | undefined }
      body: UpdateCarrierBody
    }
    result: Carrier
  }
  /** Delete a carrier */
  deleteCarrier: {
    input: { path: readonly [id: number]; query?: { reason?: string | undefined } }
    result: { id: number; deleted: true }
  }
  /** Create an AI agent */
  createAIAgent: {
    input: { query?: { reason?: string | undefined }; body: CreateAIAgentBody }
    result: AiAgent
  }
  /** List AI agents */
  listAIAgents: {
    input: {
      query?: { page?: number | undefined; limit?: number | undefined; search?: string | undefined }
    }
    item: AiAgent
  }
  /** Get an AI agent */
  getAIAgent: {
    input: { path: readonly [id: number] }
    result: AiAgent
  }
  /** Update an AI agent. Absent fields keep their values. */
  updateAIAgent: {
    input: {
      path: readonly [id: number]
      query?: { reason?: string | undefined }
      body: UpdateAIAgentBody
    }
    result: AiAgent
  }
  /** Delete an AI agent */
  deleteAIAgent: {
    input: { path: readonly [id: number]; query?: { reason?: string | undefined } }
    result: { id: number; deleted: true }
  }
  /** Create an endpoint */
  createWebhookEndpoint: {
    input: { body: CreateWebhookEndpointBody }
    result: WebhookEndpointWithSecret
  }
  /** List endpoints */
  listWebhookEndpoints: {
    input: { query?: { page?: number | undefined; limit?: number | undefined } }
    item: WebhookEndpoint
  }
  /** Get an endpoint */
  getWebhookEndpoint: {
    input: { path: readonly [id: number] }
    result: WebhookEndpoint
  }
  /** Update an endpoint */
  updateWebhookEndpoint: {
    input: { path: readonly [id: number]; body: UpdateWebhookEndpointBody }
    result: WebhookEndpoint
  }
  /** Delete an endpoint */
  deleteWebhookEndpoint: {
    input: { path: readonly [id: number] }
    result: { id: number; deleted: true }
  }
  /** Rotate the secret. The old one stays valid during the overlap. */
  rotateWebhookSecret: {
    input: { path: readonly [id: number]; body: RotateWebhookSecretBody }
    result: WebhookEndpointWithSecret
  }
  /** Send a test event */
  testWebhookEndpoint: {
    input: { path: readonly [id: number] }
    result: { webhook_id: string }
  }
  /** List deliveries */
  listWebhookDeliveries: {
    input: {
      path: readonly [id: number]
      query?: {
        page?: number | undefined
        limit?: number | undefined
        state?: 'pending' | 'delivered' | 'failed' | undefined
      }
    }
    item: WebhookDelivery
  }
  /** Retry a delivery */
  retryWebhookDelivery: {
    input: { path: readonly [id: number, deliveryId: number] }
    result: WebhookDelivery
  }
  /** List extensions with all their fields and their registered phones */
  listExtensionDetails: {
    input: {
      query?: { page?: number | undefined; limit?: number | undefined; search?: string | undefined }
    }
    item: ExtensionDetails
  }
  /** Get an extension with its registered phones */
  getExtensionDetails: {
    input: { path: readonly [id: number] }
    result: ExtensionDetails
  }
  /** Remove the registration of one phone; it may register again */
  deleteRegistration: {
    input: { path: readonly [id: number]; query: { contact: string } }
    result: ExtensionDetails
  }
  /** Create an extension */
  createExtension: {
    input: { query?: { reason?: string | undefined }; body: CreateExtensionBody }
    result: Extension
  }
  /** List extensions */
  listExtensions: {
    input: {
      query?: { page?: number | undefined; limit?: number | undefined; search?: string | undefined }
    }
    result: {
      data: readonly Extension[]
      total: number
      meta: { page: number; limit: number; total: number }
    }
  }
  /** Get an extension */
  getExtension: {
    input: { path: readonly [id: number] }
    result: Extension
  }
  /** Update an extension. Absent fields keep their values. */
  updateExtension: {
    input: {
      path: readonly [id: number]
      query?: { reason?: string | undefined }
      body: UpdateExtensionBody
    }
    result: Extension
  }
  /** Delete an extension */
  deleteExtension: {
    input: { path: readonly [id: number]; query?: { reason?: string | undefined } }
    result: { id: number; deleted: true }
  }
  /** Transfer one party of an answered call */
  transferCall: {
    input: { body: TransferCallBody }
    result: TransferredCall
  }
  /** Alias of `POST /api/v1/telephony/transfer` */
  transferCallByPath: {
    input: { path: readonly [uuid: string]; body: TransferCallByPathBody }
    result: TransferredCall
  }
  /** List live calls */
  listActiveCalls: {
    input: { query?: { node?: string | undefined } }
    result: readonly ActiveCall[]
  }
  /** Hang up a live call */
  hangUpCall: {
    input: { query?: { reason?: string | undefined }; body: HangUpCallBody }
    result: { call_uuid: string; status: 'ending' }
  }
  /** Start a call: ring an extension, then dial the destination */
  originateCall: {
    input: { body: OriginateCallBody }
    result: OriginatedCall
  }
  /** Alias of `POST /api/v1/pbx/calls/originate` */
  originateTelephonyCall: {
    input: { body: OriginateTelephonyCallBody }
    result: OriginatedCall
  }
  /** Get the state of a live call, or how a call ended */
  getCall: {
    input: { path: readonly [uuid: string] }
    result: CallStatus
  }
  /** Stream events of calls, nodes and phones (server-sent events), or list them as JSON */
  watchEvents: {
    input: { query?: { after?: string | undefined } }
    result: { events: readonly Event[]; last_event_id: string }
  }
  /** Get the SIP trace of a call: the messages of all legs, and the decisions between them. Without `calls:control` the tags of its dialogs are hidden. */
  traceCall: {
    input: { path: readonly [uuid: string] }
    result: CallTrace
  }
  /** Get an ended call as a vCon (draft-ietf-vcon-vcon-core): parties, dialog, media quality, call record and SIP trace */
  getVcon: {
    input: { path: readonly [uuid: string] }
    result: VCon
  }
  /** Connect a supervisor to a live call. Requires a PBX that supports it (`spy_uri` of the set), or, to listen, a media relay. */
  spyOnCall: {
    input: { body: SpyOnCallBody }
    result: {
      /** The call of the supervisor. */
      spy_uuid: string
      call_uuid: string
      mode: 'listen' | 'whisper' | 'barge'
      side: 'caller' | 'callee' | 'both'
      status: 'originating'
    }
  }
  /** Tell what would happen to a call now: source, payer, price and destinations */
  simulateCall: {
    input: { body: SimulateCallBody }
    result: Simulation
  }
  /** Start or stop the recording of a live call */
  controlRecording: {
    input: { body: ControlRecordingBody }
    result: { call_uuid: string; status: 'recording' | 'stopped' }
  }
  /** Delete the recording of a call */
  deleteRecording: {
    input: { path: readonly [uuid: string] }
    result: { call_uuid: string; deleted: true }
  }
  /** Count the calls of a period of 100 days at most by customer, tenant, caller, first digits of the called number, node, carrier, denial code, minute or hour */
  summarizeCalls: {
    input: {
      query: {
        start_date: string
        end_date: string
        group_by:
          | 'customer'
          | 'tenant'
          | 'caller'
          | 'callee_prefix'
          | 'node'
          | 'carrier'
          | 'denial_code'
          | 'minute'
          | 'hour'
        tenant?: string | undefined
        caller?: string | undefined
        callee_prefix?: string | undefined
        node?: string | undefined
        carrier?: string | undefined
        denial_code?: string | undefined
        direction?: 'inbound' | 'outbound' | 'internal' | undefined
        disposition?:
          'ANSWERED' | 'NO ANSWER' | 'BUSY' | 'CANCELED' | 'FAILED' | 'CONGESTION' | undefined
        customer?: string | undefined
        order_by?: 'cost' | 'count' | 'asr' | undefined
        limit?: number | undefined
        cursor?: string | undefined
      }
    }
    result: CallSummary
  }
  /** Get calls, answer-seizure ratio and mean length by carrier, of 31 days at most */
  listCarrierSums: {
    input: { query: { start_date: string; end_date: string } }
    result: readonly CarrierSums[]
  }
  /** List the call records of a period. CSV and NDJSON have no length limit. */
  listCallRecords: {
    input: {
      query: {
        start_date: string
        end_date: string
        disposition?:
          'ANSWERED' | 'NO ANSWER' | 'BUSY' | 'CANCELED' | 'FAILED' | 'CONGESTION' | undefined
        number?: string | undefined
        caller?: string | undefined
        called?: string | undefined
        customer_id?: number | undefined
        carrier?: string | undefined
        node?: string | undefined
        cause?: string | undefined
        call_id?: string | undefined
        call_uuid?: string | undefined
        order?: 'oldest' | 'newest' | undefined
        format?: 'json' | 'csv' | 'ndjson' | undefined
        page?: number | undefined
        limit?: number | undefined
      }
    }
    result: CallReport
  }
  /** List the tools that MCP clients find at /mcp */
  listTools: {
    input: {}
    result: { tools: readonly Tool[]; total: number }
  }
  /** Describe a tool, with its full schemas */
  getTool: {
    input: { path: readonly [name: string] }
    result: Tool
  }
  /** Call a tool. The list has its input and output schemas. */
  callTool: {
    input: { path: readonly [name: string]; body: CallToolBody }
    result: Readonly<Record<string, unknown>>
  }
  /** List proposals, newest first */
  listProposals: {
    input: {
      query?: {
        page?: number | undefined
        limit?: number | undefined
        state?: 'open' | 'approved' | 'refused' | 'expired' | 'failed' | undefined
      }
    }
    item: Proposal
  }
  /** Get a proposal */
  getProposal: {
    input: { path: readonly [uuid: string] }
    result: Proposal
  }
  /** Make the proposed change. Requires the scopes of its tool, and a person or a key without scopes of mcp. */
  approveProposal: {
    input: { path: readonly [uuid: string]; body: ApproveProposalBody }
    result: Proposal
  }
  /** Refuse a proposal. Nothing changes. */
  refuseProposal: {
    input: { path: readonly [uuid: string]; body: RefuseProposalBody }
    result: Proposal
  }
  /** Create a customer */
  createCustomer: {
    input: { query?: { reason?: string | undefined }; body: CreateCustomerBody }
    result: Customer
  }
  /** List customers */
  listCustomers: {
    input: {
      query?: { page?: number | undefined; limit?: number | undefined; search?: string | undefined }
    }
    item: Customer
  }
  /** Get a customer */
  getCustomer: {
    input: { path: readonly [id: number] }
    result: Customer
  }
  /** Update a customer. Absent fields keep their values. */
  updateCustomer: {
    input: {
      path: readonly [id: number]
      query?: { reason?: string | undefined }
      body: UpdateCustomerBody
    }
    result: Customer
  }
  /** Delete a customer */
  deleteCustomer: {
    input: { path: readonly [id: number]; query?: { reason?: string | undefined } }
    result: { id: number; deleted: true }
  }
  /** Get the wallet of a customer */
  getWallet: {
    input: { path: readonly [id: number] }
    result: Wallet
  }
  /** List ledger entries: every change of the balance */
  listLedgerEntries: {
    input: {
      path: readonly [id: number]
      query?: {
        page?: number | undefined
        limit?: number | undefined
        kind?: 'topup' | 'debit' | 'adjust' | 'refund' | undefined
        start_date?: string | undefined
        end_date?: string | undefined
      }
    }
    item: LedgerEntry
  }
  /** Adjust the balance manually */
  adjustWallet: {
    input: { path: readonly [id: number]; body: AdjustWalletBody }
    result: WalletMove
  }
  /** Create a rate plan */
  createRatePlan: {
    input: { query?: { reason?: string | undefined }; body: CreateRatePlanBody }
    result: RatePlan
  }
  /** List rate plans */
  listRatePlans: {
    input: {
      query?: { page?: number | undefined; limit?: number | undefined; search?: string | undefined }
    }
    item: RatePlan
  }
  /** Get a rate plan */
  getRatePlan: {
    input: { path: readonly [id: number] }
    result: RatePlan
  }
  /** Update a rate plan. Absent fields keep their values. */
  updateRatePlan: {
    input: {
      path: readonly [id: number]
      query?: { reason?: string | undefined }
      body: UpdateRatePlanBody
    }
    result: RatePlan
  }
  /** Delete a rate plan */
  deleteRatePlan: {
    input: { path: readonly [id: number]; query?: { reason?: string | undefined } }
    result: { id: number; deleted: true }
  }
  /** Look up the price of a call, with its parts */
  lookUpRate: {
    input: {
      query: {
        rate_plan?: string | undefined
        rate_plan_id?: number | undefined
        number: string
        duration?: number | undefined
        at?: string | undefined
      }
    }
    result: Price
  }
  /** Export the rates of a plan as CSV */
  exportRates: {
    input: { query?: { rate_plan?: string | undefined; rate_plan_id?: number | undefined } }
    result: string
  }
  /** Import rates from CSV. All rows are imported, or none. */
  importRates: {
    input: {
      query?: {
        rate_plan?: string | undefined
        rate_plan_id?: number | undefined
        mode?: 'merge' | 'replace' | undefined
        dry_run?: 'true' | 'false' | undefined
        allow_default?: 'true' | 'false' | undefined
      }
      body: string
    }
    result: ImportReport
  }
  /** Create a rate */
  createRate: {
    input: { query?: { reason?: string | undefined }; body: CreateRateBody }
    result: Rate
  }
  /** List rates */
  listRates: {
    input: {
      query?: {
        page?: number | undefined
        limit?: number | undefined
        search?: string | undefined
        rate_plan?: string | undefined
        rate_plan_id?: number | undefined
      }
    }
    item: Rate
  }
  /** Get a rate */
  getRate: {
    input: { path: readonly [id: number] }
    result: Rate
  }
  /** Update a rate. Absent fields keep their values. */
  updateRate: {
    input: {
      path: readonly [id: number]
      query?: { reason?: string | undefined }
      body: UpdateRateBody
    }
    result: Rate
  }
  /** Delete a rate */
  deleteRate: {
    input: { path: readonly [id: number]; query?: { reason?: string | undefined } }
    result: { id: number; deleted: true }
  }
  /** List spend guards, newest first */
  listSpendGuards: {
    input: {
      query?: {
        page?: number | undefined
        limit?: number | undefined
        customer?: string | undefined
        extension?: string | undefined
        tenant?: string | undefined
        state?: 'active' | 'all' | undefined
      }
    }
    item: SpendGuard
  }
  /** Stop (block) or limit (cap) calls to a prefix, from the next call on all nodes. Repeating it changes nothing. */
  setSpendGuard: {
    input: { body: SetSpendGuardBody }
    result: SpendGuardChange
  }
  /** Get a spend guard */
  getSpendGuard: {
    input: { path: readonly [guardId: string] }
    result: SpendGuard
  }
  /** Remove a spend guard */
  removeSpendGuard: {
    input: {
      path: readonly [guardId: string]
      query?: { reason?: string | undefined; dry_run?: 'true' | 'false' | undefined }
    }
    result: SpendGuardChange
  }
  /** List billing alerts: payments that need attention */
  listBillingAlerts: {
    input: {
      query?: {
        page?: number | undefined
        limit?: number | undefined
        state?: 'open' | 'resolved' | undefined
        kind?:
          | 'unknown_customer'
          | 'currency_mismatch'
          | 'amount_mismatch'
          | 'unreadable_event'
          | 'balance_out_of_range'
          | 'resolved_before'
          | 'refund'
          | 'dispute'
          | 'subscription_ended'
          | undefined
        customer_id?: number | undefined
      }
    }
    item: BillingAlert
  }
  /** Resolve a billing alert */
  resolveBillingAlert: {
    input: { path: readonly [id: number] }
    result: BillingAlert
  }
  /** Assign an uncredited payment to a customer, who is credited once */
  assignPayment: {
    input: { path: readonly [id: number]; body: AssignPaymentBody }
    result: BillingAlert
  }
}

export const operations = {
  getHealth: { method: 'GET', path: '/api/v1/health', answer: 'data' },
  getTelemetry: { method: 'GET', path: '/api/v1/metrics/telemetry', answer: 'data' },
  getTelemetryHistory: { method: 'GET', path: '/api/v1/metrics/history', answer: 'data' },
  getNodeHistory: { method: 'GET', path: '/api/v1/metrics/nodes', answer: 'data' },
  login: { method: 'POST', path: '/api/v1/auth/login', answer: 'data' },
  openSession: { method: 'POST', path: '/api/v1/auth/session', answer: 'data' },
  getSession: { method: 'GET', path: '/api/v1/auth/session', answer: 'data' },
  closeSession: { method: 'DELETE', path: '/api/v1/auth/session', answer: 'data' },
  changeOwnPassword: { method: 'PUT', path: '/api/v1/auth/password', answer: 'data' },
  getProfile: { method: 'GET', path: '/api/v1/auth/me', answer: 'data' },
  logout: { method: 'POST', path: '/api/v1/auth/logout', answer: 'data' },
  createUser: { method: 'POST', path: '/api/v1/users', answer: 'data', isRepeatable: true },
  listUsers: { method: 'GET', path: '/api/v1/users', answer: 'page' },
  getUser: { method: 'GET', path: '/api/v1/users/{id}', answer: 'data' },
  updateUser: { method: 'PATCH', path: '/api/v1/users/{id}', answer: 'data' },
  deleteUser: { method: 'DELETE', path: '/api/v1/users/{id}', answer: 'data' },
  listAuditEntries: { method: 'GET', path: '/api/v1/audit', answer: 'page' },
  createApplicationKey: {
    method: 'POST',
    path: '/api/v1/application-keys',
    answer: 'data',
    isRepeatable: true,
  },
  listApplicationKeys: { method: 'GET', path: '/api/v1/application-keys', answer: 'page' },
  rotateApplicationKey: {
    method: 'POST',
    path: '/api/v1/application-keys/{uuid}/rotate',
    answer: 'data',
    isRepeatable: true,
  },
  getOwnKey: { method: 'GET', path: '/api/v1/application-keys/self', answer: 'data' },
  getApplicationKey: { method: 'GET', path: '/api/v1/application-keys/{uuid}', answer: 'data' },
  updateApplicationKey: {
    method: 'PATCH',
    path: '/api/v1/application-keys/{uuid}',
    answer: 'data',
  },
  revokeApplicationKey: {
    method: 'DELETE',
    path: '/api/v1/application-keys/{uuid}',
    answer: 'data',
  },
  getKeyUsage: { method: 'GET', path: '/api/v1/application-keys/{uuid}/usage', answer: 'data' },
  suspendApplicationKey: {
    method: 'POST',
    path: '/api/v1/application-keys/{uuid}/suspend',
    answer: 'data',
    isRepeatable: true,
  },
  resumeApplicationKey: {
    method: 'POST',
    path: '/api/v1/application-keys/{uuid}/resume',
    answer: 'data',
    isRepeatable: true,
  },
  listChanges: { method: 'GET', path: '/api/v1/changes', answer: 'page' },
  getChange: { method: 'GET', path: '/api/v1/changes/{change_id}', answer: 'data' },
  undoChange: {
    method: 'POST',
    path: '/api/v1/changes/{change_id}/undo',
    answer: 'data',
    isRepeatable: true,
  },
  listSettings: { method: 'GET', path: '/api/v1/settings', answer: 'data' },
  listNodes: { method: 'GET', path: '/api/v1/nodes', answer: 'data' },
  listBans: { method: 'GET', path: '/api/v1/guard/bans', answer: 'data' },
  createBan: { method: 'POST', path: '/api/v1/guard/bans', answer: 'data', isRepeatable: true },
  deleteBan: { method: 'DELETE', path: '/api/v1/guard/bans/{source}', answer: 'data' },
  reloadDispatcher: { method: 'POST', path: '/api/v1/dispatcher/reload', answer: 'data' },
  createDispatcherSet: {
    method: 'POST',
    path: '/api/v1/dispatcher',
    answer: 'data',
    isRepeatable: true,
  },
  listDispatcherSets: { method: 'GET', path: '/api/v1/dispatcher', answer: 'page' },
  getDispatcherSet: { method: 'GET', path: '/api/v1/dispatcher/{id}', answer: 'data' },
  updateDispatcherSet: { method: 'PATCH', path: '/api/v1/dispatcher/{id}', answer: 'data' },
  deleteDispatcherSet: { method: 'DELETE', path: '/api/v1/dispatcher/{id}', answer: 'data' },
  listDispatcherNodes: { method: 'GET', path: '/api/v1/dispatcher/{id}/nodes', answer: 'data' },
  createDispatcherNode: {
    method: 'POST',
    path: '/api/v1/dispatcher/{id}/nodes',
    answer: 'data',
    isRepeatable: true,
  },
  getDispatcherNode: {
    method: 'GET',
    path: '/api/v1/dispatcher/{id}/nodes/{nodeId}',
    answer: 'data',
  },
  updateDispatcherNode: {
    method: 'PATCH',
    path: '/api/v1/dispatcher/{id}/nodes/{nodeId}',
    answer: 'data',
  },
  deleteDispatcherNode: {
    method: 'DELETE',
    path: '/api/v1/dispatcher/{id}/nodes/{nodeId}',
    answer: 'data',
  },
  setDispatcherNodeState: {
    method: 'PUT',
    path: '/api/v1/dispatcher/{id}/nodes/{nodeId}/state',
    answer: 'data',
  },
  findAnomalies: { method: 'GET', path: '/api/v1/anomalies', answer: 'data' },
  listTrunks: { method: 'GET', path: '/api/v1/trunks', answer: 'data' },
  getFailures: { method: 'GET', path: '/api/v1/metrics/failures', answer: 'data' },
  getDispatcherNodeHistory: {
    method: 'GET',
    path: '/api/v1/dispatcher/{id}/nodes/{nodeId}/history',
    answer: 'data',
  },
  getKeyActivity: {
    method: 'GET',
    path: '/api/v1/application-keys/{uuid}/activity',
    answer: 'data',
  },
  testCarrier: {
    method: 'POST',
    path: '/api/v1/routing/carriers/{id}/test-call',
    answer: 'data',
    isRepeatable: true,
  },
  placeTestCall: {
    method: 'POST',
    path: '/api/v1/telephony/test-call',
    answer: 'data',
    isRepeatable: true,
  },
  createTenant: { method: 'POST', path: '/api/v1/tenants', answer: 'data', isRepeatable: true },
  listTenants: { method: 'GET', path: '/api/v1/tenants', answer: 'page' },
  getTenant: { method: 'GET', path: '/api/v1/tenants/{id}', answer: 'data' },
  updateTenant: { method: 'PATCH', path: '/api/v1/tenants/{id}', answer: 'data' },
  deleteTenant: { method: 'DELETE', path: '/api/v1/tenants/{id}', answer: 'data' },
  createOutboundRoute: {
    method: 'POST',
    path: '/api/v1/outbound-routes',
    answer: 'data',
    isRepeatable: true,
  },
  listOutboundRoutes: { method: 'GET', path: '/api/v1/outbound-routes', answer: 'page' },
  getOutboundRoute: { method: 'GET', path: '/api/v1/outbound-routes/{id}', answer: 'data' },
  updateOutboundRoute: { method: 'PATCH', path: '/api/v1/outbound-routes/{id}', answer: 'data' },
  deleteOutboundRoute: { method: 'DELETE', path: '/api/v1/outbound-routes/{id}', answer: 'data' },
  createInboundRoute: {
    method: 'POST',
    path: '/api/v1/inbound-routes',
    answer: 'data',
    isRepeatable: true,
  },
  listInboundRoutes: { method: 'GET', path: '/api/v1/inbound-routes', answer: 'page' },
  getInboundRoute: { method: 'GET', path: '/api/v1/inbound-routes/{id}', answer: 'data' },
  updateInboundRoute: { method: 'PATCH', path: '/api/v1/inbound-routes/{id}', answer: 'data' },
  deleteInboundRoute: { method: 'DELETE', path: '/api/v1/inbound-routes/{id}', answer: 'data' },
  createCarrier: {
    method: 'POST',
    path: '/api/v1/routing/carriers',
    answer: 'data',
    isRepeatable: true,
  },
  listCarriers: { method: 'GET', path: '/api/v1/routing/carriers', answer: 'page' },
  getCarrier: { method: 'GET', path: '/api/v1/routing/carriers/{id}', answer: 'data' },
  updateCarrier: { method: 'PATCH', path: '/api/v1/routing/carriers/{id}', answer: 'data' },
  deleteCarrier: { method: 'DELETE', path: '/api/v1/routing/carriers/{id}', answer: 'data' },
  createAIAgent: {
    method: 'POST',
    path: '/api/v1/telephony/ai-agents',
    answer: 'data',
    isRepeatable: true,
  },
  listAIAgents: { method: 'GET', path: '/api/v1/telephony/ai-agents', answer: 'page' },
  getAIAgent: { method: 'GET', path: '/api/v1/telephony/ai-agents/{id}', answer: 'data' },
  updateAIAgent: { method: 'PATCH', path: '/api/v1/telephony/ai-agents/{id}', answer: 'data' },
  deleteAIAgent: { method: 'DELETE', path: '/api/v1/telephony/ai-agents/{id}', answer: 'data' },
  createWebhookEndpoint: {
    method: 'POST',
    path: '/api/v1/webhooks',
    answer: 'data',
    isRepeatable: true,
  },
  listWebhookEndpoints: { method: 'GET', path: '/api/v1/webhooks', answer: 'page' },
  getWebhookEndpoint: { method: 'GET', path: '/api/v1/webhooks/{id}', answer: 'data' },
  updateWebhookEndpoint: { method: 'PATCH', path: '/api/v1/webhooks/{id}', answer: 'data' },
  deleteWebhookEndpoint: { method: 'DELETE', path: '/api/v1/webhooks/{id}', answer: 'data' },
  rotateWebhookSecret: {
    method: 'POST',
    path: '/api/v1/webhooks/{id}/rotate',
    answer: 'data',
    isRepeatable: true,
  },
  testWebhookEndpoint: {
    method: 'POST',
    path: '/api/v1/webhooks/{id}/test',
    answer: 'data',
    isRepeatable: true,
  },
  listWebhookDeliveries: {
    method: 'GET',
    path: '/api/v1/webhooks/{id}/deliveries',
    answer: 'page',
  },
  retryWebhookDelivery: {
    method: 'POST',
    path: '/api/v1/webhooks/{id}/deliveries/{deliveryId}/retry',
    answer: 'data',
    isRepeatable: true,
  },
  listExtensionDetails: { method: 'GET', path: '/api/v1/pbx/extensions/details', answer: 'page' },
  getExtensionDetails: {
    method: 'GET',
    path: '/api/v1/pbx/extensions/{id}/details',
    answer: 'data',
  },
  deleteRegistration: {
    method: 'DELETE',
    path: '/api/v1/pbx/extensions/{id}/registrations',
    answer: 'data',
  },
  createExtension: {
    method: 'POST',
    path: '/api/v1/pbx/extensions',
    answer: 'bare',
    isRepeatable: true,
  },
  listExtensions: { method: 'GET', path: '/api/v1/pbx/extensions', answer: 'bare' },
  getExtension: { method: 'GET', path: '/api/v1/pbx/extensions/{id}', answer: 'bare' },
  updateExtension: { method: 'PATCH', path: '/api/v1/pbx/extensions/{id}', answer: 'bare' },
  deleteExtension: { method: 'DELETE', path: '/api/v1/pbx/extensions/{id}', answer: 'bare' },
  transferCall: {
    method: 'POST',
    path: '/api/v1/telephony/transfer',
    answer: 'data',
    isRepeatable: true,
  },
  transferCallByPath: {
    method: 'POST',
    path: '/api/v1/pbx/calls/{uuid}/transfer',
    answer: 'data',
    isRepeatable: true,
  },
  listActiveCalls: { method: 'GET', path: '/api/v1/pbx/calls/active', answer: 'bare' },
  hangUpCall: {
    method: 'POST',
    path: '/api/v1/telephony/hangup',
    answer: 'data',
    isRepeatable: true,
  },
  originateCall: {
    method: 'POST',
    path: '/api/v1/pbx/calls/originate',
    answer: 'bare',
    isRepeatable: true,
  },
  originateTelephonyCall: {
    method: 'POST',
    path: '/api/v1/telephony/originate',
    answer: 'bare',
    isRepeatable: true,
  },
  getCall: { method: 'GET', path: '/api/v1/pbx/calls/{uuid}', answer: 'data' },
  watchEvents: { method: 'GET', path: '/api/v1/events', answer: 'data' },
  traceCall: { method: 'GET', path: '/api/v1/calls/{uuid}/trace', answer: 'data' },
  getVcon: { method: 'GET', path: '/api/v1/calls/{uuid}/vcon', answer: 'bare' },
  spyOnCall: { method: 'POST', path: '/api/v1/telephony/spy', answer: 'data', isRepeatable: true },
  simulateCall: { method: 'POST', path: '/api/v1/telephony/simulate', answer: 'data' },
  controlRecording: {
    method: 'POST',
    path: '/api/v1/telephony/recording',
    answer: 'data',
    isRepeatable: true,
  },
  deleteRecording: { method: 'DELETE', path: '/api/v1/calls/{uuid}/recording', answer: 'data' },
  summarizeCalls: { method: 'GET', path: '/api/v1/reports/calls', answer: 'data' },
  listCarrierSums: { method: 'GET', path: '/api/v1/reports/carriers', answer: 'data' },
  listCallRecords: { method: 'GET', path: '/api/v1/reports/cdrs', answer: 'bare' },
  listTools: { method: 'GET', path: '/api/v1/mcp/tools', answer: 'data' },
  getTool: { method: 'GET', path: '/api/v1/mcp/tools/{name}', answer: 'data' },
  callTool: {
    method: 'POST',
    path: '/api/v1/mcp/tools/{name}',
    answer: 'data',
    isRepeatable: true,
  },
  listProposals: { method: 'GET', path: '/api/v1/proposals', answer: 'page' },
  getProposal: { method: 'GET', path: '/api/v1/proposals/{uuid}', answer: 'data' },
  approveProposal: {
    method: 'POST',
    path: '/api/v1/proposals/{uuid}/approve',
    answer: 'data',
    isRepeatable: true,
  },
  refuseProposal: {
    method: 'POST',
    path: '/api/v1/proposals/{uuid}/refuse',
    answer: 'data',
    isRepeatable: true,
  },
  createCustomer: { method: 'POST', path: '/api/v1/customers', answer: 'data', isRepeatable: true },
  listCustomers: { method: 'GET', path: '/api/v1/customers', answer: 'page' },
  getCustomer: { method: 'GET', path: '/api/v1/customers/{id}', answer: 'data' },
  updateCustomer: { method: 'PATCH', path: '/api/v1/customers/{id}', answer: 'data' },
  deleteCustomer: { method: 'DELETE', path: '/api/v1/customers/{id}', answer: 'data' },
  getWallet: { method: 'GET', path: '/api/v1/customers/{id}/wallet', answer: 'data' },
  listLedgerEntries: { method: 'GET', path: '/api/v1/customers/{id}/ledger', answer: 'page' },
  adjustWallet: {
    method: 'POST',
    path: '/api/v1/customers/{id}/wallet/adjust',
    answer: 'data',
    isRepeatable: true,
  },
  createRatePlan: {
    method: 'POST',
    path: '/api/v1/rate-plans',
    answer: 'data',
    isRepeatable: true,
  },
  listRatePlans: { method: 'GET', path: '/api/v1/rate-plans', answer: 'page' },
  getRatePlan: { method: 'GET', path: '/api/v1/rate-plans/{id}', answer: 'data' },
  updateRatePlan: { method: 'PATCH', path: '/api/v1/rate-plans/{id}', answer: 'data' },
  deleteRatePlan: { method: 'DELETE', path: '/api/v1/rate-plans/{id}', answer: 'data' },
  lookUpRate: { method: 'GET', path: '/api/v1/rates/lookup', answer: 'data' },
  exportRates: { method: 'GET', path: '/api/v1/rates/export', answer: 'text' },
  importRates: {
    method: 'POST',
    path: '/api/v1/rates/import',
    answer: 'data',
    bodyType: 'text/csv',
  },
  createRate: { method: 'POST', path: '/api/v1/rates', answer: 'data', isRepeatable: true },
  listRates: { method: 'GET', path: '/api/v1/rates', answer: 'page' },
  getRate: { method: 'GET', path: '/api/v1/rates/{id}', answer: 'data' },
  updateRate: { method: 'PATCH', path: '/api/v1/rates/{id}', answer: 'data' },
  deleteRate: { method: 'DELETE', path: '/api/v1/rates/{id}', answer: 'data' },
  listSpendGuards: { method: 'GET', path: '/api/v1/spend-guards', answer: 'page' },
  setSpendGuard: {
    method: 'POST',
    path: '/api/v1/spend-guards',
    answer: 'data',
    isRepeatable: true,
  },
  getSpendGuard: { method: 'GET', path: '/api/v1/spend-guards/{guard_id}', answer: 'data' },
  removeSpendGuard: { method: 'DELETE', path: '/api/v1/spend-guards/{guard_id}', answer: 'data' },
  listBillingAlerts: { method: 'GET', path: '/api/v1/billing/alerts', answer: 'page' },
  resolveBillingAlert: {
    method: 'POST',
    path: '/api/v1/billing/alerts/{id}/resolve',
    answer: 'data',
    isRepeatable: true,
  },
  assignPayment: {
    method: 'POST',
    path: '/api/v1/billing/alerts/{id}/assign',
    answer: 'data',
    isRepeatable: true,
  },
} as const
