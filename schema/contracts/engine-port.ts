/** The engine as the API sees it: plain data, times as stamps. */
import type { ChangedRouting } from './changed-rows.ts'
import type { LookedUp } from '../rules/gateway-reach.ts'
import type {
  CallsPort,
  OriginateRequest,
  OriginateResult,
  TransferRequest,
  TransferResult,
  SpyRequest,
  SpyResult,
} from './calls.ts'
import type { DispatcherPort } from './dispatcher.ts'
import type { EventsPort, ProposalHappening } from './engine-events.ts'
import type { RecordingsPort } from './recordings.ts'
import type { RegistrationsPort, TrunksPort } from './registrations.ts'
import type { RelayStatus } from './relays.ts'
import type { Simulation, SimulationRequest } from './simulation.ts'
import type { Trace } from './trace.ts'

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

/** Of calls whose quality is known, since the start. */
export interface MosHistogram {
  /** How many were at most as good as `le`. */
  readonly buckets: readonly { readonly le: number; readonly count: number }[]
  readonly sum: number
  readonly calls: number
}

export interface Listener {
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
  /** Packets that were dropped, on this node. */
  readonly dropped: number
}

export interface GuardPort {
  bans(): readonly Ban[]
  /** Resolves when it holds here. Other nodes follow within a second. */
  ban(address: string, durationMs: number): Promise<void>
  /** False: it was not banned. */
  unban(source: string): Promise<boolean>
  /** Takes back what `ban` did; bans that the guard has found itself stay. */
  endOperatorBan(source: string): Promise<void>
}

export interface EnginePort {
  readonly guard: GuardPort
  readonly dispatcher: DispatcherPort
  readonly calls: CallsPort
  readonly events: EventsPort
  /** Adds what has happened in the API to the events. */
  tell(happening: ProposalHappening & { readonly tenantId: number | null }): void
  /** Of a live call, or one that ended a moment ago; undefined: there is no such call. */
  trace(callUuid: string): Promise<Trace | undefined>
  /** What would happen to a call now; nothing changes. Undefined: its source does not exist, or may not call. */
  simulate(request: SimulationRequest): Simulation | undefined
  /** Click-to-call. Resolves before any phone rings; `calls` shows how the call goes on. */
  originate(request: OriginateRequest): Promise<OriginateResult>
  /** Connects a supervisor to a live call. Returns before any phone rings. */
  spy(request: SpyRequest): SpyResult
  /** Blind transfer. Resolves before any phone rings; `calls` shows how it goes on. */
  transfer(request: TransferRequest): Promise<TransferResult>
  readonly recordings: RecordingsPort
  readonly registrations: RegistrationsPort
  readonly trunks: TrunksPort
  /**
   * Reads carriers, routes, tenants and domains from the database again; undefined: all of them. Resolves when they
   * apply.
   */
  reloadRouting(changed?: ChangedRouting): Promise<void>
  /** Asks DNS, for a second at most, to which addresses and gateways SIP URIs lead. */
  lookUp(uris: readonly string[]): Promise<LookedUp>
  telemetry(): TelemetrySnapshot
  /** Those of `RTPENGINE`. */
  relays(): readonly RelayStatus[]
  postDialDelay(): DelayHistogram
  mos(): MosHistogram
  listeners(): readonly Listener[]
  /** SIP is served. */
  isReady(): boolean
  /** No new call is taken; the process is about to stop. */
  isDraining(): boolean
}
