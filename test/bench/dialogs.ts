/** Established dialogs: what each holds of memory, and whether calls beside them are still quick. */
import { AnsweringProcess } from '../support/bench/answering-process.ts'
import { SteadyCallers } from '../support/bench/steady-callers.ts'

export const describe =
  '10,000 established dialogs in the SIP server: resident bytes each, event-loop lag at 300 calls/s'

const dialogs = 10_000
const callsPerSecond = 300
const seconds = 10
/** Calls a second while the dialogs are being established. */
const fillRate = 800
const maxTries = 10
const limits = { bytesPerDialog: 25_000, lagP99Ms: 20 }

export async function run(): Promise<void> {
  const server = await AnsweringProcess.start()
  const callers = await SteadyCallers.open(server.port)
  try {
    // The first calls cost what is only paid once: code, buffers, room in tables.
    await callers.place(500, 500, 0)
    const before = await server.figures()
    let full = before
    // On a busy machine some are refused by the overload protection, and come back.
    for (let tries = 0; tries < maxTries && full.dialogs < dialogs; tries++) {
      await callers.place(dialogs - full.dialogs, fillRate)
      full = await server.figures()
    }
    const established = full.dialogs - before.dialogs
    const bytes = (full.rssBytes - before.rssBytes) / established
    const heap = (full.heapBytes - before.heapBytes) / established
    console.log(
      `  ${established} of ${dialogs} dialogs: ${kB(bytes)} resident each, ${kB(heap)} of them heap`,
    )

    const start = await server.figures('reset')
    const answeredBefore = callers.answered
    await callers.place(callsPerSecond * seconds, callsPerSecond, 1_000)
    const end = await server.figures()
    const answered = callers.answered - answeredBefore
    const cpu = (end.cpuMicros - start.cpuMicros) / answered
    console.log(
      `  beside them ${answered} of ${callsPerSecond * seconds} calls at ${callsPerSecond}/s: ` +
        `event-loop lag p99 ${end.lagP99Ms.toFixed(1)} ms, ${cpu.toFixed(0)} µs of CPU per call`,
    )
    await callers.hangUpAll(2_000)
    const over = await server.figures()
    console.log(
      `  after all calls have ended: ${over.dialogs} dialogs, ${over.errors.length} errors`,
    )
    if (
      established < dialogs ||
      bytes > limits.bytesPerDialog ||
      end.lagP99Ms > limits.lagP99Ms ||
      answered < callsPerSecond * seconds ||
      over.dialogs > 0
    )
      process.exitCode = 1
  } finally {
    callers.close()
    server.stop()
  }
}

const kB = (bytes: number): string => `${(bytes / 1_000).toFixed(1)} kB`
