/** Answered calls go on in the next process, after `kill -9`. */
import { afterEach, describe, expect, test } from 'vitest'
import { changeOf, withChange } from '../../../engine/call/call-machine/saved-change.ts'
import { type CallRig, startCallRig } from '../../support/call-rig.ts'
import type { CallRigOptions } from '../../support/call-rig-options.ts'
import { gateway } from '../../support/gateway.ts'
import { sdp, type Leg, type SipPeer } from '../../support/sip-peer.ts'
import { acknowledge, areHungUp, dial, hangUp, carrierOf, stillThere } from './steps.ts'

let rig: CallRig

afterEach(() => rig.stop())

interface Talk {
  readonly caller: SipPeer
  readonly node: SipPeer
  /** The caller's dialog, and the node's. */
  readonly leg: Leg
  readonly back: Leg
}

/** The node has answered, and the caller has acknowledged it. */
async function talk(): Promise<Talk> {
  rig = await startCallRig()
  const call = await answered()
  call.caller.learn(call.leg, await call.caller.next('200 INVITE'))
  call.caller.request('ACK', call.leg)
  await rig.advance(2_000)
  return call
}

async function answered(): Promise<Talk> {
  const { caller, node, leg, invite } = await dial(rig)
  node.reply(invite, 200, { tag: 'b', body: sdp('answer') })
  await node.next('ACK')
  return { caller, node, leg, back: node.calledLeg(invite, 'b') }
}

/** Kills the process, and starts the next one a second later with what was saved. */
async function restart(
  change: (states: Map<string, string>) => void = () => undefined,
  options: Pick<CallRigOptions, 'ways'> = {},
) {
  rig.crash()
  const { time, world, server, saved, opened } = rig
  const states = new Map(saved)
  change(states)
  await rig.advance(1_000)
  const { peers } = rig
  rig = await startCallRig({ after: { time, world, server, opened, saved: states }, ...options })
  rig.peers.push(...peers)
  await rig.settle()
}

describe('a call that was talking', () => {
  test.each(['caller', 'node'] as const)(
    'goes on until its %s hangs up, and is billed for all of it',
    async (who) => {
      const { caller, node, leg, back } = await talk()
      await restart()
      expect(rig.restored).toEqual({ restored: 1, abandoned: 0 })
      expect(rig.calls.list()).toMatchObject([{ state: 'ACTIVE', calledNumber: '1555' }])
      expect(rig.calls.countByNode(1)).toBe(1)
      await stillThere(rig, caller, node)
      await rig.advance(3_800)
      const [by, dialog, other] = who === 'caller' ? [caller, leg, node] : [node, back, caller]
      await hangUp(by, dialog, other)
      expect(await rig.record()).toMatchObject({
        disposition: 'ANSWERED',
        billsec: 7,
        isRecovered: false,
        hangupBy: who === 'caller' ? 'caller' : 'callee',
        attempts: [{ status: 200 }],
      })
      await rig.idle()
    },
  )

  test.each(['caller', 'node'] as const)(
    'is held and taken back by its %s, with its versions of o= in order',
    async (who) => {
      const { caller, node, leg, back } = await talk()
      await restart()
      await stillThere(rig, caller, node)
      const [by, dialog, other] = who === 'caller' ? [caller, leg, node] : [node, back, caller]
      for (const body of ['hold', 'resume']) {
        by.request('INVITE', dialog, { body: sdp(body) })
        const invite = await other.next('INVITE')
        expect(invite.body).toContain(`s=${body}`)
        other.reply(invite, 200, { body: sdp(`${body}-answer`) })
        const answer = await by.next('200 INVITE')
        expect(answer.body).toContain(`s=${body}-answer`)
        by.request('ACK', dialog)
        await other.next('ACK')
      }
      rig.calls.hangUp('uuid-1', 16)
      await areHungUp(caller, node)
      await rig.record()
    },
  )

  test('is cut off when its grant has run out', async () => {
    const { caller, node } = await talk()
    await restart()
    await stillThere(rig, caller, node)
    await rig.advance(57_800)
    await areHungUp(caller, node)
    expect(await rig.record()).toMatchObject({ billsec: 60, hangupBy: 'system' })
  })

  test('whose grant ran out while it was nowhere gets more when its parties are there, and ends when it is refused', async () => {
    const { caller, node } = await talk()
    rig.crash()
    await rig.advance(70_000)
    await restart()
    for (const peer of [caller, node])
      expect(peer.inbox.some(({ method }) => method === 'BYE')).toBe(false)
    await stillThere(rig, caller, node)
    await rig.advance(2_100)
    await areHungUp(caller, node)
    expect(await rig.record()).toMatchObject({ hangupBy: 'system', denialCode: 'limit' })
  })
})

