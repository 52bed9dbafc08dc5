/**
 * What one probe of a node costs: the started program at rest with many nodes, beside the same program with
 * three, in turns. Each probe is an OPTIONS and its answer.
 */
import { freePort } from '../support/free-port.ts'
import { TollgateProcess } from '../support/tollgate-process.ts'
import { Profiler } from './load/cpu-profile.ts'
import { spread } from './load/figures.ts'
import { startNodes } from './load/many-nodes.ts'
import { oneCustomer } from './load/one-customer.ts'
import { cpuMicros } from './load/process-cpu.ts'

export const describe =
  'CPU µs per probe of a node, without calls; arguments: nodes=1000 seconds=6 turns=3 functions=0 (from a profile)'

const FEW = 3
/** Default of `PROBE_INTERVAL_MS`. */
const PROBES_PER_NODE_AND_SECOND = 2
const WARM_UP_MS = 12_000

export async function run(words: readonly string[] = []): Promise<void> {
  const options = new Map(words.map((word) => word.split('=') as [string, string | undefined]))
  const count = Number(options.get('nodes') ?? 1_000)
  const seconds = Number(options.get('seconds') ?? 6)
  const functions = Number(options.get('functions') ?? 0)
  const nodes = await startNodes(count)
  const inspectorPort = await freePort()
  const env: Record<string, string> =
    functions > 0 ? { NODE_OPTIONS: `--inspect=127.0.0.1:${inspectorPort}` } : {}
  const few = await start(nodes.ports.slice(0, FEW))
  const many = await start(nodes.ports, env)
  try {
    await pause(WARM_UP_MS)
    const perProbe: number[] = []
    for (let turn = 0; turn < Number(options.get('turns') ?? 3); turn += 1) {
      const spent = await spentIn([few.pid, many.pid], seconds)
      const [base = 0, all = 0] = spent
      const probes = (count - FEW) * PROBES_PER_NODE_AND_SECOND * seconds
      perProbe.push((all - base) / probes)
    }
    console.log(`  ${count} nodes: ${spread(perProbe, 1)} µs per probe`)
    if (functions > 0) await profile(inspectorPort, seconds, count, functions)
  } finally {
    await many.stop()
    await few.stop()
    nodes.stop()
  }
}

async function profile(
  port: number,
  seconds: number,
  count: number,
  functions: number,
): Promise<void> {
  const profiler = await Profiler.connect(port)
  await profiler.start()
  await pause(seconds * 1_000)
  const shares = await profiler.stop()
  profiler.close()
  const probes = count * PROBES_PER_NODE_AND_SECOND * seconds
  for (const { file, name, micros } of shares.slice(0, functions))
    console.log(`  ${(micros / probes).toFixed(2).padStart(7)}  ${file} ${name}`)
}

const start = (
  ports: readonly number[],
  environment: Readonly<Record<string, string>> = {},
): Promise<TollgateProcess> =>
  TollgateProcess.start(oneCustomer(ports), { LOG_LEVEL: 'warn', ...environment })

/** CPU time of each process, microseconds. */
async function spentIn(pids: readonly number[], seconds: number): Promise<readonly number[]> {
  const before = pids.map((pid) => cpuMicros([pid]))
  await pause(seconds * 1_000)
  return pids.map((pid, index) => cpuMicros([pid]) - (before[index] ?? 0))
}

const pause = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms))
