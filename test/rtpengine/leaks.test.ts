/** Relay sessions do not outlive their calls, however these go: some hundred calls. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { caller, oneCustomer } from '../bench/load/one-customer.ts'
import { MixedCalls } from '../support/mixed-calls.ts'
import { RtpEngine } from '../support/rtpengine.ts'
import { TollgateProcess } from '../support/tollgate-process.ts'
import { eventually } from '../support/waiting.ts'

let engines: readonly RtpEngine[]
let calls: MixedCalls
let tollgate: TollgateProcess

beforeAll(async () => {
  engines = await Promise.all([RtpEngine.start(), RtpEngine.start()])
  calls = await MixedCalls.open(caller)
  tollgate = await TollgateProcess.start(oneCustomer(calls.nodePorts, 8), {
    RTPENGINE: engines.map(({ setting }) => setting).join(),
    MEDIA_POLICY: 'anchor',
    LOG_LEVEL: 'warn',
  })
})

afterAll(async () => {
  calls.close()
  await tollgate.stop()
  await Promise.all(engines.map((engine) => engine.stop()))
})

const sessions = async (): Promise<readonly string[]> =>
  (await Promise.all(engines.map((engine) => engine.sessions()))).flat()

test('300 calls with failovers, cancels, holds and transfers leave no session at the relays', async () => {
  const place = (count: number, atOnce: number) =>
    calls.place(tollgate.sipPort, { count, rate: 50, atOnce })
  const placed = place(300, 20)
  await eventually(async () => {
    for (const engine of engines) expect((await engine.sessions()).length).toBeGreaterThan(0)
  })
  await placed
  // While the machine stands still calls are refused, by the overload guard or for want of a relay's answer.
  expect(calls.failures.filter((failure) => !failure.includes(' 503 '))).toEqual([])
  await eventually(async () => {
    await place(300 - calls.done, 2)
    if (calls.done !== 300) throw new Error(`${calls.done} of 300: ${calls.failures.join(', ')}`)
  }, 60_000)
  await eventually(async () => expect(await sessions()).toEqual([]))
  expect(tollgate.faults).toEqual([])
})
