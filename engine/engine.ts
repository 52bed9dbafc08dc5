/**
 * The data plane: started, drained and stopped as one, and as the process and the API see it.
 * `create-engine.ts` builds its parts.
 */
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Schedule } from '../schema/clock.ts'
import type { OriginateResult, TestCallRequest, Trace } from '../schema/contracts/calls.ts'
import type { SavedEntry } from '../schema/contracts/charging.ts'
import type { Log } from '../schema/contracts/log.ts'
import type { OwnNetwork } from '../schema/rules/gateways.ts'
import type { CallTotals } from './call-totals.ts'
import type { ActiveCalls } from './call/active-calls.ts'
import type { ApplicationRuns } from './call/application/application-runs.ts'
import type { CallControl, Restored } from './call/app.ts'
import type { CallerPolicies } from './call/identity/caller-policies.ts'
import type { CallDeadlines } from './call/deadlines.ts'
import type { LossNotices } from './call/loss-notices.ts'
import type { MessageLog } from './call/trace/message-log.ts'
import { traceOf } from './call/trace/trace.ts'
import type { UserAgent } from './call/user-agent/user-agent.ts'
import { WrongSetting } from './config.ts'
import type { Dispatcher } from './dispatcher/dispatcher.ts'
import type { HostAddresses } from './dispatcher/host-addresses.ts'
import type { EventLog } from './event-log.ts'
import type { FloodGuard } from './flood-guard/flood-guard.ts'
import type { SharedBans } from './flood-guard/shared-bans.ts'
import type { Media } from './media/create-media.ts'
import type { Recordings } from './media/recording/recordings.ts'
import type { RelayPool } from './media/relay/relay-pool.ts'
import type { NodeNotes } from './node-notes.ts'
import type { RefusedCalls } from './refused-calls.ts'
import type { PhoneHop } from './registrar/hop/phone-hop.ts'
import type { NumberDirectory } from './numbers/number-directory.ts'
import type { Registrar } from './registrar/registrar.ts'
import type { WrongPasswords } from './registrar/wrong-passwords.ts'
import type { RoutingWebhooks } from './hooks/webhook/routing-webhooks.ts'
import type { Stir } from './stir/stir.ts'
import type { ExpectedDurations, TalkedCall } from './routing/expected-durations.ts'
import type { Routing } from './routing/routing.ts'
import type { UnpricedCalls } from './routing/unpriced-calls.ts'
import type { ServedSip } from './served-sip.ts'
import type { Simulate } from './simulator.ts'
import type { SipListener, SipPort } from './sip-server/application.ts'
import type { SipService } from './sip-server/index.ts'
import type { SipDecisions } from './sip-service.ts'
import type { StateChanges } from './state-changes.ts'
import type { StorageNotes } from './storage-notes.ts'
import type { TestPhones } from './test-phones.ts'
import type { Trunks } from './trunks/trunks.ts'

/** The parts that an engine starts, stops and shows. */
export interface EngineParts {
  /** Applications of drachtio-srf that are asked about calls. */
  readonly applications: ApplicationRuns
  readonly callerPolicies: CallerPolicies
  readonly calls: ActiveCalls
  readonly client: UserAgent
  readonly control: CallControl
  readonly deadlines: CallDeadlines
  readonly dispatcher: Dispatcher
  readonly events: EventLog
  readonly guard: FloodGuard
  /** Absent without other instances. */
  readonly hop: PhoneHop | undefined
  readonly hosts: HostAddresses
  readonly durations: ExpectedDurations
  readonly losses: LossNotices
  /** Absent without relays. */
  readonly media: Media | undefined
  readonly messages: MessageLog
  readonly notes: NodeNotes
  /** It says whose each telephone number is. */
  readonly ownedNumbers: NumberDirectory
  /** Addresses of this installation. */
  readonly ownPlaces: OwnNetwork
  readonly port: SipPort
  /** Absent without relays, or without places for files. */
  readonly recordings: Recordings | undefined
  readonly refused: RefusedCalls
  readonly registrar: Registrar
  /** Absent without `RTPENGINE`. */
  readonly relays: RelayPool | undefined
  /** Calls of the last run to the outside, the oldest first. */
  readonly recentTalks: () => Promise<readonly TalkedCall[]>
  readonly routing: Routing
  readonly routingWebhooks: RoutingWebhooks
  readonly stir: Stir
  readonly served: ServedSip
  readonly server: SipService
  /** Absent without other instances. */
  readonly sharedBans: SharedBans | undefined
  readonly simulate: Simulate
  readonly sourceStatus: SipDecisions['sourceStatus']
  readonly states: StateChanges
  readonly storage: StorageNotes
  readonly testPhones: TestPhones
  /** Counts all calls since the start. */
  readonly totals: CallTotals
  readonly trunks: Trunks
  readonly unpriced: UnpricedCalls
  readonly wrongPasswords: WrongPasswords
  /** Milliseconds by the steady clock. */
  readonly now: () => number
  readonly schedule: Schedule
  readonly log: Log
}

