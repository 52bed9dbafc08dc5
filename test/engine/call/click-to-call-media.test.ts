/** What the phone of click-to-call says of its media is offered to the called side, if it can be. */
import { expect, onTestFinished, test } from 'vitest'
import { startCallRig } from '../../support/call-rig.ts'
import { sdp } from '../../support/sip-peer.ts'
import { addExtensions, extensionRecord, originateRequest, phoneOf } from './steps.ts'

test('a phone whose media is no description is let go, and no destination is called or blamed', async () => {
  const rig = await startCallRig()
  onTestFinished(() => rig.stop())
  addExtensions(rig, extensionRecord('101'))
  const [phone, node] = [await phoneOf(rig, '101'), await rig.node()]
  await rig.control.originate(originateRequest)
  const invite = await phone.next('INVITE')
  phone.reply(invite, 200, { tag: 'a', body: `\r\n${sdp('no description')}` })
  await phone.next('ACK')
  phone.reply(await phone.next('BYE'), 200)
  expect(await rig.record()).toMatchObject({ disposition: 'FAILED', attempts: [], billsec: 0 })
  expect(node.inbox).toEqual([])
  expect(rig.outcomes).toEqual([])
  await rig.idle()
})
