/**
 * Starts a thread whose young generation is small. Flags of V8 that the program was started with
 * prevail over the `resourceLimits` of a thread, and these are made for the thread of the calls.
 */
import type { Worker } from 'node:worker_threads'
import { setFlagsFromString } from 'node:v8'

/** Megabytes of a half of the young generation. */
const smallSizes: readonly (readonly [flag: string, size: number])[] = [
  ['--min-semi-space-size', 1],
  ['--max-semi-space-size', 4],
]

/**
 * Threads that run already keep their sizes. Another one that starts meanwhile is small, too.
 *
 * @param words the flags of the program; without sizes, `resourceLimits` count.
 */
export function startSmall(start: () => Worker, words: readonly string[]): Worker {
  const chosen = smallSizes.map(([flag]) => words.findLast((word) => word.startsWith(`${flag}=`)))
  const restore = (): void => {
    for (const word of chosen) if (word !== undefined) setFlagsFromString(word)
  }
  for (const [index, [flag, size]] of smallSizes.entries())
    if (chosen[index] !== undefined) setFlagsFromString(`${flag}=${size}`)
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
