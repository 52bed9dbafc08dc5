/** CPU time of one `candidates` of each algorithm: it stands on the path of every call. */
import { Dispatcher } from '../../engine/dispatcher/dispatcher.ts'
import type { AlgorithmCode } from '../../engine/dispatcher/algorithms.ts'
import type { SetRecord } from '../../engine/dispatcher/destination-set.ts'

export const describe =
  'dispatcher: µs per ordered candidate list, by algorithm and number of nodes'

const algorithms: readonly (readonly [AlgorithmCode, string])[] = [
  [8, 'failover'],
  [4, 'round robin'],
  [9, 'weight'],
  [6, 'random'],
  [0, 'Call-ID hash'],
]
const picks = 200_000

export async function run(): Promise<void> {
  const callIds = Array.from(
    { length: 1_024 },
    (_, index) => `${index}-4711@192.0.2.${index % 250}`,
  )
  for (const nodes of [3, 10, 100])
    for (const [algorithm, name] of algorithms) {
      const dispatcher = dispatcherOf(algorithm, nodes)
      pickAll(dispatcher, callIds, picks / 10)
      const before = process.cpuUsage()
      pickAll(dispatcher, callIds, picks)
      const { user, system } = process.cpuUsage(before)
      const micros = ((user + system) / picks).toFixed(2)
      console.log(`  ${String(nodes).padStart(3)} nodes  ${name.padEnd(12)}  ${micros} µs`)
    }
}

function pickAll(dispatcher: Dispatcher, callIds: readonly string[], count: number): void {
  for (let index = 0; index < count; index += 1)
    dispatcher.candidates(1, callIds[index % callIds.length] ?? '')
}

function dispatcherOf(algorithm: AlgorithmCode, count: number): Dispatcher {
  const set: SetRecord = {
    setId: 1,
    name: 'bench',
    tenantId: null,
    algorithm,
    probe: {},
    voicemailUri: null,
    spyUri: null,
    nodes: Array.from({ length: count }, (_, index) => ({
      nodeId: index + 1,
      host: `198.51.100.${index + 1}`,
      port: 5_060,
      externalPort: 5_080,
      transport: 'udp',
      weight: 1 + ((index * 37) % 100),
      priority: 10 + (index % 2),
      description: null,
      maxCalls: 0,
      operatorState: 'active',
    })),
  }
  const dispatcher = new Dispatcher({
    loadSets: () => Promise.resolve([set]),
    saveOperatorState: () => Promise.resolve(true),
    now: () => 0,
    random: Math.random,
    schedule: () => () => undefined,
    sendProbe: () => undefined,
    activeCalls: () => 0,
    onNodeChange: () => undefined,
    probeDefaults: {
      intervalMs: 500,
      timeoutMs: 400,
      failuresToProbing: 3,
      successesToActive: 3,
      okCodes: [{ from: 200, to: 299 }],
    },
    hosts: {
      version: 0,
      addressesOf: () => [],
      isUnresolvable: () => false,
      watch: () => undefined,
    },
  })
  dispatcher.replace([set])
  return dispatcher
}
