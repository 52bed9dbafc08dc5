/** What transfers cost: the program with a wallet, hung up in time and cut off by a crash. */
import { expect, test } from 'vitest'
import { cents, paying, seedFor } from '../sipp/call-case.ts'
import { inviteFrom } from '../support/node-call.ts'
import { openPeer, startWithNode } from '../support/scripted-node.ts'
import { sdp, type SipPeer, type Leg } from '../support/sip-peer.ts'
import type { TollgateProcess } from '../support/tollgate-process.ts'
import { finalNotify, refer } from '../support/transfer-rig.ts'

interface Transferred {
  readonly tollgate: TollgateProcess
  readonly node: SipPeer
  /** The first callee and the transfer target: both are behind the node. */
  readonly first: Leg
  readonly second: Leg
}

/** A customer has called one number, and has transferred it to another. */
async function transferred(): Promise<Transferred> {
  const { node, tollgate } = await startWithNode(seedFor)
  const caller = await openPeer(tollgate)

  const plain = caller.leg(`sip:18005551212@127.0.0.1:${tollgate.sipPort}`)
  const leg = { ...plain, from: plain.from.replace('sip:peer@', `sip:${paying}@`) }
  caller.request('INVITE', leg, { body: sdp('caller') })
  const toFirst = await inviteFrom(caller, node)
  node.reply(toFirst, 200, { tag: 'first', body: sdp('first') })
  caller.learn(leg, await caller.next('200 INVITE'))
  caller.request('ACK', leg)
  await node.next('ACK')
  await refer(caller, leg, 'sip:18885550000@127.0.0.1')
  const toSecond = await node.next('INVITE')
  node.reply(toSecond, 200, { tag: 'second', body: sdp('second') })
  await node.next('ACK')
  const toFirstAgain = await node.next('INVITE')
  // RFC 3264 §8: for the callee it is the same session, changed once.
  expect(toFirstAgain.body).toBe(sdp('second').replace('o=- 1 1 ', 'o=- 1 2 '))
  node.reply(toFirstAgain, 200, { body: sdp('first') })
  await node.next('ACK')
  await finalNotify(caller)
  caller.request('BYE', leg)
  await caller.next('200 BYE')
  return {
    tollgate,
    node,
    first: node.calledLeg(toFirst, 'first'),
    second: node.calledLeg(toSecond, 'second'),
  }
}

/** Both calls are the transferor's, and each is paid once. */
function expectPaidTwice(tollgate: TollgateProcess): void {
  const calls = tollgate.calls()
  expect(calls.map((call) => call.destination_number).toSorted()).toEqual([
    '18005551212',
    '18885550000',
  ])
  for (const call of calls) {
    expect(call).toMatchObject({ caller_id_number: paying, disposition: 'ANSWERED' })
    expect(call.billsec).toBeGreaterThan(0)
    expect(call.cost_micros).toBe(cents(call.billsec))
  }
  const left = cents(1_000) - calls.reduce((sum, call) => sum + call.cost_micros, 0)
  expect(tollgate.wallet('paying')).toEqual({ balance: left, ledger: left, debits: 2 })
  expect(tollgate.openCalls()).toEqual([])
  expect(tollgate.faults).toEqual([])
}

test('the transferor pays for both calls until the others hang up', async () => {
  const { tollgate, node, first } = await transferred()
  node.request('BYE', first)
  node.reply(await node.next('BYE'), 200)
  await tollgate.waitForCalls(2)
  expectPaidTwice(tollgate)
})

test('kill -9 after a transfer: the parties talk on, and each call is recorded and charged once', async () => {
  const { tollgate, node, first } = await transferred()
  await expect
    .poll(() => tollgate.openCalls().filter(({ talkedMs }) => talkedMs > 0))
    .toHaveLength(2)
  await tollgate.kill()
  await tollgate.restart()
  expect(tollgate.calls()).toEqual([])
  node.request('BYE', first)
  node.reply(await node.next('BYE'), 200)
  const calls = await tollgate.waitForCalls(2)
  expect(calls.map((call) => call.is_recovered)).toEqual([0, 0])
  expectPaidTwice(tollgate)
})
