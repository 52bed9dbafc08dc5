import { countTransitions } from '../simulation/call-control/coverage.ts'
import { simulateHistory } from '../simulation/call-control/history.ts'

export const describe =
  'random histories of calls through the machine of call control; arguments: count=100000 seed=1 quiet'

export async function run(words: readonly string[] = []): Promise<void> {
  const options = new Map(words.map((word) => word.split('=') as [string, string | undefined]))
  const first = Number(options.get('seed') ?? 1)
  const count = Number(options.get('count') ?? 10_000)
  const taken = countTransitions()
  const ends = new Map<string, number>()
  const before = process.cpuUsage()
  let [steps, calls, broken] = [0, 0, 0]
  for (let seed = first; seed < first + count; seed++) {
    try {
      const history = simulateHistory(seed)
      steps += history.steps
      calls += history.calls
      for (const end of history.ends) ends.set(end, (ends.get(end) ?? 0) + 1)
    } catch (error) {
      broken += 1
      if (broken <= 20) console.log(error)
    }
  }
  const { user, system } = process.cpuUsage(before)
  const seconds = (user + system) / 1e6
  console.log(
    `  ${count} histories, ${calls} calls, ${steps} steps, each with its world written and read back, ` +
      `in ${seconds.toFixed(1)} s of CPU; ${broken} broken`,
  )
  for (const [end, times] of [...ends].toSorted(([, a], [, b]) => b - a))
    console.log(`  ${times} × ${end}`)
  const never = [...taken].filter(([, times]) => times === 0).map(([name]) => name)
  if (!options.has('quiet'))
    for (const [name, times] of taken) if (times > 0) console.log(`  ${times} × ${name}`)
  console.log(
    `  ${taken.size - never.length} of ${taken.size} transitions taken; never: ${never.join(', ')}`,
  )
  if (broken > 0) process.exitCode = 1
}
