/**
 * Loaded into a started program before its own code (`--import`): at SIGWINCH it writes how late
 * the event loop has been since the last SIGWINCH into the file that LOOP_LAG_FILE names.
 */
import { renameSync, writeFileSync } from 'node:fs'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { isMainThread } from 'node:worker_threads'

/** 200 samples a second: a quarter of a percent of a core. */
const RESOLUTION_MS = 5

const file = process.env.LOOP_LAG_FILE
if (isMainThread && file !== undefined) {
  const histogram = monitorEventLoopDelay({ resolution: RESOLUTION_MS })
  histogram.enable()
  // A sample is the time between two wake-ups.
  const lagMs = (nanoseconds) => Math.max(0, nanoseconds / 1e6 - RESOLUTION_MS)
  process.on('SIGWINCH', () => {
    const [p50Ms, p99Ms] = [50, 99].map((percent) => lagMs(histogram.percentile(percent)))
    const lag = { samples: histogram.count, p50Ms, p99Ms, maxMs: lagMs(histogram.max) }
    histogram.reset()
    writeFileSync(`${file}.new`, JSON.stringify(lag))
    renameSync(`${file}.new`, file)
  })
}
