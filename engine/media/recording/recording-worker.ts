/** The thread that makes files out of what was captured: no call waits for it. */
import { setPriority } from 'node:os'
import { parentPort } from 'node:worker_threads'
import { type ConversionOrder, convert } from './audio/convert.ts'

/** Where there is not enough for both, calls come first. Linux counts it for this thread alone. */
if (process.platform === 'linux') setPriority(0, 10)

parentPort?.on('message', (order: ConversionOrder) => {
  const steps = convert(order)
  let step = steps.next()
  while (step.done !== true) step = steps.next()
  parentPort?.postMessage(step.value, [])
})
