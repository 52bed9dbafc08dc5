/** What the phone of click-to-call says of its media is offered to the called side, if it can be. */
import { expect, onTestFinished, test } from 'vitest'
import { startCallRig } from '../../support/call-rig.ts'
import { sdp } from '../../support/sip-peer.ts'

const home = 'acme.example'

test('a phone whose media is no description is let go, and no destination is called or blamed', async () => {
  const rig = await startCallRig()
  onTestFinished(() => rig.stop())
  const [phone, node] = [await rig.caller(), await rig.node()]
  rig.answers.extensions.set(`101@${home}`, {
    extensionId: 1,
    extension: '101',
    tenantId: 3,
    customerId: 7,
    domain: home,
    displayName: 'Phone 101',
    isVoicemailEnabled: false,
    secrets: { MD5: '', 'SHA-256': '' },
  })
  const source = { protocol: 'udp', address: '127.0.0.1', port: phone.port }
  const nextHop = `sip:127.0.0.1:${phone.port};transport=udp`
  const contact = { uri: 'sip:101@10.0.0.9', routes: [], nextHop, q: 1_000, source }
  rig.answers.contacts.set(`101@${home}`, [contact])
  await rig.control.originate({
    domain: home,
    extension: '101',
    destination: '15550100',
    autoAnswer: false,
    callerNumber: undefined,
    callerName: undefined,
    ringMs: 60_000,
  })
  const invite = await phone.next('INVITE')
  phone.reply(invite, 200, { tag: 'a', body: `\r\n${sdp('no description')}` })
  await phone.next('ACK')
  phone.reply(await phone.next('BYE'), 200)
  expect(await rig.record()).toMatchObject({ disposition: 'FAILED', attempts: [], billsec: 0 })
  expect(node.inbox).toEqual([])
  expect(rig.outcomes).toEqual([])
  await rig.idle()
})
