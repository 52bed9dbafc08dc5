/**
 * Loaded into a started program before its own code (`--import`): at SIGWINCH it writes how long
 * its writes and its collections have taken since the last SIGWINCH into the file that WAITS_FILE
 * names.
 */
import fs, { renameSync, writeFileSync } from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { monitorEventLoopDelay, PerformanceObserver } from 'node:perf_hooks'
import { isMainThread } from 'node:worker_threads'

const RESOLUTION_MS = 5
const LONG_BYTES = 200_000

const file = process.env.WAITS_FILE
if (isMainThread && file !== undefined) {
  const histogram = monitorEventLoopDelay({ resolution: RESOLUTION_MS })
  histogram.enable()
  const waits = new Map()
  const note = (name, ms) => {
    const list = waits.get(name)
    if (list === undefined) waits.set(name, [ms])
    else list.push(ms)
  }
  const kinds = { 1: 'scavenge', 2: 'minor mark-compact', 4: 'mark-compact', 8: 'marking' }
  new PerformanceObserver((list) => {
    for (const { detail, duration } of list.getEntries())
      note(kinds[detail.kind] ?? `collection ${detail.kind}`, duration)
  }).observe({ entryTypes: ['gc'] })
  for (const name of ['write', 'fdatasync']) {
    const plain = fs[name]
    // What Node.js keeps on a function for `promisify` stays.
    fs[name] = Object.defineProperties((...words) => {
      const done = words.pop()
      const begin = performance.now()
      plain(...words, (...results) => {
        const isLong = name === 'write' && words[3] >= LONG_BYTES
        note(`fs.${name}${isLong ? ', long' : ''}`, performance.now() - begin)
        done(...results)
      })
    }, Object.getOwnPropertyDescriptors(plain))
  }
  for (const name of ['openSync', 'fsyncSync', 'statSync', 'existsSync', 'renameSync']) {
    const plain = fs[name]
    fs[name] = (...words) => {
      const begin = performance.now()
      try {
        return plain(...words)
      } finally {
        note(`fs.${name}, in the loop`, performance.now() - begin)
      }
    }
  }
  syncBuiltinESMExports()
  process.on('SIGWINCH', () => {
    const lag = [50, 99, 99.9].map((percent) =>
      Math.max(0, histogram.percentile(percent) / 1e6 - RESOLUTION_MS),
    )
    histogram.reset()
    writeFileSync(`${file}.new`, JSON.stringify({ lag, waits: Object.fromEntries(waits) }))
    renameSync(`${file}.new`, file)
    waits.clear()
  })
}
