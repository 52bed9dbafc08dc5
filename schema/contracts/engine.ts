/** The engine as the API sees it: plain data, times as stamps. */
import type { HuntingRules } from './hunting.ts'
import type { Attestation } from './caller-identity.ts'
import type {
  ActiveCall,
  CallsPort,
  EndedCall,
  OriginateRequest,
  OriginateResult,
  RecordedCall,
  RecordingsPort,
  SpyRequest,
  SpyResult,
  Trace,
  TransferRequest,
  TransferResult,
  TestCallRequest,
} from './calls.ts'
import type { ChangedNumbers, ChangedRouting } from './changed-rows.ts'
import type { PresentedIdentity } from './caller-identity.ts'
import type { OwnedNumber, OwnedNumbers } from './owned-numbers.ts'
import type { RestoredBy, RouteQualityStatus } from './route-quality.ts'
import type { RoutingWebhooksPort } from './routing-webhooks.ts'
import type { StirKeysPort } from './stir.ts'
import type { DnsAnswers } from './gateways.ts'
import type { ProposalState, Direction } from './field-values.ts'
import type { Tariff, Verdict } from './charging.ts'
import type { ExpectedProfit } from './tariff.ts'
import type { DecidingHook, HookDecisions } from './hooks.ts'

/** Present figures, and totals since the start, by the names that telemetry shows. */
export type TelemetrySnapshot = Readonly<Record<string, number>>

/** How long callers waited for the first ringing, early media or answer, since the start. */
export interface DelayHistogram {
  /** Upper bounds of the buckets, ascending. Milliseconds, inclusive. */
  readonly boundsMs: readonly number[]
  /** Delays per bucket; one more for those above the last bound. */
  readonly counts: readonly number[]
  readonly sumMs: number
}

/** Scores of calls whose quality is known, since the start. */
export interface MosHistogram {
  /** Calls with a score of at most `le`. */
  readonly buckets: readonly { readonly le: number; readonly count: number }[]
  readonly sum: number
  readonly calls: number
}

export interface ListeningAddress {
  readonly protocol: string
  readonly host: string
  readonly port: number
}

/** A source whose packets are dropped unread. Times are milliseconds UTC through `EnginePort`. */
export interface Ban {
  /** An IPv4 address, or an IPv6 network. */
  readonly source: string
  readonly reason: 'password_guessing' | 'unknown_calls' | 'operator'
  readonly since: number
  readonly until: number
  /** Packets that were dropped, on this instance. */
  readonly dropped: number
}

/**
 * An account whose passwords are not checked at an address for a while: too many were wrong. Times
 * as those of `Ban`.
 */
export interface AccountLock {
  readonly source: string
  /** `user@domain`, as the phone has named it. */
  readonly user: string
  readonly since: number
  readonly until: number
}

export interface FloodGuardPort {
  bans(): readonly Ban[]
  /** Locks of this instance. */
  locks(): readonly AccountLock[]
  /** Resolves when it holds here. Other instances follow within a second. */
  ban(address: string, durationMs: number): Promise<void>
  /** Ends its locks, too. False: there was neither a ban nor a lock. */
  unban(source: string): Promise<boolean>
  /** Takes back what `ban` did; bans that the guard has found itself stay. */
  endOperatorBan(source: string): Promise<void>
}

