/**
 * What the started program costs while nothing happens: CPU time and wake-ups a second, by thread,
 * with probed nodes and, at the same moments, without: the difference are the probes. Before any
 * call, and after a load. The nodes and SIPp are processes of their own.
 *
 * The first minutes of a process are no rest: the thread of reports begins after ten seconds, and V8
 * compiles what is used and gives memory back: 3.5 ms a second after 40 s are 2.6 after 150.
 */
import { setTimeout as pause } from 'node:timers/promises'
import { TollgateProcess } from '../support/tollgate-process.ts'
import { startNodes } from './load/many-nodes.ts'
import { caller, oneCustomer } from './load/one-customer.ts'
import { numbersOf } from './load/options.ts'
import { placeCalls } from './load/sipp-load.ts'
import { threadsOf } from './load/threads.ts'

export const describe =
  'CPU and wake-ups a second of a process at rest, by thread, before and after calls; ' +
  'arguments: nodes=3 settle=150 seconds=30 calls=500 rate=50; TEST_DATABASE=postgres'

export async function run(words: readonly string[] = []): Promise<void> {
  const usual = { nodes: 3, settle: 150, seconds: 30, calls: 500, rate: 50 }
  const { nodes: count, settle, seconds, calls, rate } = numbersOf(words, usual)
  const nodes = await startNodes(count)
  const probing = await start(nodes.ports)
  const alone = await start([])
  const measure = async (moment: string): Promise<void> => {
    await pause(settle * 1_000)
    const [withProbes = [], without = []] = await restsOf([probing.pid, alone.pid], seconds)
    print(`${moment}, ${count} nodes`, withProbes, seconds)
    print(`${moment}, no nodes`, without, seconds)
  }
  try {
    await measure('before any call')
    if (calls === 0) return
    const { succeeded } = await placeCalls(probing.sipPort, rate, calls, caller)
    await probing.waitForCalls(succeeded)
    await measure(`after ${succeeded} calls`)
  } finally {
    await alone.stop()
    await probing.stop()
    nodes.stop()
  }
}

const start = (ports: readonly number[]): Promise<TollgateProcess> =>
  TollgateProcess.start(ports.length === 0 ? {} : oneCustomer(ports), { LOG_LEVEL: 'warn' })

interface Rest {
  readonly name: string
  readonly cpuMicros: number
  readonly wakeUps: number
}

/** What each group of threads of each process has used in these seconds. */
async function restsOf(
  pids: readonly number[],
  seconds: number,
): Promise<readonly (readonly Rest[])[]> {
  const before = pids.map(threadsOf)
  await pause(seconds * 1_000)
  return pids.map((pid, index) =>
    [...threadsOf(pid)].map(([name, { cpuMicros, wakeUps }]) => ({
      name,
      cpuMicros: cpuMicros - (before[index]?.get(name)?.cpuMicros ?? 0),
      wakeUps: wakeUps - (before[index]?.get(name)?.wakeUps ?? 0),
    })),
  )
}

function print(moment: string, rests: readonly Rest[], seconds: number): void {
  const sum = (of: (rest: Rest) => number) => rests.reduce((all, rest) => all + of(rest), 0)
  const all = { cpuMicros: sum((rest) => rest.cpuMicros), wakeUps: sum((rest) => rest.wakeUps) }
  console.log(`  ${moment}: ${said(all, seconds)}`)
  const awake = rests.filter(({ wakeUps }) => wakeUps > 0)
  for (const rest of awake.toSorted((a, b) => b.cpuMicros - a.cpuMicros))
    console.log(`    ${rest.name}: ${said(rest, seconds)}`)
}

const said = ({ cpuMicros, wakeUps }: Omit<Rest, 'name'>, seconds: number): string =>
  `${(cpuMicros / 1_000 / seconds).toFixed(2)} ms of CPU and ` +
  `${(wakeUps / seconds).toFixed(1)} wake-ups a second`