/** How long callers may take to acknowledge a refusal of `leave`. */
const REFUSING_MS = 300
const LEAVING_POLL_MS = 20
export class Engine {
  readonly #parts: EngineParts
  readonly applications: ApplicationRuns
  readonly callerPolicies: CallerPolicies
  readonly calls: ActiveCalls
  readonly dispatcher: Dispatcher
  readonly events: EventLog
  readonly guard: FloodGuard
  readonly losses: LossNotices
  readonly ownedNumbers: NumberDirectory
  readonly ownPlaces: OwnNetwork
  readonly recordings: Recordings | undefined
  readonly registrar: Registrar
  readonly relays: RelayPool | undefined
  readonly routing: Routing
  readonly routingWebhooks: RoutingWebhooks
  readonly stir: Stir
  readonly sharedBans: SharedBans | undefined
  readonly storage: StorageNotes
  readonly totals: CallTotals
  readonly trunks: Trunks
  readonly simulate: Simulate
  /** Click-to-call. Resolves before any phone rings. */
  readonly originate: CallControl['originate']
  /** Blind transfer. Resolves before any phone rings. */
  readonly transfer: CallControl['transfer']
  /** Connects a supervisor to a live call. Returns before any phone rings. */
  readonly spy: CallControl['spy']

  constructor(parts: EngineParts) {
    this.#parts = parts
    this.applications = parts.applications
    this.callerPolicies = parts.callerPolicies
    this.calls = parts.calls
    this.dispatcher = parts.dispatcher
    this.events = parts.events
    this.guard = parts.guard
    this.losses = parts.losses
    this.ownedNumbers = parts.ownedNumbers
    this.ownPlaces = parts.ownPlaces
    this.recordings = parts.recordings
    this.registrar = parts.registrar
    this.relays = parts.relays
    this.routing = parts.routing
    this.routingWebhooks = parts.routingWebhooks
    this.stir = parts.stir
    this.sharedBans = parts.sharedBans
    this.storage = parts.storage
    this.totals = parts.totals
    this.trunks = parts.trunks
    this.simulate = parts.simulate
    this.originate = parts.control.originate
    this.transfer = parts.control.transfer
    this.spy = parts.control.spy
  }

  /**
   * Calls of the last run (`saved`) go on before the first packet is handled. `answers`: the last
   * ones that it has given.
   *
   * @throws {ListenError} an address cannot be bound; nothing is bound then.
   * @throws {CertificateError} a file for TLS cannot be used.
   * @throws {WrongSetting} the server of `DRACHTIO_URL` does not let us in.
   */
  async start(
    saved: readonly SavedEntry[] = [],
    answers: readonly string[] = [],
  ): Promise<Restored> {
    const { client, control, media, port, refused, served, server, sourceStatus, log } = this.#parts
    await server.start({
      isHeld: true,
      answers,
      // Phones have registered: their addresses are proven.
      endsOrphanedInvitesOf: (source) => sourceStatus(source) !== 'stranger',
    })
    this.relays?.start()
    await media?.start()
    const connected = await client.connect()
    if (connected.kind === 'refused') throw new WrongSetting(connected.reason)
    const restored = control.restore(saved)
    this.routing.noteCalls()
    this.dispatcher.noteCalls()
    server.release()
    this.dispatcher.start()
    this.trunks.start()
    refused.start()
    served.open({ server, port })
    log('info', 'SIP is served', { listeners: this.listeners, server: connected.version })
    return restored
  }

