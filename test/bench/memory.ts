import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { BridgedCalls } from '../support/bench/bridged-calls.ts'
import { TollgateProcess } from '../support/tollgate-process.ts'
import { caller, oneCustomer } from './load/one-customer.ts'
import { residentMegabytes } from './load/process-cpu.ts'
import { placeCalls, startNode } from './load/sipp-load.ts'

export const describe =
  'heap that the SIP core holds per call; resident memory of the program at rest and under calls; arguments: rate=700 calls=100000 more=50000, calls=0 for the core alone'

const calls = 5_000

export async function run(words: readonly string[] = []): Promise<void> {
  const options = new Map(words.map((word) => word.split('=') as [string, string | undefined]))
  const numberOf = (name: string, usual: number): number => Number(options.get(name) ?? usual)
  ofCore()
  const first = numberOf('calls', 100_000)
  if (first > 0) await ofProgram(numberOf('rate', 700), [first, numberOf('more', 50_000)])
}

/** How long the program rests before it is looked at. Milliseconds. */
const restMs = 10_000

async function ofProgram(rate: number, rounds: readonly number[]): Promise<void> {
  const nodes = [await startNode(), await startNode(), await startNode()]
  const tollgate = await TollgateProcess.start(oneCustomer(nodes.map(({ port }) => port)), {
    LOG_LEVEL: 'warn',
  })
  const print = (what: string): void =>
    console.log(`${residentMegabytes(tollgate.pid).toFixed(0).padStart(8)}  MB resident ${what}`)
  try {
    await new Promise((resolve) => setTimeout(resolve, restMs))
    print('at rest after the start')
    for (const count of rounds) {
      const { succeeded } = await placeCalls(tollgate.sipPort, rate, count, caller)
      print(`after ${succeeded} of ${count} calls at ${rate}/s`)
    }
  } finally {
    await tollgate.stop()
    for (const node of nodes) await node.stop()
  }
}

function ofCore(): void {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  const used = (): number => {
    collect()
    return process.memoryUsage().heapUsed
  }
  const measure = (place: (world: BridgedCalls) => void, restMs: number): number => {
    const world = new BridgedCalls(800)
    for (let count = 0; count < 100; count++) place(world)
    const before = used()
    for (let count = 0; count < calls; count++) place(world)
    for (let waited = 0; waited < restMs; waited += 100) world.advance(100)
    const bytes = (used() - before) / calls
    world.core.nextDeadline()
    return bytes
  }
  const print = (bytes: number, what: string): void =>
    console.log(`${bytes.toFixed(0).padStart(8)}  bytes ${what}`)
  print(
    measure((world) => world.place(), 0),
    'per call that ended within the last 6 s',
  )
  print(
    measure((world) => world.place(), 10_000),
    'per call that ended 10 to 16 s ago',
  )
  print(
    measure((world) => world.place(), 120_000),
    'per call that ended 2 minutes ago',
  )
  print(
    measure((world) => world.placeAndStay(), 120_000),
    'per live call of 2 minutes',
  )
}
