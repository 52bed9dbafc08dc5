/** The examples of test/README.md: the rigs on real sockets. */
import { expect, onTestFinished, test } from 'vitest'
import { startCallRig, talk } from '../support/call-rig.ts'
import { TollgateProcess } from '../support/tollgate-process.ts'

test('call control as an application on another machine', async () => {
  const rig = await startCallRig({ app: 'tcp' })
  onTestFinished(() => rig.stop())
  const { caller, node, leg } = await talk(rig)
  caller.request('BYE', leg)
  node.reply(await node.next('BYE'), 200)
  expect((await rig.record()).disposition).toBe('ANSWERED')
})

test('a started program is ready', async () => {
  const tollgate = await TollgateProcess.start({})
  onTestFinished(() => tollgate.stop())
  const answer = await fetch(`http://127.0.0.1:${tollgate.apiPort}/readyz`)
  expect(answer.status).toBe(200)
})
