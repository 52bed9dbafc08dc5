import { afterEach, beforeEach, expect, test } from 'vitest'
import { startCallRig, talk, type CallRig } from '../../support/call-rig.ts'
import { sdp } from '../../support/sip-peer.ts'
import { acknowledge, dial, hangUp } from './steps.ts'

let rig: CallRig

beforeEach(async () => {
  rig = await startCallRig()
})
afterEach(() => rig.stop())

const types = (): string[] => rig.events.map(({ type }) => type)

test('a call has events when it is admitted, rings, is answered and ends, with its payer', async () => {
  const { caller, node, leg, invite } = await dial(rig)
  expect(types()).toEqual(['call.started'])
  node.reply(invite, 180, { tag: 'b' })
  node.reply(invite, 180, { tag: 'b' })
  await caller.next('180 INVITE')
  await caller.next('180 INVITE')
  expect(types()).toEqual(['call.started', 'call.ringing'])
  node.reply(invite, 200, { tag: 'b', body: sdp('answer') })
  await acknowledge(caller, leg, node)
  await hangUp(caller, leg, node)
  await rig.record()
  await rig.idle()
  expect(types()).toEqual(['call.started', 'call.ringing', 'call.answered', 'call.ended'])
  expect(rig.events.every(({ tenantId }) => tenantId === 3)).toBe(true)
  expect(rig.calls.recent('uuid-1')?.disposition).toBe('ANSWERED')
})

test('hold and resume are no further answers', async () => {
  const { caller, node, leg } = await talk(rig)
  for (const direction of ['sendonly', 'sendrecv']) {
    caller.request('INVITE', leg, { body: sdp('again').replace('sendrecv', direction) })
    const invite = await node.next('INVITE')
    node.reply(invite, 200, { body: sdp('answer') })
    await caller.next('200 INVITE')
    caller.request('ACK', leg)
    await node.next('ACK')
    const state = direction === 'sendonly' ? 'HELD' : 'ACTIVE'
    await rig.until(() => rig.calls.list()[0]?.state === state)
  }
  await hangUp(caller, leg, node)
  await rig.record()
  await rig.idle()
  expect(types()).toEqual(['call.started', 'call.answered', 'call.ended'])
})
