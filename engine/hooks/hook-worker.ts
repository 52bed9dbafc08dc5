/** The thread in which the operator's file of hooks runs. */
import { parentPort, workerData } from 'node:worker_threads'
import { HookThreadRunner } from './hook-thread-runner.ts'
import type { HookThreadData, HostMessage, ThreadMessage } from './thread-messages.ts'

const FLUSH_MS = 50
const SECOND_MS = 1_000

const port = parentPort
if (port !== null) {
  // The host gives these arguments.
  const { file } = workerData as HookThreadData
  const runner = new HookThreadRunner({
    file,
    ownFolder: import.meta.dirname,
    now: () => performance.now(),
    post: (message: ThreadMessage) => port.postMessage(message, []),
    end: () => process.exit(0),
  })
  process.on('uncaughtException', (error) => runner.uncaught(error))
  process.on('unhandledRejection', (reason) => runner.uncaught(reason))
  for (const [stream, level] of [
    [process.stdout, 'info'],
    [process.stderr, 'warn'],
  ] as const)
    stream.write = runner.writerOf(level)
  setInterval(() => runner.flush(), FLUSH_MS)
  setInterval(() => runner.renew(), SECOND_MS)
  await runner.load()
  port.on('message', (message: HostMessage) => runner.receive(message))
}
