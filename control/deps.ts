/** What the API needs from outside. The engine is seen only through `EnginePort`, as plain data. */
import type { Clocks, Schedule } from '../schema/clock.ts'
import type { Log } from '../schema/contracts/log.ts'
import type { OcsPort } from '../schema/contracts/ocs.ts'
import type { CdrTable } from '../schema/database.ts'
import type { GatewayLedTo } from '../schema/rules/gateway-reach.ts'
import type { SpyMode, SpySide } from '../schema/rules/spy-uri.ts'
import type { Store } from '../schema/open.ts'
import type { Reports } from './pbx/reports/reports.ts'
import type { Webhooks } from './webhooks/webhooks.ts'

export interface ControlDeps extends Clocks {
  readonly store: Store
  readonly engine: EnginePort
  /** Charging in this process; undefined: another OCS charges, and keeps customers and rates. */
  readonly ocs: OcsPort | undefined
  readonly webhooks: Webhooks
  readonly reports: Reports
  readonly schedule: Schedule
  /** Cryptographically secure. */
  readonly randomBytes: (size: number) => Buffer
  readonly log: Log
  /** The `version` of the health answers. */
  readonly version: string
  readonly settings: ControlSettings
  readonly loopDelay: LoopDelay
}

export interface ControlSettings {
  /** Undefined: generated once and kept in the database. */
  readonly jwtSecret: string | undefined
  /** Of the payment provider's webhook; undefined: payments are not set up, and it answers 503. */
  readonly paymentWebhookSecret: string | undefined
  /** Names under which `/mcp` may be reached besides addresses and localhost. */
  readonly mcpAllowedHosts: readonly string[]
  /** CIDRs of the platform's own programs (trusted sources, edge proxies), which no tenant may claim. */
  readonly reservedNetworks: readonly string[]
  /** CIDRs of proxies whose `X-Forwarded-For` and `Forwarded` are believed. */
  readonly trustedProxies: readonly string[]
}

export type NodeState = 'active' | 'probing' | 'inactive'

/** What OPTIONS tell of a destination. */
export interface ProbedStatus {
  readonly state: NodeState
  /** Smoothed round trip of the probes; null before the first answer. */
  readonly latencyMs: number | null
  /** Status 0: silence or transport error, told by `reason`. `at` in milliseconds UTC. */
  readonly lastProbe: {
    readonly at: number
    readonly status: number
    readonly reason: string
  } | null
  readonly probes: { readonly sent: number; readonly answered: number; readonly failed: number }
}

export interface NodeStatus extends ProbedStatus {
  readonly nodeId: number
  /** `sip:<host>:<port>;transport=udp`. */
  readonly destination: string
  readonly priority: number
  readonly weight: number
  readonly description: string | null
  readonly activeCalls: number
}

export interface SetStatus {
  readonly setId: number
  readonly nodes: readonly NodeStatus[]
}

export type SetStateResult = 'changed' | 'unknown_set' | 'unknown_destination' | 'last_active_node'

export interface DispatcherPort {
  /** All sets, or the one asked for (none when unknown). */
  status(setId?: number): readonly SetStatus[]
  /** Stores the operator's word and applies it to the next INVITE. */
  setState(setId: number, destination: string, state: NodeState): SetStateResult
  /** DNS does not know the node's name: it does not come back by itself. */
  isUnresolvable(nodeId: number): boolean
  /** Reads sets and nodes from the database again; live calls are not touched. */
  reload(): void
}

export type CallState = 'DIALING' | 'RINGING' | 'EARLY' | 'ACTIVE' | 'HELD'

/** How a call takes part in a transfer. */
export interface CallTransfer {
  readonly state: 'transferring' | 'transferred' | 'failed'
  /** The other call: the one that is made to the destination, or the one that it was made for. */
  readonly callUuid: string
  readonly destination: string
  /** Why it failed, as a SIP status; null: it did not. */
  readonly sipCode: number | null
}

export interface ActiveCall {
  readonly callUuid: string
  readonly state: CallState
  readonly direction: 'inbound' | 'outbound' | 'internal'
  readonly callerNumber: string
  readonly calledNumber: string
  /** Milliseconds by the steady clock. */
  readonly startedAt: number
  readonly answeredAt: number | null
  /** Added to the two above it gives milliseconds UTC. */
  readonly stampOffsetMs: number
  readonly tenantId: number | null
  readonly customerId: number | null
  readonly setId: number | null
  readonly node: string | null
  readonly carrier: string | null
  /** Undefined: nobody has transferred it. */
  readonly transfer?: CallTransfer | undefined
  /** `address:port` of whoever is at the end of each leg; null: not heard of yet. */
  readonly peers: { readonly caller: string | null; readonly callee: string | null }
}