export interface EnginePort {
  readonly guard: FloodGuardPort
  readonly dispatcher: DispatcherPort
  readonly calls: CallsPort
  readonly events: EventsPort
  /** Adds what has happened in the API to the events. */
  tell(happening: ApiHappening & { readonly tenantId: number | null }): void
  /** Finds a live call, or one that ended a moment ago; undefined: there is no such call. */
  trace(callUuid: string): Promise<Trace | undefined>
  /**
   * Simulates a call now; nothing changes. Undefined: its source does not exist, or may not call.
   */
  simulate(request: SimulationRequest): Promise<Simulation | undefined>
  /** Click-to-call. Resolves before any phone rings; `calls` shows how the call goes on. */
  originate(request: OriginateRequest): Promise<OriginateResult>
  placeTestCall(request: TestCallRequest): Promise<OriginateResult>
  /** Connects a supervisor to a live call. Returns before any phone rings. */
  spy(request: SpyRequest): SpyResult
  /** Blind transfer. Resolves before any phone rings; `calls` shows how it goes on. */
  transfer(request: TransferRequest): Promise<TransferResult>
  readonly recordings: RecordingsPort
  readonly registrations: RegistrationsPort
  readonly trunks: TrunksPort
  readonly quality: QualityPort
  readonly routingWebhooks: RoutingWebhooksPort
  readonly stir: StirKeysPort
  /**
   * Reads carriers, routes, tenants and domains from the database again; undefined: all of them.
   * Resolves when they apply.
   */
  reloadRouting(changed?: ChangedRouting): Promise<void>
  /** It says whose each telephone number is. */
  readonly ownedNumbers: OwnedNumbers
  /**
   * Reads telephone numbers, or those of customers, from the database again; undefined: all of
   * them. Resolves, when they apply, with the customers that own the changed rows, or did so.
   */
  reloadNumbers(changed?: ChangedNumbers): Promise<readonly number[]>
  /** Reads the rules about callers of customers from the database again. */
  reloadCallerPolicies(customerIds: readonly number[]): Promise<void>
  /** Asks DNS, for a second at most, to which addresses and gateways SIP URIs lead. */
  lookUp(uris: readonly string[]): Promise<DnsAnswers>
  telemetry(): TelemetrySnapshot
  /** Calls since the start of the process, live ones included. */
  startedCalls(): number
  /** The relays of `RTPENGINE`. */
  relays(): readonly RelayStatus[]
  postDialDelay(): DelayHistogram
  mos(): MosHistogram
  listeners(): readonly ListeningAddress[]
  /** The same as others reach them: with the advertised host in place of all addresses. */
  reachedAt(): readonly ListeningAddress[]
  /** SIP is served. */
  isReady(): boolean
  /** No new call is taken; the process is about to stop. */
  isDraining(): boolean
}

/** An event; `tenantId` null: it concerns the whole platform. */
export type EngineHappening = { readonly tenantId: number | null } & (
  | { readonly type: LiveCallEvent; readonly call: ActiveCall }
  | { readonly type: 'call.ended'; readonly record: EndedCall }
  | { readonly type: 'recording.ready'; readonly recording: RecordedCall }
  | {
      readonly type: 'recording.failed'
      readonly callUuid: string
      /** One line for the operator. */
      readonly reason: string
    }
  | {
      readonly type: 'node.down' | 'node.up'
      readonly setId: number
      readonly destination: string
      readonly state: NodeState
    }
  | {
      /** A process of the installation. */
      readonly type: 'node.lost' | 'node.recovered' | 'node.fenced'
      readonly node: string
      readonly address: string
      readonly epoch: number
    }
  | {
      readonly type: 'relay.down' | 'relay.up' | 'relay.restarted'
      /** `host:port`. */
      readonly relay: string
    }
  | {
      readonly type: 'storage.failed' | 'storage.recovered'
      /** One line for the operator, with `storage.failed`. */
      readonly reason: string | null
    }
  | {
      readonly type: 'carrier.quality_low' | 'carrier.quality_restored'
      readonly quality: RouteQualityStatus
      /** Null: it has become low. */
      readonly by: RestoredBy | null
    }
  | {
      readonly type: 'registration'
      readonly extension: string
      readonly domain: string
      /** How many phones the extension has now. */
      readonly contacts: number
    }
  | ApiHappening
)

/** Events that the API causes. */
type ApiHappening = ProposalHappening | PaymentHappening

/** A payment needs a person: it is not credited, or was taken back. */
export interface PaymentHappening {
  readonly type: 'payment.alert'
  readonly alertId: number
  /** One of the kinds of `GET /billing/alerts`. */
  readonly kind: string
}

/** A change was proposed, or the proposal was decided. */
export interface ProposalHappening {
  readonly type: 'proposal.created' | 'proposal.decided'
  readonly proposalId: string
  readonly tool: string
  readonly state: ProposalState
}