  /**
   * No other process of this installation has calls any more: what the last one has left at relays
   * and on disks is finished.
   */
  finishLast(): void {
    this.#parts.media?.deleteOrphans()
    void this.recordings?.resume()
  }

  /** Takes no new call; resolves when the live ones are over, which is soon after `deadlineMs`. */
  async drain(deadlineMs: number): Promise<void> {
    this.#parts.log('info', 'draining', { calls: this.calls.size })
    await this.calls.drain(deadlineMs)
  }

  /**
   * The process ends, and the next one has its sockets: answered calls go on there, as the journal
   * has them. What is being set up comes to its end within `boundMs`, or is refused. From then on
   * what arrives waits in the sockets.
   *
   * @returns the answers of the last seconds, for `start` of the next process.
   */
  async leave(boundMs: number): Promise<readonly string[]> {
    const { calls, control, server, log } = this.#parts
    this.dispatcher.stop()
    this.trunks.leave()
    server.dropNew()
    log('info', 'live calls are left for the next process', { calls: calls.size })
    await this.#untilAnswered(boundMs)
    calls.stopUnanswered()
    await this.#untilAnswered(REFUSING_MS)
    server.stopReading()
    control.saveAll()
    const answers = server.answers()
    this.leaveCalls()
    return answers
  }