/** A call that is over, as far as its record tells. */
export interface EndedCall {
  readonly callUuid: string
  readonly callerNumber: string
  readonly calledNumber: string
  readonly direction: ActiveCall['direction']
  /** Milliseconds UTC. */
  readonly startedAt: number
  readonly answeredAt: number | null
  readonly endedAt: number
  readonly billsec: number
  readonly disposition: CdrTable['disposition']
  readonly sipCode: number
  readonly hangupCause: string
  readonly hangupBy: CdrTable['hangup_by']
  readonly tenantId: number | null
}

export interface CallsPort {
  list(): readonly ActiveCall[]
  find(callUuid: string): ActiveCall | undefined
  /** One that ended a moment ago; older ones are in the database, where calls are charged here. */
  recent(callUuid: string): EndedCall | undefined
  /** Both legs get BYE (or CANCEL, or a refusal) with this Q.850 cause. */
  hangUp(callUuid: string, cause: number): 'ending' | 'not_found' | 'already_ending'
  countByNode(nodeId: number): number
  countByCarrier(carrierId: number): number
  countByAgent(agentId: number): number
}

/** Something that has happened; `tenantId` null: it concerns the whole platform. */
export type EngineEvent = {
  /** Ascending by one. */
  readonly sequence: number
  /** Milliseconds UTC. */
  readonly at: number
  readonly tenantId: number | null
} & (
  | {
      readonly type:
        | ('call.started' | 'call.ringing' | 'call.answered')
        | ('call.transferring' | 'call.transferred' | 'call.transfer_failed')
      readonly call: ActiveCall
    }
  | { readonly type: 'call.ended'; readonly record: EndedCall }
  | {
      readonly type: 'node.down' | 'node.up'
      readonly setId: number
      readonly destination: string
      readonly state: NodeState
    }
  | {
      readonly type: 'storage.failed' | 'storage.recovered'
      /** Of `storage.failed`, one line for the operator. */
      readonly reason: string | null
    }
  | {
      readonly type: 'registration'
      readonly extension: string
      readonly domain: string
      /** How many phones the extension has now. */
      readonly contacts: number
    }
)

/** The last events, in memory. */
export interface EventsPort {
  /** Milliseconds UTC at which numbering began. */
  readonly epoch: number
  /** Sequence of the newest event; 0: there is none yet. */
  readonly last: number
  /** Sequence of the newest event of this tenant (null: of all) that is not kept any more; 0: all are. */
  forgotten(tenantId: number | null): number
  /** Those after `sequence` that are still kept, oldest first. */
  after(sequence: number): readonly EngineEvent[]
}

export type TraceEntry =
  | {
      readonly kind: 'message'
      /** Milliseconds UTC. */
      readonly at: number
      readonly direction: 'received' | 'sent'
      /** Its Call-ID. */
      readonly leg: string
      readonly transport: string
      /** `address:port`: the peer of a received message, our own side of a sent one. */
      readonly address: string
      readonly text: string
    }
  | {
      readonly kind: 'decision'
      readonly at: number
      readonly what: string
      readonly detail: Readonly<Record<string, unknown>>
    }

/** The messages of a call on all its legs, and what was decided between them. */
export interface Trace {
  readonly tenantId: number | null
  /** Call-IDs, the caller's first. */
  readonly legs: readonly string[]
  readonly entries: readonly TraceEntry[]
  /** False: the first messages are forgotten already. */
  readonly isComplete: boolean
}

export interface OriginateRequest {
  /** In small letters. */
  readonly domain: string
  readonly extension: string
  readonly destination: string
  /** What the called side is shown; undefined: the extension and its name. */
  readonly callerNumber: string | undefined
  readonly callerName: string | undefined
  readonly autoAnswer: boolean
  /** How long the extension's phones ring. */
  readonly ringMs: number
}

export type OriginateResult =
  | { readonly kind: 'originating'; readonly callUuid: string }
  | { readonly kind: 'unknown_extension' | 'extension_unregistered' }
  | { readonly kind: 'draining' | 'overload' | 'storage_unavailable' }
  /** Nobody pays for it, or nobody may call there; `code` as in a record's `denial_code`. */
  | { readonly kind: 'denied'; readonly code: string }

export interface TransferRequest {
  readonly callUuid: string
  readonly destination: string
  /** Which party goes to the destination; the other one leaves when it is answered. */
  readonly moved: 'caller' | 'callee'
}

export type TransferResult =
  | { readonly kind: 'transferring'; readonly callUuid: string }
  | {
      readonly kind:
        | ('not_found' | 'not_answered' | 'already_ending' | 'transfer_in_progress')
        /** Neither party may start calls here: nobody would pay. */
        | 'not_transferable'
    }
  /** Nobody pays for it, or nobody may call there; `code` as in a record's `denial_code`. */
  | { readonly kind: 'denied'; readonly code: string }

