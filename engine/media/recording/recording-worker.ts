/** The thread that converts the captures of calls to files: no call waits for it. */
import { setPriority } from 'node:os'
import { parentPort } from 'node:worker_threads'
import { type ConversionOrder, convert } from './audio/convert.ts'

/** Calls have priority. On Linux this applies to this thread alone. */
if (process.platform === 'linux') setPriority(0, 10)

parentPort?.on('message', (order: ConversionOrder) => parentPort?.postMessage(convert(order), []))