test('when the caller has acknowledged the answer, only what that changes is saved', async () => {
  const { caller, node, leg } = await talk()
  const [state = '', change = ''] = rig.saved.get('uuid-1')?.split('\t') ?? []
  expect(change.length).toBeGreaterThan(0)
  expect(change.length).toBeLessThan(0.5 * state.length)
  expect(change).not.toContain('s=offer')
  const { legs } = JSON.parse(change)
  expect(legs).toMatchObject([{ state: 'confirmed', sip: { dialog: { role: 'uas' } } }, {}])
  // From then on the call is saved as a whole.
  caller.request('INVITE', leg, { body: sdp('hold') })
  node.reply(await node.next('INVITE'), 200, { body: sdp('hold-answer') })
  await caller.next('200 INVITE')
  caller.request('ACK', leg)
  await node.next('ACK')
  await rig.settle()
  expect(rig.saved.get('uuid-1')).toContain('s=hold-answer')
  expect(rig.saved.get('uuid-1')).not.toContain('\t')
})

test('what is saved does not change with the call', async () => {
  await talk()
  const [before, call] = [
    rig.calls.saved('uuid-1', () => ({})),
    rig.calls.world.calls.get('uuid-1'),
  ]
  const written = JSON.stringify(before)
  call?.callIds.push('another')
  call?.supervisedBy.push('another')
  if (call) Object.assign(call.legs, { caller: undefined })
  if (call) Object.assign(call.peers, { caller: null })
  expect(JSON.stringify(before)).toBe(written)
})

test('a change and what it is a change of are the call again; what is there no more is no change', async () => {
  await talk()
  const before = rig.calls.saved('uuid-1', () => ({ dialog: { routeSet: ['one'] } }))
  if (before === undefined) throw new Error('the call is not stable')
  const after = structuredClone(before)
  const texts = [...after.texts, 'another']
  const legs = after.legs.map((leg, index) =>
    index === 0 ? { ...leg, told: texts.length - 1, sip: { dialog: { routeSet: [] } } } : leg,
  )
  const later = { ...after, texts, legs, call: { ...after.call, legCount: 7 } }
  const change = changeOf(before, later)
  expect(change).toMatchObject({ call: { legCount: 7 }, legs: [{ told: texts.length - 1 }, {}] })
  expect(change && withChange(before, change)).toEqual(later)
  expect(changeOf(later, before)).toBeDefined()
  const gone = { ...after, call: { ...after.call, callerTag: undefined } } as never
  expect(changeOf(before, gone)).toBeUndefined()
  expect(changeOf(before, { ...after, legs: after.legs.slice(1) })).toBeUndefined()
  expect(changeOf(before, { ...after, legs: after.legs.toReversed() })).toBeUndefined()
  expect(changeOf(before, { ...after, offer: 0 })).toBeUndefined()
})

test('a caller whose 200 was lost with the process gets it from the next one', async () => {
  rig = await startCallRig()
  rig.answers.journalled = () => new Promise(() => undefined)
  const { caller, node, leg } = await answered()
  await restart()
  const answer = await acknowledge(caller, leg)
  expect(answer.body).toBe(sdp('answer'))
  await rig.settle()
  expect(rig.calls.list()).toMatchObject([{ state: 'ACTIVE' }])
  node.reply(...(await hungUp(caller, leg, node)))
  expect(await rig.record()).toMatchObject({ disposition: 'ANSWERED', billsec: 1 })
  await rig.idle()
})

async function hungUp(caller: SipPeer, leg: Leg, node: SipPeer) {
  caller.request('BYE', leg)
  return [await node.next('BYE'), 200] as const
}

describe('nothing of an end leaves before it is in the journal', () => {
  test('the other side gets BYE, and the BYE its 200, only then', async () => {
    const { caller, node, leg } = await talk()
    rig.answers.endIsSafe = false
    caller.inbox.splice(0)
    caller.request('BYE', leg)
    await rig.settle()
    expect(node.inbox).toEqual([])
    expect(caller.inbox).toEqual([])
    for (const safe of rig.unsafe.splice(0)) safe()
    node.reply(await node.next('BYE'), 200)
    await caller.next('200 BYE')
    await rig.idle()
  })

  test('after a crash in between the repeated BYE ends the call', async () => {
    const { caller, node, leg } = await talk()
    rig.answers.endIsSafe = false
    const states = new Map(rig.saved)
    const bye = caller.request('BYE', leg)
    await rig.settle()
    await restart((saved) => {
      for (const [callUuid, state] of states) saved.set(callUuid, state)
    })
    caller.send(bye)
    node.reply(await node.next('BYE'), 200)
    await caller.next('200 BYE')
    expect(await rig.record()).toMatchObject({ hangupBy: 'caller' })
  })
})

