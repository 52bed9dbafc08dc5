/** How many files an INVITE passes: a reader of a call has to open them. */
import { Session } from 'node:inspector/promises'
import { expect, onTestFinished, test } from 'vitest'
import { startCallRig } from '../../support/call-rig.ts'
import { sdp } from '../../support/sip-peer.ts'

/** Only to be lowered. */
const MAX_FILES = 48

test('an INVITE passes a bounded number of files', async () => {
  const rig = await startCallRig()
  onTestFinished(() => rig.stop())
  const [caller, node] = [await rig.caller(), await rig.node()]
  const session = new Session()
  session.connect()
  onTestFinished(() => session.disconnect())
  await session.post('Profiler.enable')
  await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false })
  const passed = async () => {
    const leg = caller.leg(rig.uri('1555'))
    await session.post('Profiler.takePreciseCoverage')
    caller.request('INVITE', leg, { body: sdp('offer') })
    const invite = await node.next('INVITE')
    const { result } = await session.post('Profiler.takePreciseCoverage')
    node.reply(invite, 486, { tag: 'b' })
    await caller.next('486 INVITE')
    caller.request('ACK', leg)
    return result.flatMap(({ url, functions }) => {
      const isRun = functions.some(({ functionName, ranges }) => {
        return functionName !== '' && (ranges[0]?.count ?? 0) > 0
      })
      const path = /engine\/[\w/-]+\.ts/.exec(url)?.[0] ?? ''
      return isRun && path !== '' && !url.includes('/test/') ? [path] : []
    })
  }
  // What happens once in a process is no part of the way.
  await passed()
  const files = [...new Set(await passed())].toSorted()
  process.stdout.write(`an INVITE passes ${files.length} files:\n${files.join('\n')}\n`)
  expect(files.length).toBeGreaterThan(30)
  expect(files.length).toBeLessThanOrEqual(MAX_FILES)
  await rig.record()
})
