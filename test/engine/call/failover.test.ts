/** Which candidate is tried next, as nodes and callers see it. */
import { afterEach, expect, test } from 'vitest'
import { type CallRig, candidate, startCallRig } from '../../support/call-rig.ts'
import { sdp } from '../../support/sip-peer.ts'
import { acknowledge, hangUp } from './steps.ts'

let rig: CallRig

afterEach(() => rig.stop())

async function start(options: Parameters<typeof startCallRig>[0] = {}) {
  rig = await startCallRig(options)
  const caller = await rig.caller()
  const first = await rig.node()
  const second = await rig.node()
  const leg = caller.leg(rig.uri('1555'))
  caller.request('INVITE', leg, { body: sdp('offer') })
  return { caller, first, second, leg, invite: await first.next('INVITE') }
}

test.each([408, 500, 502, 503, 504])('%i from a node: the next one is tried', async (status) => {
  const { caller, first, second, invite } = await start()
  first.reply(invite, status, { tag: 'b' })
  const next = await second.next('INVITE')
  second.reply(next, 486, { tag: 'c' })
  await caller.next(486)
  expect(await rig.record()).toMatchObject({
    attempts: [{ status }, { status: 486 }],
    node: rig.answers.candidates[1]?.uri,
    disposition: 'BUSY',
  })
  expect(rig.outcomes).toEqual([
    [1, status === 503 ? 'failed' : 'answered'],
    [2, 'answered'],
  ])
})

test.each([
  [404, 404],
  [486, 486],
  [487, 487],
  [501, 501],
  [603, 603],
  [401, 403],
  [407, 403],
  [302, 480],
  [599, 500],
])('%i from a node is the last word: the caller gets %i', async (status, shown) => {
  const { caller, first, second, invite } = await start()
  first.reply(invite, status, { tag: 'b', headers: ['WWW-Authenticate: Digest realm="inner"'] })
  const answer = await caller.next((message) => message.status >= 300)
  expect(answer.status).toBe(shown)
  expect(answer.text).not.toContain('inner')
  expect(await rig.record()).toMatchObject({ attempts: [{ status }], sipCode: shown })
  expect(second.inbox).toEqual([])
})

test('a silent node is given up after NODE_TIMEOUT_MS, and its late 200 gets BYE', async () => {
  const { caller, first, second, leg, invite } = await start({ withSipTimers: true })
  await rig.advance(1_400)
  expect(second.inbox).toEqual([])
  await rig.advance(200)
  const next = await second.next('INVITE')

  first.reply(invite, 200, { tag: 'late', body: sdp('late') })
  const bye = await first.next('BYE')
  expect(bye.get('To')).toContain('tag=late')
  first.reply(bye, 200)

  second.reply(next, 200, { tag: 'b', body: sdp('answer') })
  const answer = await acknowledge(caller, leg)
  expect(answer.body).toBe(sdp('answer'))
  await hangUp(caller, leg, second)
  expect(await rig.record()).toMatchObject({
    disposition: 'ANSWERED',
    attempts: [{ status: 0, reason: 'silence' }, { status: 200 }],
  })
  expect(rig.outcomes).toEqual([
    [1, 'failed'],
    [2, 'answered'],
  ])
  await rig.idle()
})

test('while this process is busy, a node is given up only once its responses could be read', async () => {
  const { second } = await start()
  rig.answers.lagMs = 1_000
  await rig.advance(2_400)
  expect(second.inbox).toEqual([])
  rig.answers.lagMs = 10
  await rig.advance(300)
  await second.next('INVITE')
})

test('a node that has sent 100 is not silent', async () => {
  const { caller, first, second, invite } = await start()
  first.reply(invite, 100)
  await rig.seen(first)
  await rig.advance(10_000)
  first.reply(invite, 486, { tag: 'b' })
  await caller.next(486)
  expect(second.inbox).toEqual([])
})

// drachtio-server does not tell its applications of a 100.
test('where Trying cannot be heard, a silent node that answers OPTIONS may go on', async () => {
  const { caller, first, second, invite } = await start({ app: 'without Trying' })
  first.reply(invite, 100)
  await rig.advance(1_600)
  first.reply(await first.next('OPTIONS'), 200)
  await rig.seen(first)
  await rig.advance(4_000)
  first.reply(invite, 486, { tag: 'b' })
  await caller.next(486)
  expect(second.inbox).toEqual([])
})

test('where no 100 reaches us, a node that answers no OPTIONS either is given up', async () => {
  const { first, second } = await start({ app: 'without Trying' })
  await rig.advance(1_600)
  await first.next('OPTIONS')
  await rig.advance(1_600)
  await second.next('INVITE')
  expect(rig.outcomes).toEqual([[1, 'failed']])
})