describe('a call that cannot go on is closed, and its parties get BYE', () => {
  test('because it can no longer be charged', async () => {
    const { caller, node } = await talk()
    const { time, world, server, saved, opened } = rig
    rig.crash()
    rig = await startCallRig({ after: { time, world, server, opened, saved }, canResume: false })
    await areHungUp(caller, node)
    expect(rig.abandoned).toEqual(['uuid-1'])
    expect(rig.calls.size).toBe(0)
    expect(rig.faults.splice(0)).toMatchObject([{ reason: 'it can no longer be charged' }])
  })

  test.each([
    ['its state is damaged', (state: string) => state.slice(0, 100)],
    ['what has changed in it is damaged', (state: string) => state.slice(0, -100)],
    [
      'another version has written it',
      (state: string) => state.replace('"version":1', '"version":0'),
    ],
  ])('because %s', async (_, damage) => {
    await talk()
    await restart((saved) => {
      for (const [callUuid, state] of saved) saved.set(callUuid, damage(state))
    })
    expect(rig.restored).toEqual({ restored: 0, abandoned: 1 })
    expect(rig.abandoned).toEqual(['uuid-1'])
    expect(rig.faults.splice(0)).toMatchObject([{ reason: 'its saved state cannot be read' }])
  })

  test('and the others go on', async () => {
    await talk()
    rig.answers.candidates.length = 0
    const { caller, node, leg } = await answered()
    await acknowledge(caller, leg)
    await rig.settle()
    await restart((saved) => void saved.set('uuid-1', '{}'))
    expect(rig.restored).toEqual({ restored: 1, abandoned: 1 })
    expect(rig.faults.splice(0)).toHaveLength(1)
    await hangUp(caller, leg, node)
    expect(await rig.record()).toMatchObject({ callUuid: 'uuid-2', hangupBy: 'caller' })
  })
})

test('the password of a carrier is not saved; a challenge after the restart is answered all the same', async () => {
  const { auth } = gateway({})
  const carrierAuth = { ...auth, type: 'digest', username: 'me', password: 's3cret' } as const
  rig = await startCallRig()
  rig.answers.origin = { kind: 'node', nodeId: 1, setId: 1 }
  const [caller, carrier] = [await rig.caller(), await carrierOf(rig, { auth: carrierAuth })]
  const leg = caller.leg(rig.uri('1555'))
  caller.request('INVITE', leg, { body: sdp('offer') })
  carrier.reply(await carrier.next('INVITE'), 200, { tag: 'b', body: sdp('answer') })
  await acknowledge(caller, leg)
  await rig.settle()
  expect([...rig.saved.values()].join()).not.toContain('s3cret')
  const { time, world, server, saved, opened } = rig
  rig.crash()
  rig = await startCallRig({ after: { time, world, server, opened, saved }, carrierAuth })
  caller.request('BYE', leg)
  const headers = ['WWW-Authenticate: Digest realm="north", nonce="n", algorithm=MD5']
  carrier.reply(await carrier.next('BYE'), 401, { headers })
  const again = await carrier.next('BYE')
  expect(again.get('Authorization')).toContain('username="me"')
  carrier.reply(again, 200)
})

test.each<[string, (rig: CallRig, callee: SipPeer) => void]>([
  [
    'a carrier that only takes calls',
    ({ answers }, { port }) => {
      const uri = `sip:127.0.0.1:${port};transport=udp`
      answers.outbound = { kind: 'gateways', isEmergency: false, gateways: [gateway({ uri })] }
    },
  ],
  [
    'an agent',
    ({ answers }, { port }) => {
      const uri = `sip:bot@127.0.0.1:${port};transport=udp`
      const agent = { kind: 'agent', agentId: 4, name: 'bot', tenantId: 3, uri } as const
      answers.agent = { kind: 'agent', agent }
    },
  ],
])('%s is asked by the way that it has named', async (_who, route) => {
  let place = ''
  const isThere = (uri: string): boolean => uri.includes(place)
  const ways: CallRigOptions['ways'] = {
    routing: {
      // Nobody is known by address to those that only take calls.
      recognize: () => ({ kind: 'unknown' }),
      gatewayBehind: (uri, sender) => (sender !== 3 && isThere(uri) ? 'north' : undefined),
      isGatewayOf: (carrierId, uri) => carrierId === 9 && isThere(uri),
      tenantOfCarrier: () => null,
    },
    isInstance: () => false,
    isInner: () => false,
    isOwnMachine: () => true,
    tenantOfSet: () => null,
    onRefused: () => undefined,
  }
  rig = await startCallRig({ ways })
  const [caller, callee] = [await rig.caller(), await rig.caller()]
  rig.answers.origin = { kind: 'node', nodeId: 1, setId: 1 }
  route(rig, callee)
  place = `127.0.0.1:${callee.port}`
  callee.contact = 'sip:x@127.0.0.2:5070'
  const leg = caller.leg(rig.uri('1555'))
  caller.request('INVITE', leg, { body: sdp('offer') })
  const headers = [`Record-Route: <sip:${place};lr>`]
  callee.reply(await callee.next('INVITE'), 200, { tag: 'b', body: sdp('answer'), headers })
  await acknowledge(caller, leg, callee)
  await rig.settle()
  await restart(undefined, { ways })
  await rig.advance(200)
  const question = await callee.next('INVITE')
  expect(question.text).toMatch(/^INVITE sip:x@127\.0\.0\.2:5070 SIP/)
  expect(question.get('Route')).toBe(`<sip:${place};lr>`)
  callee.reply(question, 200, { body: sdp('still there') })
  await callee.next('ACK')
  await hangUp(caller, leg, callee)
})

