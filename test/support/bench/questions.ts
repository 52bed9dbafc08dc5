/** What a server under a bench tells of itself: a number for every line that it reads. */
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { createInterface } from 'node:readline'

const RESOLUTION_MS = 1

/** `cpu`: microseconds of CPU so far. `late`: by how many ms the loop was late at p99, since the last time. */
export function answerQuestions(onEnd: () => void): void {
  const delay = monitorEventLoopDelay({ resolution: RESOLUTION_MS })
  delay.enable()
  const answers: Readonly<Record<string, () => number>> = {
    cpu: () => {
      const { user, system } = process.cpuUsage()
      return user + system
    },
    late: () => {
      const late = Math.max(0, delay.percentile(99) / 1e6 - RESOLUTION_MS)
      delay.reset()
      return late
    },
  }
  createInterface({ input: process.stdin })
    .on('line', (question) => process.stdout.write(`${answers[question]?.() ?? 0}\n`))
    .on('close', () => {
      delay.disable()
      onEnd()
    })
}
