import { once } from 'node:events'
import { Worker } from 'node:worker_threads'
import { setFlagsFromString } from 'node:v8'
import { expect, test } from 'vitest'
import { startSmall } from '../../schema/small-thread.ts'

/** Answers with the bytes that its heap may have. */
const tellsItsHeap = (): Worker =>
  new Worker(
    `const { parentPort } = require('node:worker_threads')
    const { getHeapStatistics } = require('node:v8')
    parentPort.postMessage(getHeapStatistics().heap_size_limit)`,
    { eval: true, resourceLimits: { maxOldGenerationSizeMb: 100 } },
  )

async function heapOf(worker: Worker): Promise<number> {
  const [bytes] = (await once(worker, 'message')) as [number]
  await worker.terminate()
  return bytes
}

/** As the launcher starts the program. */
const words = ['--min-semi-space-size=16', '--max-semi-space-size=32']
for (const word of words) setFlagsFromString(word)

test('a small thread has less memory, and those after it have what they had before', async () => {
  const before = await heapOf(tellsItsHeap())
  const small = await heapOf(startSmall(tellsItsHeap, words))
  const after = await heapOf(tellsItsHeap())
  expect(small).toBeLessThan(before)
  expect(after).toBe(before)
})

test('a thread that cannot start leaves the sizes as they were', async () => {
  const before = await heapOf(tellsItsHeap())
  const start = (): Worker => {
    throw new Error('no thread')
  }
  expect(() => startSmall(start, words)).toThrow('no thread')
  expect(await heapOf(tellsItsHeap())).toBe(before)
})
