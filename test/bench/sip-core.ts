import { BridgedCalls } from './load/bridged-calls.ts'

export const describe = 'one bridged call through the SIP core, without sockets: CPU µs'

const warmUp = 20_000
const rounds = 8
const callsPerRound = 10_000

export async function run(): Promise<void> {
  const calls = new BridgedCalls(800)
  for (let count = 0; count < warmUp; count++) calls.place()
  const figures: number[] = []
  for (let round = 0; round < rounds; round++) {
    const before = process.cpuUsage()
    for (let count = 0; count < callsPerRound; count++) calls.place()
    const { user, system } = process.cpuUsage(before)
    figures.push((user + system) / callsPerRound)
  }
  figures.sort((a, b) => a - b)
  const [best = 0] = figures
  const median = figures[rounds / 2] ?? 0
  console.log(`  best ${best.toFixed(1)}, median ${median.toFixed(1)} µs per call`)
}
