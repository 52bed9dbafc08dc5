/**
 * The cost of one probe of a node: the started program at rest with many nodes, beside the same
 * program with three, in turns. Each probe is an OPTIONS and its answer.
 */
import { TollgateProcess } from '../support/tollgate-process.ts'
import { spread } from './load/figures.ts'
import { startNodes } from './load/many-nodes.ts'
import { oneCustomer } from './load/one-customer.ts'
import { numbersOf } from './load/options.ts'
import { cpuMicros } from './load/process-cpu.ts'

export const describe =
  'CPU µs per probe of a node, without calls; arguments: nodes=1000 seconds=6 turns=3'

const FEW = 3
/** Default of `PROBE_INTERVAL_MS`. */
const PROBES_PER_NODE_AND_SECOND = 2
const WARM_UP_MS = 12_000

export async function run(words: readonly string[] = []): Promise<void> {
  const usual = { nodes: 1_000, seconds: 6, turns: 3 }
  const { nodes: count, seconds, turns } = numbersOf(words, usual)
  const nodes = await startNodes(count)
  const few = await start(nodes.ports.slice(0, FEW))
  const many = await start(nodes.ports)
  try {
    await pause(WARM_UP_MS)
    const perProbe: number[] = []
    for (let turn = 0; turn < turns; turn += 1) {
      const spent = await spentIn([few.pid, many.pid], seconds)
      const [base = 0, all = 0] = spent
      const probes = (count - FEW) * PROBES_PER_NODE_AND_SECOND * seconds
      perProbe.push((all - base) / probes)
    }
    console.log(`  ${count} nodes: ${spread(perProbe, 1)} µs per probe`)
  } finally {
    await many.stop()
    await few.stop()
    nodes.stop()
  }
}

const start = (ports: readonly number[]): Promise<TollgateProcess> =>
  TollgateProcess.start(oneCustomer(ports), { LOG_LEVEL: 'warn' })

/** CPU time of each process, microseconds. */
async function spentIn(pids: readonly number[], seconds: number): Promise<readonly number[]> {
  const before = pids.map((pid) => cpuMicros([pid]))
  await pause(seconds * 1_000)
  return pids.map((pid, index) => cpuMicros([pid]) - (before[index] ?? 0))
}

const pause = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms))
