import { simulate } from '../simulation/calls.ts'

export const describe =
  'two stacks over a network that loses, delays, doubles and reorders; arguments: seeds=5000 from=1 transport=udp|tcp'

export async function run(words: readonly string[] = []): Promise<void> {
  const options = new Map(words.map((word) => word.split('=') as [string, string | undefined]))
  const from = Number(options.get('from') ?? 1)
  const seeds = Number(options.get('seeds') ?? 5_000)
  const transport = options.get('transport') === 'tcp' ? 'tcp' : 'udp'
  const before = process.cpuUsage()
  let virtualMs = 0
  let answered = 0
  let broken = 0
  for (let seed = from; seed < from + seeds; seed++) {
    const world = simulate(seed, transport)
    virtualMs += world.virtualMs
    answered += world.answered
    if (world.complaints.length === 0) continue
    broken += 1
    console.log(`  seed ${seed}: ${world.complaints.join('; ')}`)
  }
  const { user, system } = process.cpuUsage(before)
  console.log(
    `  ${seeds} worlds, ${answered} answered calls, ${(virtualMs / 3_600_000).toFixed(1)} hours of protocol ` +
      `in ${((user + system) / 1e6).toFixed(1)} s of CPU; ${broken} broken`,
  )
  if (broken > 0) process.exitCode = 1
}
