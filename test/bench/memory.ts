import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { BridgedCalls } from '../support/bench/bridged-calls.ts'

export const describe = 'heap that the SIP core holds: per live call, per call that has just ended'

const calls = 5_000

export async function run(): Promise<void> {
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
