/**
 * Starts a thread whose young generation is small. A thread takes over the sizes that V8 has for
 * the whole program when it starts, and these are larger than its `resourceLimits` say: they are
 * made for the thread of the calls.
 */
import type { Worker } from 'node:worker_threads'
import { setFlagsFromString } from 'node:v8'

/** Megabytes of a half of the young generation. */
const smallSizes = { 'min-semi-space-size': 1, 'max-semi-space-size': 4 }
type SizeFlag = keyof typeof smallSizes
const flags = Object.keys(smallSizes) as readonly SizeFlag[]

/** What runs already keeps its sizes. Another thread that starts meanwhile is small, too. */
export function startSmall(start: () => Worker): Worker {
  for (const flag of flags) setFlagsFromString(`--${flag}=${smallSizes[flag]}`)
  try {
    const worker = start()
    // It has its memory by then.
    worker.once('online', restore)
    worker.once('exit', restore)
    return worker
  } catch (error) {
    restore()
    throw error
  }
}

function restore(): void {
  for (const flag of flags) setFlagsFromString(`--${flag}=${sizeOfProgram(flag)}`)
}

/** The size that the program was started with; 0: V8 has its own. */
function sizeOfProgram(flag: SizeFlag): string {
  const words = [...(process.env.NODE_OPTIONS ?? '').split(' '), ...process.execArgv]
  const spelt = new RegExp(`^--${flag.replaceAll('-', '[-_]')}=(\\d+)$`)
  return words.reduce((size, word) => spelt.exec(word)?.[1] ?? size, '0')
}
