/** The operator's own code about destinations, and what it is told of answers, ends and records. */
import { afterEach, beforeEach, expect, test } from 'vitest'
import type { AttemptDecision, HookAttempt } from '../../../../schema/contracts/hooks.ts'
import { startCallRig, type CallRig } from '../../../support/call-rig.ts'
import { gateway as made } from '../../../support/gateway.ts'
import { decides, fails, ScriptedHooks } from '../../../support/scripted-hooks.ts'
import { sdp, type SipPeer } from '../../../support/sip-peer.ts'
import { establish } from '../../../support/transfer-rig.ts'
import { acknowledge, hangUp } from '../steps.ts'

let rig: CallRig
let hooks: ScriptedHooks
let nodes: readonly [SipPeer, SipPeer]

beforeEach(async () => {
  hooks = new ScriptedHooks()
  rig = await startCallRig({ hooks })
  nodes = [await rig.node(), await rig.node()]
})
afterEach(() => rig.stop())

async function calls() {
  const caller = await rig.caller()
  const leg = caller.leg(rig.uri('1555'))
  caller.request('INVITE', leg, { body: sdp('offer') })
  return { caller, leg }
}

async function refuses(peer: SipPeer, status: number) {
  peer.reply(await peer.next('INVITE'), status, { tag: 'b' })
}

const notes = () =>
  rig.calls.story('uuid-1')?.notes.flatMap((note) => (note.what === 'hook' ? [note] : []))

test('a hook puts the destinations into another order', async () => {
  hooks.answers.onRoute = decides({ order: [1, 0] })
  const { caller } = await calls()
  await refuses(nodes[1], 503)
  await refuses(nodes[0], 486)
  await caller.next('486 INVITE')
  expect(hooks.argumentsOf('onRoute')).toMatchObject([
    {
      callUuid: 'uuid-1',
      to: '1555',
      direction: 'inbound',
      candidates: [
        { kind: 'node', id: 1, uri: expect.stringContaining(`:${nodes[0].port}`) },
        { kind: 'node', id: 2 },
      ],
    },
  ])
})

test('a hook leaves destinations out', async () => {
  hooks.answers.onRoute = decides({ order: [1] })
  const { caller } = await calls()
  await refuses(nodes[1], 503)
  await caller.next('503 INVITE')
  expect(nodes[0].inbox).toEqual([])
})

test('a hook refuses a call whose destinations it knows', async () => {
  hooks.answers.onRoute = decides({ refuse: { status: 480 } })
  const { caller } = await calls()
  await caller.next('480 INVITE')
  expect(await rig.record()).toMatchObject({ denialCode: 'hook_refused', sipCode: 480 })
  expect(nodes.map(({ inbox }) => inbox)).toEqual([[], []])
})

test.each([[[2]], [[0, 7]], [[-1]]])(
  'an order with a wrong position is a failure: %j',
  async (order) => {
    hooks.answers.onRoute = decides({ order }, { fallback: 'refuse' })
    const { caller } = await calls()
    await caller.next('503 INVITE')
    expect(await rig.record()).toMatchObject({ denialCode: 'hook_failed' })
  },
)

test('a hook about routes that fails leaves the route as it is', async () => {
  hooks.answers.onRoute = fails('continue')
  const { caller } = await calls()
  await refuses(nodes[0], 486)
  await caller.next('486 INVITE')
  expect(notes()).toMatchObject([{ hook: 'onRoute', failed: expect.any(String) }])
})

const asksAttempt = (decide: (attempt: HookAttempt) => AttemptDecision | undefined) => {
  hooks.answers.onAttemptFailed = (attempt) => {
    const decision = decide(attempt)
    return decision === undefined ? { kind: 'nothing' } : decides(decision)()
  }
}

test('a hook has the next destination tried after a busy one', async () => {
  asksAttempt(({ status }) => (status === 486 ? { failover: true } : undefined))
  const { caller } = await calls()
  await refuses(nodes[0], 486)
  await refuses(nodes[1], 480)
  await caller.next('480 INVITE')
  expect(hooks.argumentsOf('onAttemptFailed')).toMatchObject([
    { status: 486, movesOn: false, candidate: { id: 1 }, remaining: [{ id: 2 }], to: '1555' },
    { status: 480, movesOn: false, candidate: { id: 2 }, remaining: [] },
  ])
  expect(await rig.record()).toMatchObject({ attempts: [{ status: 486 }, { status: 480 }] })
})

test('a hook stops the failover: the caller gets the status of the first destination', async () => {
  asksAttempt(() => ({ failover: false }))
  const { caller } = await calls()
  await refuses(nodes[0], 503)
  await caller.next('503 INVITE')
  expect(nodes[1].inbox).toEqual([])
})

test('a hook that says nothing, or fails, leaves the failover to the rules', async () => {
  asksAttempt(() => undefined)
  const first = await calls()
  await refuses(nodes[0], 503)
  await refuses(nodes[1], 486)
  await first.caller.next('486 INVITE')
  hooks.answers.onAttemptFailed = fails('continue')
  const second = await calls()
  await refuses(nodes[0], 503)
  await refuses(nodes[1], 486)
  await second.caller.next('486 INVITE')
})

test('a silent destination: the hook learns status 0', async () => {
  asksAttempt(() => undefined)
  await calls()
  await nodes[0].next('INVITE')
  await rig.advance(1_600)
  await nodes[1].next('INVITE')
  expect(hooks.argumentsOf('onAttemptFailed')).toMatchObject([{ status: 0, movesOn: true }])
  rig.calls.hangUp('uuid-1', 16)
})

