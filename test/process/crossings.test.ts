/** Two ends of a call do something at once: one record, no live call, and the wallet agrees. */
import { test } from 'vitest'
import { agreeing, ringing, settled, talking } from '../support/node-call.ts'
import { sdp } from '../support/sip-peer.ts'
import { finalNotify, refer } from '../support/transfer-rig.ts'

test('hung up from the API while the called side answers', async () => {
  const call = await ringing()
  const { api, caller, leg, node, invite } = call
  const [live] = (await api('/pbx/calls/active')) as readonly { readonly uuid: string }[]
  const hungUp = api('/telephony/hangup', { call_uuid: live?.uuid })
  node.reply(invite, 200, { tag: 'b', body: sdp('node') })
  agreeing(caller, node)
  // Answered or refused, whichever came first: a 200 is acknowledged.
  const answer = await caller.next((message) => message.status >= 200)
  caller.learn(leg, answer)
  caller.request('ACK', leg)
  await hungUp
  await settled(call, 1)
})

test('cancelled while the called side answers', async () => {
  const call = await ringing()
  const { caller, leg, node, invite } = call
  agreeing(caller, node)
  caller.request('CANCEL', leg)
  node.reply(invite, 200, { tag: 'b', body: sdp('node') })
  const answer = await caller.next(
    (message) => message.status >= 200 && message.get('CSeq').endsWith('INVITE'),
  )
  caller.learn(leg, answer)
  caller.request('ACK', leg)
  await settled(call, 1)
})

test('both ends hang up at once', async () => {
  const call = await talking()
  const { caller, leg, node, nodeLeg } = call
  agreeing(caller, node)
  caller.request('BYE', leg)
  node.request('BYE', nodeLeg)
  await settled(call, 1)
})

test('transferred in the midst of a re-INVITE, then all hang up at once', async () => {
  const call = await talking()
  const { caller, leg, node, nodeLeg } = call
  caller.request('INVITE', leg, { body: sdp('hold') })
  const hold = await node.next('INVITE')
  await refer(caller, leg, 'sip:18885550000@127.0.0.1')
  const toSecond = await node.next('INVITE')
  node.reply(toSecond, 200, { tag: 'c', body: sdp('second') })
  await node.next('ACK')
  node.reply(hold, 200, { body: sdp('node') })
  await caller.next('200 INVITE')
  caller.request('ACK', leg)
  node.reply(await node.next('INVITE'), 200, { body: sdp('node') })
  await finalNotify(caller)
  agreeing(caller, node)
  caller.request('BYE', leg)
  node.request('BYE', nodeLeg)
  node.request('BYE', node.calledLeg(toSecond, 'c'))
  await settled(call, 2)
})
