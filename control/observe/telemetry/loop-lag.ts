import type { LoopDelay } from '../../http/platform.ts'

/**
 * How long what comes at any moment waits for the turn of the event loop that goes on: in `part` of
 * the time no longer than the returned milliseconds. The turns have the longest length of their
 * percentile, so the wait is said too long rather than too short.
 */
export function waitWithin(
  part: number,
  { count, percentiles }: Pick<LoopDelay, 'count' | 'percentiles'>,
  spanMs: number,
): number {
  // Within one turn the wait falls from its length to 0: beyond x, it lasts for its length - x.
  const allowedMs = (1 - part) * spanMs
  const steps = [...percentiles].map(([percent, nanoseconds]) => ({
    percent,
    ms: nanoseconds / 1e6,
  }))
  let turns = 0
  let sumMs = 0
  for (let index = steps.length - 1; index >= 0; index -= 1) {
    const { percent, ms } = steps[index] ?? { percent: 0, ms: 0 }
    const below = steps[index - 1] ?? { percent: 0, ms: 0 }
    const added = (count * (percent - below.percent)) / 100
    turns += added
    sumMs += added * ms
    if (turns === 0) continue
    const waitMs = (sumMs - allowedMs) / turns
    if (waitMs >= below.ms) return waitMs
  }
  return 0
}