test('a destination that the caller has heard is the last one, whatever a hook wants', async () => {
  asksAttempt(() => ({ failover: true }))
  const { caller } = await calls()
  const invite = await nodes[0].next('INVITE')
  nodes[0].reply(invite, 183, { tag: 'b', body: sdp('early') })
  await caller.next('183 INVITE')
  nodes[0].reply(invite, 503, { tag: 'b' })
  await caller.next('503 INVITE')
  expect(notes()).toMatchObject([
    { decision: { failover: true } },
    { failed: expect.stringContaining('heard') },
  ])
  expect(nodes[1].inbox).toEqual([])
})

test('a caller that cancels while the hook thinks about an attempt: nobody else is called', async () => {
  let decide = (): void => undefined
  hooks.answers.onAttemptFailed = () =>
    new Promise((resolve) => (decide = () => resolve({ kind: 'nothing' })))
  const { caller, leg } = await calls()
  await refuses(nodes[0], 503)
  await rig.until(() => hooks.asked.length === 1)
  caller.request('CANCEL', leg)
  await caller.next('487 INVITE')
  expect(await rig.record()).toMatchObject({ disposition: 'CANCELED', attempts: [{ status: 503 }] })
  decide()
  await rig.settle()
  expect(nodes[1].inbox).toEqual([])
})

test('a fault while an attempt is asked about ends the call: it does not ring for ever', async () => {
  hooks.answers.onAttemptFailed = () => Promise.reject(new Error('a fault'))
  const { caller } = await calls()
  await refuses(nodes[0], 503)
  await caller.next('500 INVITE')
  expect(await rig.record()).toMatchObject({ disposition: 'FAILED', attempts: [{ status: 503 }] })
  expect(rig.faults.splice(0)).toMatchObject([{ message: 'a call failed' }])
})

test('emergency calls ask about no route and no attempt', async () => {
  hooks.answers.onRoute = decides({ refuse: { status: 403 } })
  hooks.answers.onAttemptFailed = decides({ failover: false })
  rig.answers.caller = { kind: 'stranger' }
  rig.answers.origin = { kind: 'node', nodeId: 1, setId: 1 }
  const gateway = await rig.caller()
  const uri = `sip:127.0.0.1:${gateway.port};transport=udp`
  rig.answers.outbound = { kind: 'gateways', isEmergency: true, gateways: [made({ uri })] }
  const { caller } = await calls()
  await refuses(gateway, 486)
  await caller.next('486 INVITE')
  expect(hooks.asked).toEqual([])
})

test('answer, end and record are told, each once and in this order, with the tags', async () => {
  hooks.answers.onInvite = decides({ tags: { crm: '42' } })
  for (const hook of ['onAnswer', 'onEnd', 'onRecord'] as const) hooks.listening.add(hook)
  let store = (): void => undefined
  rig.answers.stored = () =>
    new Promise((resolve) => (store = () => resolve({ costMicros: 60_000, currency: 'USD' })))
  const { caller, leg } = await calls()
  const [node] = nodes
  node.reply(await node.next('INVITE'), 200, { tag: 'b', body: sdp('answer') })
  await acknowledge(caller, leg, node)
  await rig.settle()
  expect(hooks.told).toMatchObject([
    {
      hook: 'onAnswer',
      argument: {
        callUuid: 'uuid-1',
        to: '1555',
        destination: `sip:127.0.0.1:${node.port};transport=udp`,
        answeredAt: rig.time.now(),
        tags: { crm: '42' },
      },
    },
  ])
  await hangUp(caller, leg, node)
  await rig.record()
  const ended = { callUuid: 'uuid-1', disposition: 'ANSWERED', sipCode: 200, billsec: 1 }
  expect(hooks.told.slice(1)).toMatchObject([{ hook: 'onEnd', argument: ended }])
  store()
  await rig.settle()
  expect(hooks.told.slice(2)).toMatchObject([
    {
      hook: 'onRecord',
      argument: { ...ended, customerId: 7, tenantId: 3, costMicros: 60_000, tags: { crm: '42' } },
    },
  ])
})

test('a refused call has an end and a record, and no answer', async () => {
  for (const hook of ['onAnswer', 'onEnd', 'onRecord'] as const) hooks.listening.add(hook)
  hooks.answers.onInvite = decides({ refuse: { status: 403 } })
  const { caller } = await calls()
  await caller.next('403 INVITE')
  await rig.record()
  await rig.settle()
  expect(hooks.told.map(({ hook }) => hook)).toEqual(['onEnd', 'onRecord'])
})

test('a transfer to a number asks for the new call, and obeys', async () => {
  rig.answers.candidates.splice(0)
  hooks.answers.onInvite = ({ to }) =>
    to === '200' ? decides({ refuse: { status: 403 } })() : { kind: 'nothing' }
  const { a, aLeg, b } = await establish(rig)
  const moved = await rig.control.transfer({
    callUuid: 'uuid-1',
    destination: '200',
    moved: 'callee',
  })
  expect(moved).toEqual({ kind: 'denied', code: 'hook_refused' })
  expect(hooks.argumentsOf('onInvite').at(-1)).toMatchObject({
    to: '200',
    source: { kind: 'extension', address: '' },
  })
  expect(await rig.record()).toMatchObject({ denialCode: 'hook_refused', calledNumber: '200' })
  a.request('BYE', aLeg)
  b.reply(await b.next('BYE'), 200)
  await a.next('200 BYE')
})
