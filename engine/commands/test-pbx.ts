import { startPbxNode } from '../pbx-node.ts'
import { createLogger } from '../logger.ts'
import { ListenError } from '../sip-server/index.ts'
import { type Command, WrongUsage } from './command.ts'

const PORT = 5_070

/** A node for somebody who has no PBX yet. */
export const testPbx: Command = {
  name: 'test-pbx',
  summary: 'Serves a PBX node on loopback that answers every call. For first calls.',
  options: { port: { value: 'PORT', meaning: `The UDP port of 127.0.0.1; ${PORT} when absent.` } },
  details: () =>
    'It rings for 300 ms, answers, and sends no sound. Numbers that end in 9 are busy. ' +
    'Ctrl-C stops it.',
  run: async ({ options }, context) => {
    const port = Number(options['port'] ?? PORT)
    if (!Number.isInteger(port) || port < 1 || port > 65_535)
      throw new WrongUsage(`--port ${options['port']}: allowed is a number from 1 to 65535`)
    const stopped = new Promise<void>((resolve) => context.onStopSignal(() => resolve()))
    const { log } = createLogger('warn')
    const node = await startPbxNode(context, log, { host: '127.0.0.1', port }).catch(
      (error: unknown) => {
        throw error instanceof ListenError ? new WrongUsage(error.message) : error
      },
    )
    context.print(`test-pbx: answers calls at 127.0.0.1:${port}; Ctrl-C stops it`)
    await stopped
    await node.stop()
    return 0
  },
}