export interface SpyRequest {
  readonly callUuid: string
  /** Of the supervisor; in small letters. */
  readonly domain: string
  readonly extension: string
  readonly mode: SpyMode
  /** Who hears a whisper. */
  readonly side: SpySide
}

export type SpyResult =
  /** `callUuid` of the supervisor's own call. */
  | { readonly kind: 'originating'; readonly callUuid: string }
  | { readonly kind: 'unknown_call' | 'call_not_answered' | 'spy_mode_unavailable' }
  | { readonly kind: 'unknown_extension' | 'extension_unregistered' }
  | { readonly kind: 'draining' | 'overload' | 'storage_unavailable' }

export interface ExtensionStatus {
  readonly status: 'registered' | 'unregistered'
  /** Of the phone that registered last. */
  readonly userAgent: string | null
  readonly contacts: readonly {
    readonly uri: string
    readonly userAgent: string
    /** Where its REGISTER came from; an IPv6 address without brackets. */
    readonly source: { readonly protocol: string; readonly address: string; readonly port: number }
    /** Milliseconds UTC. */
    readonly expiresAt: number
  }[]
}

/** The phones of extensions; a domain is given in any case. */
export interface RegistrationsPort {
  statusOf(domain: string, extension: string): ExtensionStatus
  /** Its password has changed or it is gone: its phones are not reachable any more. */
  end(domain: string, extension: string): void
}

/** How far our registration with a carrier has come. */
export interface CarrierRegistration {
  readonly state: 'registered' | 'unregistered' | 'registering' | 'failed'
  /** Where it is asked for: `sip:<host>:<port>;transport=udp`. */
  readonly registrar: string
  /** Milliseconds UTC, as for the next; null: there is none. */
  readonly expiresAt: number | null
  readonly nextAttemptAt: number | null
  /** Status 0: no answer; `reason` says which way. */
  readonly lastAnswer: {
    readonly at: number
    readonly status: number
    readonly reason: string
  } | null
}

export interface TrunksPort {
  /** Undefined: the carrier does not ask for one. */
  registrationOf(carrierId: number): CarrierRegistration | undefined
  /** Undefined: no calls go there, so it is not probed. */
  gatewayStatus(gatewayId: number): ProbedStatus | undefined
}

/** Present figures and totals since start, by the names under which telemetry shows them. */
export type TelemetrySnapshot = Readonly<Record<string, number>>

/** How long callers waited for the first sign from the other side, since the start. */
export interface DelayHistogram {
  /** Upper bounds of the buckets, ascending. Milliseconds, inclusive. */
  readonly boundsMs: readonly number[]
  /** Delays per bucket; one more for those above the last bound. */
  readonly counts: readonly number[]
  readonly sumMs: number
}

/** How late the event loop was since the last reset; node's own histogram is one. */
export interface LoopDelay {
  /** Nanoseconds, the resolution of the measurement included. */
  percentile(percentile: number): number
  reset(): void
}

export interface Listener {
  readonly protocol: string
  readonly host: string
  readonly port: number
}

/** A source whose packets are dropped unread. Times in milliseconds UTC. */
export interface Ban {
  readonly source: string
  readonly reason: 'password_guessing' | 'unknown_calls' | 'operator'
  readonly since: number
  readonly until: number
  readonly dropped: number
}

export interface GuardPort {
  bans(): readonly Ban[]
  ban(address: string, durationMs: number): void
  /** False: it was not banned. */
  unban(source: string): boolean
}

export interface EnginePort {
  readonly guard: GuardPort
  readonly dispatcher: DispatcherPort
  readonly calls: CallsPort
  readonly events: EventsPort
  /** Of a call that lives, or that ended a moment ago; undefined: nobody remembers it. */
  trace(callUuid: string): Promise<Trace | undefined>
  /** Resolves before any phone rings; what becomes of the call, `calls` tells. */
  originate(request: OriginateRequest): Promise<OriginateResult>
  /** A supervisor joins a live call. Answers before any phone rings. */
  spy(request: SpyRequest): SpyResult
  /** Resolves before anybody rings; what becomes of it, `calls` tells. */
  transfer(request: TransferRequest): Promise<TransferResult>
  readonly registrations: RegistrationsPort
  readonly trunks: TrunksPort
  /** Reads carriers, routes, domains and trusted sources from the database again. */
  reloadRouting(): void
  /** Asks DNS, for a second at most, where SIP URIs lead. */
  lookUp(uris: readonly string[]): Promise<GatewayLedTo>
  telemetry(): TelemetrySnapshot
  postDialDelay(): DelayHistogram
  listeners(): readonly Listener[]
  /** SIP is served. */
  isReady(): boolean
  /** No new call is taken; the process is about to stop. */
  isDraining(): boolean
}
