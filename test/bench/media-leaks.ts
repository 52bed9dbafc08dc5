/** Calls that fail over, are cancelled, held and transferred, through two real relays: no session is left there. */
import { MixedCalls } from '../support/mixed-calls.ts'
import { RtpEngine } from '../support/rtpengine.ts'
import { TollgateProcess } from '../support/tollgate-process.ts'
import { eventually } from '../support/waiting.ts'
import { caller, oneCustomer } from './load/one-customer.ts'

export const describe =
  'relay sessions left after calls with failovers, cancels, holds, transfers (none may be); arguments: calls=10000 rate=80'

export async function run(words: readonly string[] = []): Promise<void> {
  const options = new Map(words.map((word) => word.split('=') as [string, string | undefined]))
  const count = Number(options.get('calls') ?? 10_000)
  const rate = Number(options.get('rate') ?? 80)
  const engines = await Promise.all(
    [1, 2].map(() => RtpEngine.start({ words: ['--log-level=3'], shares: 4 })),
  )
  const calls = await MixedCalls.open(caller)
  const tollgate = await TollgateProcess.start(oneCustomer(calls.nodePorts, 8), {
    RTPENGINE: engines.map(({ setting }) => setting).join(),
    MEDIA_POLICY: 'anchor',
    LOG_LEVEL: 'warn',
  })
  const left = async (): Promise<number> =>
    (await Promise.all(engines.map((engine) => engine.sessions()))).flat().length
  try {
    await calls.place(tollgate.sipPort, { count, rate })
    await eventually(async () => {
      if ((await left()) > 0) throw new Error('sessions are left')
    }).catch(() => undefined)
    console.log(`  ${calls.done} of ${count} calls went as they should`)
    // Why calls got 503.
    for (const line of tollgate.log.filter((each) => /overload|media relay/.test(each)))
      console.log(`  ${line}`)
    for (const failure of calls.failures.slice(0, 10)) console.log(`  ${failure}`)
    console.log(`  ${await left()} sessions are left at the relays`)
    if ((await left()) > 0) process.exitCode = 1
  } finally {
    calls.close()
    await tollgate.stop()
    for (const engine of engines) await engine.stop()
  }
}
