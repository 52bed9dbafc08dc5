/** The thread in which the operator's file of hooks runs. */
import { randomBytes } from 'node:crypto'
import { parentPort, workerData } from 'node:worker_threads'
import { WorkerApplication } from './application/start-application.ts'
import { HookThreadRunner } from './hook-thread-runner.ts'
import type { HookThreadData, HostMessage, ThreadMessage } from './thread-messages.ts'

const FLUSH_MS = 50
const SECOND_MS = 1_000

const port = parentPort
if (port !== null) {
  // The host gives these arguments.
  const { file, fallback } = workerData as HookThreadData
  const runner = new HookThreadRunner({
    file,
    ownFolder: import.meta.dirname,
    now: () => performance.now(),
    post: (message: ThreadMessage) => port.postMessage(message, []),
    end: () => process.exit(0),
    createApplication: (world) =>
      WorkerApplication.create({
        ...world,
        fallback,
        randomSecret: () => randomBytes(24).toString('base64url'),
        log: (level, message) => {
          if (level === 'warn' || level === 'error') world.print({ level: 'warn', text: message })
        },
      }),
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
