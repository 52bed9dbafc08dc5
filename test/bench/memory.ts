import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { BridgedCalls } from './load/bridged-calls.ts'
import { TollgateProcess } from '../support/tollgate-process.ts'
import { caller, oneCustomer } from './load/one-customer.ts'
import { numbersOf } from './load/options.ts'
import { residentMegabytes } from './load/process-cpu.ts'
import { placeCalls, startNode } from './load/sipp-load.ts'

export const describe =
  'heap that the SIP core holds per call; resident memory of the program at rest and under calls; arguments: rate=700 calls=100000 more=50000, calls=0 for the core alone'

const calls = 5_000

export async function run(words: readonly string[] = []): Promise<void> {
  const usual = { rate: 700, calls: 100_000, more: 50_000 }
  const { rate, calls: first, more } = numbersOf(words, usual)
  ofCore()
  if (first > 0) await ofProgram(rate, [first, more])
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
  const places = {
    'per call that ended within the last 6 s': [(world: BridgedCalls) => world.place(), 0],
    'per call that ended 10 to 16 s ago': [(world: BridgedCalls) => world.place(), 10_000],
    'per call that ended 2 minutes ago': [(world: BridgedCalls) => world.place(), 120_000],
    'per live call of 2 minutes': [(world: BridgedCalls) => world.placeAndStay(), 120_000],
  } as const
  for (const [what, [place, restMs]] of Object.entries(places))
    console.log(`${measure(place, restMs).toFixed(0).padStart(8)}  bytes ${what}`)
}