test('after early media no other node is tried: the caller would hear two callees', async () => {
  const { caller, first, second, invite } = await start()
  first.reply(invite, 183, { tag: 'b', body: sdp('early') })
  expect((await caller.next(183)).body).toBe(sdp('early'))
  expect(rig.calls.find('uuid-1')?.state).toBe('EARLY')
  first.reply(invite, 503, { tag: 'b' })
  await caller.next(503)
  expect(await rig.record()).toMatchObject({ attempts: [{ status: 503 }] })
  expect(second.inbox).toEqual([])
})

test('when all are silent the caller gets 503 with the text of SPECIFICATION.md §10.4', async () => {
  const { caller, second } = await start()
  await rig.advance(1_600)
  await second.next('INVITE')
  await rig.advance(1_600)
  const answer = await caller.next(503)
  expect(answer.startLine).toBe('SIP/2.0 503 No Backend PBX Nodes Available')
  expect(await rig.record()).toMatchObject({
    disposition: 'CONGESTION',
    denialCode: 'no_candidate',
    attempts: [{ status: 0 }, { status: 0 }],
  })
})

test('an unreachable destination does not stop the call', async () => {
  rig = await startCallRig()
  const caller = await rig.caller()
  rig.answers.candidates.push({
    ...candidate(1, 5_060),
    uri: 'sip:127.0.0.1:5060;transport=tls',
    transport: 'tls',
  })
  const node = await rig.node()
  caller.request('INVITE', caller.leg(rig.uri('1555')), { body: sdp('offer') })
  node.reply(await node.next('INVITE'), 486, { tag: 'b' })
  await caller.next(486)
  expect(rig.outcomes[0]).toEqual([1, 'failed'])
  expect(await rig.record()).toMatchObject({ attempts: [{ status: 0 }, { status: 486 }] })
})

test('ringing ends after RING_TIMEOUT: 480 for the caller, CANCEL for the node', async () => {
  const { caller, first, second, invite } = await start()
  first.reply(invite, 180, { tag: 'b' })
  await caller.next(180)
  await rig.advance(180_100)
  await caller.next(480)
  first.reply(await first.next('CANCEL'), 200)
  first.reply(invite, 487, { tag: 'b' })
  expect(await rig.record()).toMatchObject({
    disposition: 'NO ANSWER',
    hangupBy: 'system',
    hangupCause: 'NO_ANSWER',
  })
  expect(second.inbox).toEqual([])
  await rig.idle()
})

test('an answer without Contact fails the call with 502, and the node is hung up', async () => {
  const { caller, first, second, invite } = await start({ withSipTimers: true })
  const lines = [
    'SIP/2.0 200 OK',
    ...invite.all('Via').map((via) => `Via: ${via}`),
    `From: ${invite.get('From')}`,
    `To: ${invite.get('To')};tag=b`,
    `Call-ID: ${invite.get('Call-ID')}`,
    `CSeq: ${invite.get('CSeq')}`,
    'Content-Length: 0',
    '\r\n',
  ]
  first.send(lines.join('\r\n'))
  await caller.next(502)
  await first.next('ACK')
  first.reply(await first.next('BYE'), 200)
  expect(await rig.record()).toMatchObject({ disposition: 'FAILED', sipCode: 502 })
  expect(second.inbox).toEqual([])
  await rig.idle()
})

/**
 * Each node takes so many calls at once; those of `full` have them, which is known when they are
 * asked.
 */
async function dialLimited(...full: readonly number[]) {
  rig = await startCallRig()
  const caller = await rig.caller()
  const nodes = [await rig.node(), await rig.node()] as const
  rig.answers.candidates = rig.answers.candidates.map((each) => ({ ...each, isLimited: true }))
  for (const nodeId of full) rig.answers.fullNodes.add(nodeId)
  caller.request('INVITE', caller.leg(rig.uri('1555')), { body: sdp('offer') })
  return { caller, nodes }
}

test('a node that is full when its turn comes is not called, the next one is', async () => {
  const { caller, nodes } = await dialLimited(1)
  nodes[1].reply(await nodes[1].next('INVITE'), 486, { tag: 'b' })
  await caller.next(486)
  expect(nodes[0].inbox).toEqual([])
  expect(await rig.record()).toMatchObject({ node: rig.answers.candidates[1]?.uri })
})

test('when all nodes are full the caller may try again', async () => {
  const { caller } = await dialLimited(1, 2)
  const answer = await caller.next(503)
  expect(answer.get('Retry-After')).toBe('5')
  const setId = 1
  const denialCode = 'node_limit'
  expect(await rig.record()).toMatchObject({ denialCode, attempts: [], node: null, setId })
})
