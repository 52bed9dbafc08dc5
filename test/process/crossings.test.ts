/** Two ends of a call do something at once: one record, no live call, and the wallet agrees. */
import { expect, test } from 'vitest'
import { cents, paying, seedFor } from '../sipp/call-case.ts'
import { openPeer, startWithNode } from '../support/scripted-node.ts'
import { sdp, type SipPeer, type Leg, type PeerMessage } from '../support/sip-peer.ts'
import type { TollgateProcess } from '../support/tollgate-process.ts'
import { finalNotify, refer } from '../support/transfer-rig.ts'
import { eventually } from '../support/waiting.ts'

interface Ringing {
  readonly tollgate: TollgateProcess
  readonly api: (path: string, body?: object) => Promise<unknown>
  readonly caller: SipPeer
  readonly leg: Leg
  readonly node: SipPeer
  readonly invite: PeerMessage
}

/** The paying customer calls a node, which rings. */
async function ringing(): Promise<Ringing> {
  const { node, tollgate } = await startWithNode(seedFor)
  const key = ['key', 'create', '--name', 'crm', '--kind', 'pbx', '--scopes', '*']
  const token = (await tollgate.run(key)).trim()
  const api = async (path: string, body?: object): Promise<unknown> => {
    const response = await fetch(`http://127.0.0.1:${tollgate.apiPort}/api/v1${path}`, {
      headers: { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' },
      ...(body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) }),
    })
    return response.json()
  }
  const caller = await openPeer(tollgate)
  const plain = caller.leg(`sip:18005551212@127.0.0.1:${tollgate.sipPort}`)
  const leg = { ...plain, from: plain.from.replace('sip:peer@', `sip:${paying}@`) }
  caller.request('INVITE', leg, { body: sdp('caller') })
  const invite = await node.next('INVITE')
  node.reply(invite, 180, { tag: 'b' })
  await caller.next(180)
  return { tollgate, api, caller, leg, node, invite }
}

/** The node has answered, and both talk. */
async function talking(): Promise<Ringing & { readonly nodeLeg: Leg }> {
  const call = await ringing()
  const { caller, leg, node, invite } = call
  node.reply(invite, 200, { tag: 'b', body: sdp('node') })
  caller.learn(leg, await caller.next('200 INVITE'))
  caller.request('ACK', leg)
  await node.next('ACK')
  return { ...call, nodeLeg: node.calledLeg(invite, 'b') }
}

/** Whatever comes from now on is answered. */
function agreeing(...peers: readonly SipPeer[]): void {
  for (const peer of peers)
    for (const method of ['BYE', 'CANCEL']) {
      const agree = async (): Promise<void> => {
        for (;;) peer.reply(await peer.next(method), 200)
      }
      agree().catch(() => undefined)
    }
}

/** As many records as calls, nothing live, nothing open, and every second is paid once. */
async function settled({ tollgate, api }: Ringing, count: number): Promise<void> {
  await tollgate.waitForCalls(count)
  await eventually(async () => expect(await api('/pbx/calls/active')).toEqual([]))
  const calls = tollgate.calls()
  expect(calls).toHaveLength(count)
  for (const call of calls) {
    expect(call.cost_micros).toBe(cents(call.billsec))
    expect(call.billsec > 0).toBe(call.disposition === 'ANSWERED')
  }
  const paid = calls.filter((call) => call.cost_micros > 0)
  const left = cents(1_000) - paid.reduce((sum, call) => sum + call.cost_micros, 0)
  expect(tollgate.wallet('paying')).toEqual({ balance: left, ledger: left, debits: paid.length })
  expect(tollgate.openCalls()).toEqual([])
  expect(tollgate.faults).toEqual([])
}

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
