/** The files that an INVITE passes are those that engine/README.md lists. */
import { readFileSync } from 'node:fs'
import { Session } from 'node:inspector/promises'
import { expect, onTestFinished, test } from 'vitest'
import { startCallRig } from '../../support/call-rig.ts'
import { sdp } from '../../support/sip-peer.ts'

/** By `<folder>/: <file> <file>` in the table, paths below `engine/`. */
function listedFiles(): ReadonlySet<string> {
  const [, section = ''] = readFileSync('engine/README.md', 'utf8').split(
    '## Files that an INVITE passes',
  )
  const [table = ''] = section.split('\n## ')
  const listed = new Set<string>()
  for (const [, folder = '', files = ''] of table.matchAll(/`([\w/-]+)\/`: ((?:`[\w-]+\.ts` ?)+)/g))
    for (const [, file = ''] of files.matchAll(/`([\w-]+\.ts)`/g))
      listed.add(`engine/${folder}/${file}`)
  return listed
}

test('an INVITE passes no file that the README does not list', async () => {
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
  const files = await passed()
  const listed = listedFiles()
  expect(listed.size).toBeGreaterThan(50)
  expect(files.filter((path) => !listed.has(path))).toEqual([])
  await rig.record()
})