  /** Until each call can be continued by another process, or the time is up. */
  #untilAnswered(boundMs: number): Promise<void> {
    const { calls, control, server, now, schedule } = this.#parts
    const deadline = now() + boundMs
    return new Promise((resolve) => {
      const poll = (): void => {
        // A call that is being authorized is an INVITE, and no call yet.
        const waiting = calls.unansweredCount + server.unansweredCount
        const isSaved = waiting === 0 && control.saveAll().length === 0
        if (isSaved || now() >= deadline) resolve()
        else schedule(poll, LEAVING_POLL_MS)
      }
      poll()
    })
  }

  /** Its calls go on in the next process, and until then as the journal has them. */
  leaveCalls(): void {
    this.#parts.deadlines.stop()
    this.#parts.server.silence()
  }

  async stop(): Promise<void> {
    const parts = this.#parts
    parts.served.close()
    parts.dispatcher.stop()
    await parts.trunks.stop()
    await parts.media?.stop()
    await parts.recordings?.stop()
    parts.relays?.stop()
    parts.routingWebhooks.stop()
    parts.stir.stop()
    parts.hosts.stop()
    parts.sharedBans?.stop()
    parts.deadlines.stop()
    await parts.registrar.stop()
    await parts.refused.stop()
    await parts.states.stop()
    await parts.wrongPasswords.stop()
    await parts.testPhones.stop()
    parts.client.disconnect()
    await parts.server.stop()
  }

  get isReady(): boolean {
    return this.#parts.served.isOpen
  }

  /** Where SIP is served, once started. */
  get listeners(): readonly SipListener[] {
    return this.#parts.served.listeners
  }

  /** Where other instances reach SIP of this one, once started. */
  get reachedAt(): readonly SipListener[] {
    return this.#parts.served.reachedAt
  }

  /** Reads the database; before `start`. */
  async load(): Promise<void> {
    await this.dispatcher.reload()
    await this.ownedNumbers.reload()
    await this.callerPolicies.reload()
    await this.routing.reload()
    for (const call of await this.#parts.recentTalks()) this.#parts.durations.add(call)
    await this.routingWebhooks.reload()
    await this.stir.reload()
    await this.registrar.load()
    await this.sharedBans?.reload()
  }

  /** Reads what another process, or the API, wrote to the database; live calls are not touched. */
  async reload(): Promise<void> {
    await this.dispatcher.reload()
    await this.ownedNumbers.reload()
    await this.callerPolicies.reload()
    await this.routing.reload()
    await this.routingWebhooks.reload()
    await this.stir.reload()
    await this.registrar.reload()
  }

  /**
   * Where applications of this process reach SIP, once started. Undefined: SIP is served by
   * drachtio-servers elsewhere, or neither by UDP nor by TCP.
   */
  get wayForApplications() {
    if (this.#parts.port.isRemote) return undefined
    const listener = ['udp', 'tcp']
      .map((wanted) => this.listeners.find(({ protocol }) => protocol === wanted))
      .find((each) => each !== undefined)
    if (listener === undefined) return undefined
    const { protocol, host, port } = listener
    const anyHosts: Readonly<Record<string, string>> = { '0.0.0.0': '127.0.0.1', '::': '::1' }
    const by = protocol === 'tcp' ? ('tcp' as const) : ('udp' as const)
    return { protocol: by, host: anyHosts[host] ?? host, port }
  }

  /** Reads the certificates of `tls` and `wss` again, for new connections. */
  reloadCertificates(): void {
    this.#parts.server.reloadCertificates()
    void this.stir.reload()
  }

  /** Our certificate for `tls` and `wss`; undefined: there is none. */
  get certificate() {
    return this.#parts.server.certificate
  }

  /** A call from a phone of our own. Resolves before that is picked up. */
  placeTestCall(request: TestCallRequest): Promise<OriginateResult> {
    const { control, testPhones } = this.#parts
    return testPhones.place((phoneUri) => control.placeTestCall(request, phoneUri))
  }

  /**
   * The trace of a live call, or of one that ended a moment ago; undefined: there is no trace of
   * it.
   */
  trace(callUuid: string): Promise<Trace | undefined> {
    const { calls, messages } = this.#parts
    const pause = (): Promise<void> => nextTurn()
    return traceOf(callUuid, { calls, messages, pause })
  }

  /** Present sizes, and totals since the start. */
  telemetry(): Readonly<Record<string, number>> {
    const parts = this.#parts
    return {
      active_calls: parts.calls.size,
      ...parts.totals.snapshot(),
      ...parts.notes.telemetry(parts.dispatcher),
      unpriced_gateway_refusals_total: parts.unpriced.total,
      ...parts.recordings?.telemetry(),
      ...parts.media?.digits.telemetry(),
      ...parts.trunks.telemetry(),
      ...parts.registrar.telemetry(),
      ...parts.hop?.telemetry(),
      ...parts.guard.telemetry(),
      ...parts.refused.telemetry(),
      deadlines: parts.deadlines.size,
      ...parts.storage.telemetry(),
      ...parts.routingWebhooks.telemetry(),
      ...parts.control.telemetry(),
      ...parts.stir.telemetry(),
      calls_without_record_total: parts.calls.unstored.withoutRecord,
      messages_delivered_total: parts.control.messages.delivered,
      messages_refused_total: parts.control.messages.refused,
      ...prefixed('srf', parts.client.stats()),
      ...sipFigures(parts.server),
    }
  }
}

function sipFigures(server: SipService): Readonly<Record<string, number>> {
  const { lagMs, share } = server.load
  return {
    ...prefixed('sip', server.stats()),
    sip_connections_refused_total: server.refusedConnections,
    sip_refused_by_overload_total: server.refusedCalls,
    sip_bare_line_feeds_total: server.withLineFeeds,
    ...(server.captured && {
      hep_packets_total: server.captured.sent,
      hep_packets_dropped_total: server.captured.dropped,
    }),
    sip_lag_seconds: lagMs / 1_000,
    sip_admitted_ratio: share,
  }
}

const prefixed = (prefix: string, values: Readonly<Record<string, number>>) =>
  Object.fromEntries(Object.entries(values).map(([name, value]) => [`${prefix}_${name}`, value]))
