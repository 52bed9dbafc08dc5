/** The engine as the control API sees it, without calls; a test fills in the data that it needs. */
import type { ActiveCall } from '../../schema/contracts/calls.ts'
import type {
  Ban,
  EnginePort,
  EventsPort,
  SetStatus,
  TelemetrySnapshot,
} from '../../schema/contracts/engine.ts'
import { sourceKey } from '../../schema/net/ip-address.ts'

export interface TestEngine extends EnginePort {
  ready: boolean
  draining: boolean
  sets: SetStatus[]
  activeCalls: ActiveCall[]
  figures: TelemetrySnapshot
  /** The events that the API has added. */
  told: Parameters<EnginePort['tell']>[0][]
}

const noEvents: EventsPort = { epoch: 0, last: 0, forgotten: () => 0, after: () => [] }

export function testEngine(events: EventsPort = noEvents): TestEngine {
  const bans = new Map<string, Ban>()
  const engine: TestEngine = {
    ready: true,
    draining: false,
    sets: [],
    activeCalls: [],
    figures: {},
    told: [],
    dispatcher: {
      status: (setId) => engine.sets.filter((set) => setId === undefined || set.setId === setId),
      find: (setId, destination) => {
        const nodes = engine.dispatcher.status(setId).flatMap((set) => set.nodes)
        const node = nodes.find((each) => each.destination === destination)
        return node && { ...node, isLastInService: false }
      },
      setState: () => Promise.resolve('unknown_set'),
      isUnresolvable: () => false,
      reload: () => Promise.resolve(),
    },
    // Every source is unknown.
    simulate: ({ from, to }) =>
      Promise.resolve({
        origin: { kind: 'unknown', id: null, name: null, tenantIds: [] },
        callerNumber: from,
        calledNumber: to,
        direction: 'inbound',
        verification: null,
        isEmergency: false,
        payment: { kind: 'not_asked' },
        verdict: { kind: 'refused', status: 403, reason: 'Forbidden', code: 'unknown_source' },
        candidates: [],
        order: 'fixed',
        setId: null,
        decidedByNumber: null,
        hooks: [],
        passedOver: [],
      }),
    recordings: {
      isAvailable: false,
      isRecording: () => false,
      control: () => Promise.resolve({ kind: 'recording_unavailable' }),
    },
    calls: {
      list: () => engine.activeCalls,
      recent: () => undefined,
      uuidOf: () => undefined,
      find: (uuid) => engine.activeCalls.find(({ callUuid }) => callUuid === uuid),
      hangUp: (uuid) =>
        engine.activeCalls.some(({ callUuid }) => callUuid === uuid) ? 'ending' : 'not_found',
      countByNode: () => 0,
      countByAgent: () => 0,
      countByCarrier: (id) =>
        engine.activeCalls.filter(({ carrier }) => carrier === `${id}`).length,
    },
    events,
    tell: (happening) => void engine.told.push(happening),
    trace: () => Promise.resolve(undefined),
    originate: () => Promise.resolve({ kind: 'unknown_extension' }),
    placeTestCall: () => Promise.resolve({ kind: 'unknown_extension' }),
    spy: () => ({ kind: 'spy_mode_unavailable' }),
    transfer: () => Promise.resolve({ kind: 'not_found' }),
    registrations: {
      statusOf: () => ({ status: 'unregistered', userAgent: null, contacts: [] }),
      end: () => Promise.resolve(false),
      changed: () => Promise.resolve(),
    },
    guard: {
      bans: () => [...bans.values()],
      locks: () => [],
      ban(address, durationMs) {
        const source = sourceKey(address)
        // Without a clock: it lasts longer than any test.
        const times = { since: 0, until: Date.UTC(2100, 0) + durationMs, dropped: 0 }
        bans.set(source, { source, reason: 'operator', ...times })
        return Promise.resolve()
      },
      unban: (source) => Promise.resolve(bans.delete(source)),
      endOperatorBan: (source) => Promise.resolve(void bans.delete(source)),
    },
    reloadRouting: () => Promise.resolve(),
    ownedNumbers: { find: () => undefined, isOwned: () => false },
    reloadNumbers: () => Promise.resolve([]),
    reloadCallerPolicies: () => Promise.resolve(),
    lookUp: () => Promise.resolve({ gatewayLedTo: () => undefined, addressesOf: () => [] }),
    trunks: { registrationOf: () => undefined, gatewayStatus: () => undefined },
    quality: { of: () => undefined, all: () => [] },
    routingWebhooks: {
      reload: () => Promise.resolve(),
      statusOf: () => undefined,
      test: () => Promise.resolve(undefined),
    },
    stir: {
      reload: () => Promise.resolve(),
      keyStatus: () => undefined,
      publishedCertificate: () => undefined,
    },
    telemetry: () => engine.figures,
    startedCalls: () =>
      (engine.figures['calls_total'] ?? 0) + (engine.figures['active_calls'] ?? 0),
    relays: () => [],
    postDialDelay: () => ({ boundsMs: [], counts: [0], sumMs: 0 }),
    mos: () => ({ buckets: [], sum: 0, calls: 0 }),
    listeners: () => [],
    reachedAt: () => [{ protocol: 'udp', host: '192.0.2.1', port: 5060 }],
    isReady: () => engine.ready,
    isDraining: () => engine.draining,
  }
  return engine
}