/** About a live call. */
export type LiveCallEvent =
  | ('call.started' | 'call.ringing' | 'call.answered')
  | ('call.transferring' | 'call.transferred' | 'call.transfer_failed')
  | ('recording.started' | 'recording.stopped')

export type EngineEvent = EngineHappening & {
  /** Ascending by one. */
  readonly sequence: number
  /** Milliseconds UTC. */
  readonly at: number
}

export interface EventsPort {
  /** Milliseconds UTC at which numbering began. */
  readonly epoch: number
  /** Sequence of the newest event; 0: none yet. */
  readonly last: number
  /**
   * Sequence of this tenant's (null: the platform's) newest event that was dropped; 0: none was.
   */
  forgotten(tenantId: number | null): number
  /** The events after `sequence` that are still in memory, oldest first. */
  after(sequence: number): readonly EngineEvent[]
}

/**
 * Dispatcher sets, their nodes, and the status of what is probed. Times are milliseconds by the
 * steady clock inside the engine, and UTC through `EnginePort`.
 */

/**
 * `active`: may be chosen. `probing`: failed, tried again. `inactive`: taken out by an operator.
 */
export type NodeState = 'active' | 'probing' | 'inactive'

/** The status of a destination by its probes (OPTIONS). */
export interface ProbedStatus {
  readonly state: NodeState
  /**
   * Smoothed round trip of the probes, to a tenth of a millisecond; null before the first answer.
   */
  readonly latencyMs: number | null
  /** Status 0: no answer, `reason` says why. Null: not probed yet. */
  readonly lastProbe: {
    readonly at: number
    readonly status: number
    readonly reason: string
  } | null
  /** Probes that have ended; `failed` includes answers that count as failures. */
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

export interface NamedNode extends NodeStatus {
  /** Its set would have no node in service without it. */
  readonly isLastInService: boolean
}

export interface SetStatus {
  readonly setId: number
  readonly nodes: readonly NodeStatus[]
}

/** `last_active_node`: every other node of the set is `inactive`. */
export type SetStateResult = 'changed' | 'unknown_set' | 'unknown_destination' | 'last_active_node'

export interface DispatcherPort {
  /** All sets, or the one asked for (none when unknown). */
  status(setId?: number): readonly SetStatus[]
  /** The enabled node that this SIP URI names, however it is written. */
  find(setId: number, destination: string): NamedNode | undefined
  /**
   * Stores an operator's decision. Once it resolves, the next INVITE follows it.
   *
   * @param by the operator as in the audit log, for the history of the node.
   */
  setState(
    setId: number,
    destination: string,
    state: NodeState,
    by?: string,
  ): Promise<SetStateResult>
  /** DNS has no address for the node's name: probes alone do not bring it back. */
  isUnresolvable(nodeId: number): boolean
  /**
   * Reads sets and nodes from the database again; live calls are not touched. Resolves when they
   * apply.
   */
  reload(): Promise<void>
}

/**
 * Registrations of phones here, and of this platform with carriers. Times are milliseconds by the
 * steady clock inside the engine, and UTC through `EnginePort`.
 */
export interface ExtensionStatus {
  readonly status: 'registered' | 'unregistered'
  /** User-Agent of the last phone to register. */
  readonly userAgent: string | null
  readonly contacts: readonly {
    readonly uri: string
    readonly userAgent: string
    /** Source of its REGISTER; an IPv6 address has no brackets. */
    readonly source: { readonly protocol: string; readonly address: string; readonly port: number }
    /** The instance that has the way to the phone; null: not known. */
    readonly holder: string | null
    readonly expiresAt: number
  }[]
}

/** The phones of extensions; a domain is given in any case. */
export interface RegistrationsPort {
  statusOf(domain: string, extension: string): ExtensionStatus
  /**
   * Removes the bindings of an extension at all instances, or the one with this contact URI.
   * Resolves with false when there is none.
   */
  end(domain: string, extension: string, contact?: string): Promise<boolean>
  /**
   * These extensions were written or deleted, and that is committed: it takes effect before this
   * resolves. Phones that have registered with another password are not reachable any more.
   */
  changed(extensionIds: readonly number[]): Promise<void>
}

/** The registration of this platform with a carrier. */
export interface CarrierRegistrationStatus {
  readonly state: 'registered' | 'unregistered' | 'registering' | 'failed'
  /** Destination of REGISTER: `sip:<host>:<port>;transport=udp`. */
  readonly registrar: string
  /** Null: not registered. */
  readonly expiresAt: number | null
  /** Null: none is due. */
  readonly nextAttemptAt: number | null
  /** Status 0: no answer, `reason` says why. */
  readonly lastAnswer: {
    readonly at: number
    readonly status: number
    readonly reason: string
  } | null
}

export interface TrunksPort {
  /** Undefined: the carrier asks for none, or is not active. */
  registrationOf(carrierId: number): CarrierRegistrationStatus | undefined
  /** Undefined: the gateway takes no calls, so it is not probed. */
  gatewayStatus(gatewayId: number): ProbedStatus | undefined
}

/** How carriers of routes with floors do, as this instance has measured it. */
export interface QualityPort {
  /** Undefined: the route has no floors, or is not measured. */
  of(routeId: number): RouteQualityStatus | undefined
  all(): readonly RouteQualityStatus[]
}

// ---- relays of media ---------------------------------------------------------------------

export interface RelayStatus {
  /** `host:port`. */
  readonly name: string
  readonly weight: number
  readonly isAlive: boolean
  /** Smoothed round trip; null: it has not answered yet. */
  readonly latencyMs: number | null
  /** Sessions at the relay, those of other programs included; null: not known yet. */
  readonly sessions: number | null
  /** Requests without an answer so far. */
  readonly outstanding: number
  /** Totals since the start of the process. */
  readonly requests: number
  readonly timeouts: number
  readonly errors: number
  readonly restarts: number
}

/** The settings of the process as the API shows them. */
export interface SettingInForce {
  readonly name: string
  /** The value as text; null: unset, or a secret. */
  readonly value: string | null
  readonly source: 'environment' | 'file' | 'default'
  /** Whether it has a value; secrets are not shown. */
  readonly isSet: boolean
  readonly isSecret: boolean
  /** The default as text, or the meaning of an unset value in words. */
  readonly whenUnset: string
  readonly allowed: string
  readonly meaning: string
}

export interface SettingsInForce {
  readonly settings: readonly SettingInForce[]
  /**
   * Remarks for the operator, one line each: settings without effect, listeners that do not
   * encrypt.
   */
  readonly notes: readonly string[]
}

// ---- events of accounting webhooks (SPECIFICATION.md §6.2) -------------------------------

export const eventTypes = [
  'call.authorized',
  'call.denied',
  'call.answered',
  'call.ended',
  'call.below_margin',
  'recording.ready',
  'wallet.topped_up',
  'wallet.low_balance',
  'wallet.depleted',
  'wallet.adjusted',
  'dispatcher.node.down',
  'dispatcher.node.up',
  'node.lost',
  'node.recovered',
  'node.fenced',
  'key.revoked',
  'proposal.created',
  'proposal.decided',
  'payment.alert',
  'rerating.completed',
  'carrier.down',
  'carrier.up',
  'registration.lost',
  'finding.opened',
  'finding.closed',
] as const

export type EventType = (typeof eventTypes)[number]

/** Sent on request to one endpoint, whatever events it selects. */
export const testEventType = 'webhook.test'

export interface OutgoingEvent {
  readonly type: EventType
  /** Null: an event of the platform, which is not sent to endpoints of tenants. */
  readonly tenantId: number | null
  /** Fields in the API's own spelling. */
  readonly data: Readonly<Record<string, unknown>>
  /** Fields that only the platform and one owner are told; absent: none. */
  readonly confidential?: ConfidentialData | undefined
}

/** Fields in place of those in `data`, for endpoints of the platform and of `tenantId`. */
export interface ConfidentialData {
  readonly tenantId: number | null
  readonly data: Readonly<Record<string, unknown>>
}

/** Takes events. */
export interface EventSink {
  /** Whether an endpoint selects this event; false: it need not be built. */
  wants(type: EventType, tenantId: number | null): boolean
  /**
   * Writes events inside the transaction of the caller, by a few statements. They exist if and only
   * if that commits.
   */
  writeAll(events: readonly OutgoingEvent[]): Promise<void>
}

// ---- what would happen to a call, and why ------------------------------------------------

export interface SimulationRequest {
  readonly source: SimulatedSource
  /** The number or user in the caller's From. */
  readonly from: string
  /** A number, or `user@host`. */
  readonly to: string
  /** Undefined: a Call-ID of its own. */
  readonly callId: string | undefined
  /** Further headers of the INVITE, by lower-case names. Absent: there are none. */
  readonly headers?: Readonly<Record<string, string>>
  /** The call is charged at the rates in force then (milliseconds UTC); undefined: now. */
  readonly at: number | undefined
  /** The tenant that asks; null: the platform. No code is asked about calls of others. */
  readonly tenantId: number | null
}

export type SimulatedSource =
  /** A program of the platform (`TRUSTED_SOURCES`). */
  | { readonly kind: 'trusted' }
  | { readonly kind: 'address'; readonly address: string; readonly port: number }
  | { readonly kind: 'carrier'; readonly carrierId: number }
  /** An extension that gives the right password. */
  | { readonly kind: 'extension'; readonly domain: string; readonly extension: string }

export interface Simulation {
  readonly origin: SimulatedOrigin
  readonly callerNumber: string
  /** The number after the number rules of its carrier. */
  readonly calledNumber: string
  readonly direction: Direction
  /** `not_asked`: nobody looks at Identity headers here. Null: nobody would of a real call. */
  readonly verification: 'not_asked' | null
  readonly isEmergency: boolean
  readonly payment: SimulatedPayment
  readonly verdict: SimulatedVerdict
  /** Candidates in the order in which they would be tried. */
  readonly candidates: readonly SimulatedCandidate[]
  readonly order: CandidateOrder
  /** The dispatcher set that was asked; null: none. */
  readonly setId: number | null
  /** The row of the called number that has decided where the call goes; null: none has. */
  readonly decidedByNumber: OwnedNumber | null
  /** The answers of the operator's own code, in the order in which it was asked. */
  readonly hooks: readonly SimulatedHook[]
  /** At most `MAX_PASSED_OVER`. */
  readonly passedOver: readonly PassedOverCandidate[]
}

/** A hook that has decided, or failed. */
export interface SimulatedHook {
  readonly hook: 'onInvite' | 'onRoute' | 'onAttemptFailed'
  /** The file or the routing webhook. */
  readonly by: string
  /** Null: it has failed. */
  readonly decision: HookDecisions[DecidingHook] | null
  /** Why it has failed, or what of its decision has no effect; null: neither. */
  readonly failed: string | null
}

export interface SimulatedOrigin {
  readonly kind: 'trusted' | 'carrier' | 'node' | 'proxy' | 'extension' | 'unknown'
  /** The id of the carrier, node or extension. */
  readonly id: number | null
  readonly name: string | null
  /** A proxy has several. Empty: the platform's, or unknown. */
  readonly tenantIds: readonly number[]
}

export type SimulatedVerdict =
  | { readonly kind: 'goes_on' }
  /** `code` as in a record's `denial_code`. */
  | {
      readonly kind: 'refused'
      readonly status: number
      readonly reason: string
      readonly code: string | null
      /** The subject of its sentence (`denialText`). */
      readonly detail?: string | undefined
    }
  /** Nothing is answered: the source is banned. */
  | { readonly kind: 'dropped'; readonly code: 'banned' }

export type SimulatedPayment =
  /** The call ends before a wallet is asked. */
  | { readonly kind: 'not_asked' }
  /** Emergencies and calls inside a tenant cost nothing. */
  | { readonly kind: 'free' }
  /** Only an OCS elsewhere knows; routes are those of a caller without a customer. */
  | { readonly kind: 'elsewhere' }
  | {
      readonly kind: 'asked'
      /** `unreachable`: records cannot be stored now. */
      readonly verdict: Verdict['kind']
      /** A record's `denial_code`; null: it is granted. */
      readonly code: string | null
      /** Null: nothing is paid, or it is not known who would pay. */
      readonly payer: { readonly customerId: number; readonly tenantId: number | null } | null
      /** The price in force then; null: there is none. */
      readonly tariff: Tariff | null
      /** The price of a call of one minute at that tariff. */
      readonly minuteMicros: number | null
      /** How long the call could last; Infinity: without limit. 0: it is denied. */
      readonly longestSeconds: number
    }

export interface SimulatedCandidate {
  readonly kind: 'node' | 'gateway' | 'agent' | 'extension' | 'domain' | 'application'
  readonly uri: string
  /** The name of the carrier or agent, or the extension. */
  readonly name: string | null
  /** The id of the node, carrier or agent. */
  readonly id: number | null
  /** The number sent there; null: as dialled. */
  readonly number: string | null
  /** The outbound route. */
  readonly route: string | null
  /** The number of phones of an extension. */
  readonly phones: number | null
  /** Price of a call of one minute, if a least-cost route has one. */
  readonly minuteMicros: number | null
  /** Earnings of the expected call by it; null: it is no gateway. */
  readonly profit: ExpectedProfit | null
  /** The part of many such calls that is sent here first; 0 to 1. */
  readonly share: number
  /** Why nothing would be sent there, as a record's `denial_code`; null: it is tried. */
  readonly withheld: string | null
  /** The caller as it would be shown; null: no rules say anything. */
  readonly presented: SimulatedCaller | null
  /** The INVITE that it would get; null: several phones, or the carrier of somebody else. */
  readonly invite: SimulatedInvite | null
  /** Numbers of the carrier's header rules that have changed it. */
  readonly ruledBy: readonly number[]
  /**
   * Rules of its carrier by which a call goes on; null: the usual ones, or the carrier of somebody
   * else.
   */
  readonly hunting: HuntingRules | null
  /** How its INVITE would be signed (STIR); null: its carrier wants no signature. */
  readonly signature: SimulatedSignature | null
  /** Why its route is tried after all others; null: it is not below its floors. */
  readonly lowQuality: RouteQualityStatus | null
}

/** Request-URI and headers of an INVITE, without those of the SIP server. */
export interface SimulatedInvite {
  readonly uri: string
  readonly headers: Readonly<Record<string, string>>
}

/** A part of the decision about the caller; `number` is empty for a call that is refused. */
export type SimulatedCaller = Pick<
  PresentedIdentity,
  'number' | 'asserted' | 'isPrivate' | 'attestation' | 'why'
>

/** `unsigned`: there is no key, or no number to sign. */
export type SimulatedSignature = Attestation | 'unsigned'

/**
 * `fixed`: always this one. `turn`: the next call's; others come first in turn. `drawn`: one of
 * several, by chance. `call_id`: that of this Call-ID.
 */
export type CandidateOrder = 'fixed' | 'turn' | 'drawn' | 'call_id'

export const passedOverReasons = [
  'drained',
  'out_of_service',
  'node_limit',
  'other_caller',
  'after_block',
  'no_carrier',
  'blocked_by_carrier',
  'carrier_limit',
  'number_blocked',
  'number_stripped',
  'inbound_only',
  'gateway_down',
  'leads_to_platform',
  'no_carrier_price',
  'below_margin',
] as const

export interface PassedOverCandidate {
  readonly kind: 'node' | 'route' | 'gateway'
  readonly name: string
  readonly uri: string | null
  /** The owner; null: the platform. */
  readonly tenantId: number | null
  readonly why: (typeof passedOverReasons)[number]
  /** The figures by which loss protection has judged; absent: another reason. */
  readonly profit?: ExpectedProfit | undefined
}

/** More of them are left out: a platform may have a route for each customer. */
export const MAX_PASSED_OVER = 50