test('a carrier that has got the location of its caller beside the description is asked with the description', async () => {
  rig = await startCallRig()
  rig.answers.origin = { kind: 'node', nodeId: 1, setId: 1 }
  const [caller, carrier] = [await rig.caller(), await carrierOf(rig)]
  const leg = caller.leg(rig.uri('1555'))
  const body = [
    '--b\r\nContent-Type: application/pidf+xml\r\n\r\n<presence/>\r\n',
    `--b\r\nContent-Type: application/sdp\r\n\r\n${sdp('offer')}\r\n--b--\r\n`,
  ].join('')
  caller.request('INVITE', leg, { body, contentType: 'multipart/mixed;boundary=b' })
  const invite = await carrier.next('INVITE')
  expect(invite.body).toBe(body)
  const headers = ['Supported: timer', 'Session-Expires: 1800;refresher=uac', 'Require: timer']
  carrier.reply(invite, 200, { tag: 'b', body: sdp('answer'), headers })
  await acknowledge(caller, leg, carrier)
  await rig.settle()
  await restart()
  await rig.advance(200)
  const question = await carrier.next('INVITE')
  expect(question.get('Content-Type')).toBe('application/sdp')
  expect(question.body).toBe(sdp('offer'))
  carrier.reply(question, 200, { body: sdp('still there') })
  await carrier.next('ACK')
  await hangUp(caller, leg, carrier)
})

test.each([
  ['passes while the other side is asked by UPDATE', ['Allow: INVITE, ACK, BYE, UPDATE'], 'UPDATE'],
  ['gets 491 while the other side is asked by a re-INVITE', [], 'INVITE'],
])('a hold %s (RFC 3261 §14.2)', async (_what, headers, method) => {
  rig = await startCallRig()
  const { caller, node, leg, invite } = await dial(rig, { headers })
  node.reply(invite, 200, { tag: 'b', body: sdp('answer') })
  await acknowledge(caller, leg, node)
  const back = node.calledLeg(invite, 'b')
  await rig.settle()
  await restart()
  await rig.advance(200)
  const question = await caller.next(method)
  node.reply(await node.next('INVITE'), 200, { body: sdp('still there') })
  await node.next('ACK')
  node.request('INVITE', back, { body: sdp('hold') })
  if (method === 'INVITE') await node.next('491 INVITE')
  else {
    caller.reply(await caller.next('INVITE'), 200, { body: sdp('held') })
    await caller.next('ACK')
    expect((await node.next('200 INVITE')).body).toContain('s=held')
  }
  node.request('ACK', back)
  caller.reply(question, 200, method === 'INVITE' ? { body: sdp('still there') } : {})
  if (method === 'INVITE') await caller.next('ACK')
  await hangUp(caller, leg, node)
})

test('a process that ends while the parties are asked hands the call on', async () => {
  const { caller, node, leg } = await talk()
  await restart()
  await rig.advance(200)
  for (const party of [caller, node]) await party.next('INVITE')
  expect(rig.control.saveAll()).toEqual([])
  await restart()
  expect(rig.restored).toEqual({ restored: 1, abandoned: 0 })
  await stillThere(rig, caller, node)
  await hangUp(caller, leg, node)
})

test('a process that stops in order saves each field of a dialog, as an earlier version reads it', async () => {
  rig = await startCallRig()
  const headers = ['Supported: timer', 'Session-Expires: 1800']
  const { caller, node, leg, invite } = await dial(rig, { headers })
  node.reply(invite, 200, { tag: 'b', body: sdp('answer') })
  await acknowledge(caller, leg, node)
  await rig.settle()
  expect(rig.control.saveAll()).toEqual([])
  const { legs } = JSON.parse(rig.saved.get('uuid-1') ?? '')
  const dialog = { routeSet: [], isFlowBound: false }
  const session = { localSdp: '', minSeconds: 0 }
  expect(legs).toMatchObject([{ sip: { dialog: { ...dialog, session } } }, { sip: { dialog } }])
  await restart()
  await stillThere(rig, caller, node)
  await hangUp(caller, leg, node)
})
