/** The thread that converts the captures of calls to files: no call waits for it. */
import { parentPort } from 'node:worker_threads'
import { runBehindCalls } from '../../../schema/behind-calls.ts'
import { type ConversionOrder, convert } from './audio/convert.ts'

runBehindCalls(10)

parentPort?.on('message', (order: ConversionOrder) => parentPort?.postMessage(convert(order), []))
