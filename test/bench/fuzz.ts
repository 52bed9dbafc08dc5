import { fuzz } from '../simulation/fuzz.ts'

export const describe = 'bent messages against the SIP core; arguments: seconds=20 seed=1'

export async function run(words: readonly string[] = []): Promise<void> {
  const options = new Map(words.map((word) => word.split('=') as [string, string | undefined]))
  const until = performance.now() + Number(options.get('seconds') ?? 20) * 1_000
  let seed = Number(options.get('seed') ?? 1)
  let messages = 0
  for (; performance.now() < until; seed++, messages += messagesPerSeed) {
    const complaints = fuzz(seed, messagesPerSeed)
    for (const complaint of complaints) console.log(`  seed ${seed}: ${complaint}`)
    if (complaints.length > 0) process.exitCode = 1
  }
  console.log(`  ${messages} messages, seeds up to ${seed - 1}`)
}

const messagesPerSeed = 2_000
