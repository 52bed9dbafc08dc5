/** Records and fakes that the tests of this folder build on. */
import type {
  NodeRecord,
  ProbeSettings,
  SetRecord,
} from '../../../engine/dispatcher/destination-set.ts'
import {
  type DispatcherDeps,
  type NodeChange,
  Dispatcher,
} from '../../../engine/dispatcher/dispatcher.ts'
import { HostAddresses } from '../../../engine/dispatcher/host-addresses.ts'
import { VirtualClock } from './virtual-clock.ts'
import { seededRandom } from '../../support/seeded-random.ts'
import type { SendProbe } from '../../../engine/dispatcher/probe-loop.ts'

export const probeDefaults: ProbeSettings = {
  intervalMs: 500,
  timeoutMs: 400,
  failuresToProbing: 3,
  successesToActive: 3,
  okCodes: [{ from: 200, to: 299 }],
}

export const sampleNode = (nodeId: number, fields: Partial<NodeRecord> = {}): NodeRecord => ({
  nodeId,
  host: `192.0.2.${nodeId}`,
  port: 5_060,
  externalPort: 5_080,
  transport: 'udp',
  weight: 100,
  priority: 10,
  description: null,
  maxCalls: 0,
  operatorState: 'active',
  ...fields,
})

export const sampleSet = (
  nodes: readonly NodeRecord[],
  fields: Partial<SetRecord> = {},
): SetRecord => ({
  setId: 1,
  name: 'set',
  tenantId: null,
  algorithm: 8,
  probe: {},
  voicemailUri: null,
  spyUri: null,
  nodes,
  ...fields,
})

export const uriOf = (nodeId: number): string => `sip:192.0.2.${nodeId}:5060;transport=udp`

/**
 * A network of nodes that answer OPTIONS after a round trip, until they die or a packet is lost.
 */
export class SimulatedNodes {
  readonly #clock: VirtualClock
  readonly roundTripMs = 2
  readonly sent: { readonly destination: string; readonly at: number }[] = []
  readonly dead = new Set<string>()
  /** Which OPTIONS the network loses; `count` is how many the destination was sent before. */
  isLost: (destination: string, count: number) => boolean = () => false
  readonly statuses = new Map<string, number>()

  constructor(clock: VirtualClock) {
    this.#clock = clock
  }

  readonly sendProbe: SendProbe = (destination, timeoutMs, done) => {
    const isLost = this.isLost(destination, this.sentTo(destination).length)
    this.sent.push({ destination, at: this.#clock.now() })
    this.#clock.schedule(() => done({ kind: 'silence' }), timeoutMs)
    if (isLost) return
    const status = this.statuses.get(destination) ?? 200
    this.#clock.schedule(() => {
      if (this.dead.has(destination)) return
      this.#clock.schedule(
        () => done({ kind: 'answered', status, reason: 'OK' }),
        this.roundTripMs / 2,
      )
    }, this.roundTripMs / 2)
  }

  sentTo(destination: string): readonly number[] {
    return this.sent.filter((each) => each.destination === destination).map(({ at }) => at)
  }
}

/** A dispatcher over simulated nodes, with everything that it told its surroundings. */
export function simulate(sets: readonly SetRecord[], overrides: Partial<DispatcherDeps> = {}) {
  const clock = new VirtualClock()
  const nodes = new SimulatedNodes(clock)
  const stored = { sets }
  const changes: NodeChange[] = []
  const saved: [number, string][] = []
  const calls = new Map<number, number>()
  const dispatcher = new Dispatcher({
    loadSets: () => Promise.resolve(stored.sets),
    saveOperatorState: async (nodeId, state) => saved.push([nodeId, state]) > 0,
    now: clock.now,
    random: seededRandom(1),
    schedule: clock.schedule,
    sendProbe: nodes.sendProbe,
    activeCalls: (nodeId) => calls.get(nodeId) ?? 0,
    onNodeChange: (change) => void changes.push(change),
    probeDefaults,
    hosts: new HostAddresses(async () => ({ addresses: [], ttlMs: 60_000 }), clock.schedule),
    ...overrides,
  })
  dispatcher.replace(sets)
  const stateOf = (nodeId: number) =>
    dispatcher
      .status()
      .flatMap((set) => set.nodes)
      .find((node) => node.nodeId === nodeId)?.state
  return { clock, nodes, stored, changes, saved, calls, dispatcher, stateOf }
}
