/**
 * Media descriptions of the called side before its answer: several forks (RFC 3261 §12.1, §13.2.1),
 * and UPDATE (RFC 3311). The caller has one dialog, in which the first answer counts; it learns of
 * another one by a re-INVITE after its ACK.
 */
import { afterEach, expect, test } from 'vitest'
import { type CallRig, startCallRig } from '../../support/call-rig.ts'
import type { CallRigOptions } from '../../support/call-rig-options.ts'
import { placeIn, startMediaRig } from '../../support/media-rig.ts'
import { type Leg, type PeerMessage, sdp, type SipPeer } from '../../support/sip-peer.ts'
import { acknowledge, dial, hangUp } from './steps.ts'

let rig: CallRig

afterEach(() => rig.stop())

const at = (port: number, name = 'answer'): string => sdp(name, port)

const portIn = ({ body }: PeerMessage): string => /^m=audio (\d+)/m.exec(body)?.[1] ?? ''

const versionIn = ({ body }: PeerMessage): string => /^o=(.*)\r$/m.exec(body)?.[1] ?? ''

/** The requests that a peer has got and has not read. */
const asked = ({ inbox }: SipPeer): readonly string[] =>
  inbox.flatMap(({ method }) => (method === '' ? [] : method))

type App = CallRigOptions['app']

async function ringing(headers: readonly string[] = [], app: App = 'in process') {
  rig = await startCallRig({ app })
  return dial(rig, { headers })
}

/** The caller follows a re-INVITE to `port`, and answers as before. */
async function moved(caller: SipPeer, port: string, answer = sdp('offer')): Promise<PeerMessage> {
  const again = await caller.next('INVITE')
  expect(portIn(again)).toBe(port)
  caller.reply(again, 200, { body: answer })
  await caller.next('ACK')
  return again
}

const apps = ['in process', 'in bursts', 'late'] as const

test.each(apps)(
  'another fork answers: the 200 says what the caller was told, and a re-INVITE who it is (%s)',
  async (app) => {
    const { caller, node, leg, invite } = await ringing([], app)
    node.reply(invite, 183, { tag: 'b', body: at(40_010) })
    node.reply(invite, 200, { tag: 'c', body: at(40_020) })
    const early = await caller.next('183 INVITE')
    const ok = await acknowledge(caller, leg, node)
    expect([portIn(early), portIn(ok)]).toEqual(['40010', '40010'])
    expect(ok.get('To')).toBe(early.get('To'))
    const again = await moved(caller, '40020')
    expect([versionIn(ok), versionIn(again)]).toEqual([
      '- 1 1 IN IP4 127.0.0.1',
      '- 1 2 IN IP4 127.0.0.1',
    ])
    await rig.settle()
    expect(asked(node)).toEqual([])
    await hangUp(caller, leg, node)
    expect(await rig.record()).toMatchObject({ disposition: 'ANSWERED' })
  },
)

test('the fork that answered and the requests to it: ACK and BYE have its tag', async () => {
  const { caller, node, leg, invite } = await ringing()
  node.reply(invite, 183, { tag: 'b', body: at(40_010) })
  node.reply(invite, 200, { tag: 'c', body: at(40_020) })
  const answer = await caller.next('200 INVITE')
  caller.learn(leg, answer)
  caller.request('ACK', leg)
  expect((await node.next('ACK')).get('To')).toContain('tag=c')
  await moved(caller, '40020')
  caller.request('BYE', leg)
  const bye = await node.next('BYE')
  expect(bye.get('To')).toContain('tag=c')
  node.reply(bye, 200)
})

interface Said {
  readonly tag: string
  readonly port: number
  readonly status?: number
}

test.each<readonly [string, readonly Said[], Said, string, string | undefined]>([
  [
    'the fork that rang first answers',
    [{ tag: 'b', port: 1 }],
    { tag: 'b', port: 1 },
    '1',
    undefined,
  ],
  [
    'it answers after another one',
    [
      { tag: 'b', port: 1 },
      { tag: 'c', port: 2 },
    ],
    { tag: 'b', port: 1 },
    '1',
    undefined,
  ],
  [
    'the last of three answers',
    [
      { tag: 'b', port: 1 },
      { tag: 'c', port: 2 },
      { tag: 'd', port: 3, status: 180 },
    ],
    { tag: 'd', port: 3 },
    '1',
    '3',
  ],
  [
    'another one answers from the same place',
    [{ tag: 'b', port: 1 }],
    { tag: 'c', port: 1 },
    '1',
    undefined,
  ],
  ['one without early media answers', [{ tag: 'b', port: 1 }], { tag: 'z', port: 9 }, '1', '9'],
  ['nobody has said anything before', [], { tag: 'z', port: 9 }, '9', undefined],
  ['one fork contradicts itself', [{ tag: 'b', port: 1 }], { tag: 'b', port: 2 }, '2', undefined],
])('%s', async (_what, before, answer, told, then) => {
  const { caller, node, leg, invite } = await ringing()
  for (const { tag, port, status = 183 } of before)
    node.reply(invite, status, { tag, body: at(port) })
  const bodies: string[] = []
  for (const { status = 183 } of before) bodies.push((await caller.next(`${status} INVITE`)).body)
  expect(bodies).toEqual(before.map(({ tag, port }) => (tag === before[0]?.tag ? at(port) : '')))
  node.reply(invite, 200, { tag: answer.tag, body: at(answer.port) })
  expect(portIn(await acknowledge(caller, leg, node))).toBe(told)
  if (then !== undefined) await moved(caller, then)
  await rig.settle()
  expect(asked(caller)).toEqual([])
  await hangUp(caller, leg, node)
})

test('a caller that has moved with the re-INVITE is where the callee looks for it', async () => {
  const { caller, node, leg, invite } = await ringing()
  node.reply(invite, 183, { tag: 'b', body: at(40_010) })
  node.reply(invite, 200, { tag: 'c', body: at(40_020) })
  await acknowledge(caller, leg, node)
  await moved(caller, '40020', sdp('moved', 4_444))
  const told = await node.next('INVITE')
  expect(portIn(told)).toBe('4444')
  node.reply(told, 200, { body: at(40_020) })
  await node.next('ACK')
  await hangUp(caller, leg, node)
})

test('glare: the caller offers at the same moment, and gets the re-INVITE again', async () => {
  const { caller, node, leg, invite } = await ringing()
  node.reply(invite, 183, { tag: 'b', body: at(40_010) })
  node.reply(invite, 200, { tag: 'c', body: at(40_020) })
  await acknowledge(caller, leg, node)
  caller.reply(await caller.next('INVITE'), 491)
  await caller.next('ACK')
  await rig.advance(1_100)
  await moved(caller, '40020')
  await hangUp(caller, leg, node)
})

test('the caller and the callee have agreed anew in the meantime: no re-INVITE is repeated', async () => {
  const { caller, node, leg, invite } = await ringing()
  node.reply(invite, 183, { tag: 'b', body: at(40_010) })
  node.reply(invite, 200, { tag: 'c', body: at(40_020) })
  await acknowledge(caller, leg, node)
  caller.reply(await caller.next('INVITE'), 491)
  await caller.next('ACK')
  caller.request('INVITE', leg, { body: sdp('own', 4_444) })
  node.reply(await node.next('INVITE'), 200, { body: at(40_022) })
  expect(portIn(await caller.next('200 INVITE'))).toBe('40022')
  caller.request('ACK', leg)
  await node.next('ACK')
  await rig.advance(3_000)
  expect(asked(caller)).toEqual([])
  await hangUp(caller, leg, node)
})

test('a caller that refuses it would hear nobody: the call ends', async () => {
  const { caller, node, leg, invite } = await ringing()
  node.reply(invite, 183, { tag: 'b', body: at(40_010) })
  node.reply(invite, 200, { tag: 'c', body: at(40_020) })
  await acknowledge(caller, leg, node)
  caller.reply(await caller.next('INVITE'), 488)
  for (const peer of [caller, node]) peer.reply(await peer.next('BYE'), 200)
  expect(await rig.record()).toMatchObject({ disposition: 'ANSWERED', hangupBy: 'system' })
})

test('a caller that hangs up in the meantime is not called back', async () => {
  const { caller, node, leg, invite } = await ringing()
  node.reply(invite, 183, { tag: 'b', body: at(40_010) })
  node.reply(invite, 200, { tag: 'c', body: at(40_020) })
  caller.learn(leg, await caller.next('200 INVITE'))
  await node.next('ACK')
  caller.request('BYE', leg)
  node.reply(await node.next('BYE'), 200)
  await caller.next('200 BYE')
  await rig.settle()
  expect(asked(caller)).toEqual([])
})

test('a caller that insists on reliable responses: the same', async () => {
  const { caller, node, leg, invite } = await ringing(['Require: 100rel'])
  node.reply(invite, 183, { tag: 'b', body: at(40_010) })
  const early = await caller.next('183 INVITE')
  caller.learn(leg, early)
  caller.request('PRACK', leg, { headers: [`RAck: ${early.get('RSeq')} 1 INVITE`] })
  await caller.next('200 PRACK')
  node.reply(invite, 200, { tag: 'c', body: at(40_020) })
  const ok = await caller.next('200 INVITE')
  expect(portIn(ok)).toBe('40010')
  leg.cseq = 1
  caller.request('ACK', leg)
  await node.next('ACK')
  await moved(caller, '40020')
  leg.cseq = 3
  await hangUp(caller, leg, node)
})

test('with a relay the media follows, and no re-INVITE is needed where the codecs are the same', async () => {
  const media = await startMediaRig()
  rig = media
  const { caller, node, leg, invite } = await dial(media)
  node.reply(invite, 183, { tag: 'b', body: at(40_010) })
  expect(placeIn((await caller.next('183 INVITE')).body)).toMatch(/^10\.99\.0\.1:/)
  node.reply(invite, 200, { tag: 'c', body: at(40_020) })
  const ok = await acknowledge(caller, leg, node)
  expect(placeIn(ok.body)).toMatch(/^10\.99\.0\.1:/)
  const [session] = media.relay.sessions.values()
  expect(session?.descriptions.get('uuid-1.1')).toBe(at(40_020))
  await rig.settle()
  expect(asked(caller)).toEqual([])
  await hangUp(caller, leg, node)
  await media.idle()
})

test('with a relay and another codec a re-INVITE says which', async () => {
  const media = await startMediaRig()
  rig = media
  const both = sdp('offer').replace('AVP 0', 'AVP 0 8')
  const { caller, node, leg, invite } = await dial(media, { body: both })
  node.reply(invite, 183, { tag: 'b', body: at(40_010) })
  await caller.next('183 INVITE')
  node.reply(invite, 200, { tag: 'c', body: at(40_020).replace('AVP 0', 'AVP 8') })
  await acknowledge(caller, leg, node)
  const again = await caller.next('INVITE')
  expect(again.body).toMatch(/^m=audio \d+ RTP\/AVP 8\r$/m)
  caller.reply(again, 200, { body: both })
  await caller.next('ACK')
  await hangUp(caller, leg, node)
  await media.idle()
})

// RFC 3311: the called side moves its media before its answer.

const reliably = ['Require: 100rel', 'RSeq: 77']
const supported = ['Supported: 100rel', 'Allow: INVITE, ACK, BYE, CANCEL, PRACK, UPDATE']

/** The node rings with early media, and has its PRACK. */
async function early(node: SipPeer, invite: PeerMessage, tag = 'a'): Promise<Leg> {
  node.reply(invite, 183, { tag, headers: [...reliably, ...supported.slice(1)], body: at(49_300) })
  node.reply(await node.next('PRACK'), 200)
  return node.calledLeg(invite, tag)
}

const moves = (port: number): string =>
  at(port).replace('o=- 1 1', 'o=- 1 2').replace('AVP 0', 'AVP 0 8 101')

test.each(apps)(
  'an UPDATE with an offer gets an answer, and the caller gets the offer after its ACK (%s)',
  async (app) => {
    const { caller, node, leg, invite } = await ringing(supported, app)
    const nodeLeg = await early(node, invite)
    expect(portIn(await caller.next('183 INVITE'))).toBe('49300')
    node.request('UPDATE', nodeLeg, { body: moves(49_400) })
    const answer = await node.next('200 UPDATE')
    expect([portIn(answer), answer.get('Content-Type')]).toEqual(['4000', 'application/sdp'])
    expect(answer.body).toMatch(/^m=audio 4000 RTP\/AVP 0\r$/m)
    node.reply(invite, 200, { tag: 'a' })
    expect(portIn(await acknowledge(caller, leg, node))).toBe('49300')
    const again = await moved(caller, '49400')
    expect(versionIn(again)).toBe('- 1 2 IN IP4 127.0.0.1')
    await hangUp(caller, leg, node)
  },
)

test.each([
  ['says nothing again', ''],
  ['repeats its first answer', at(49_300)],
  ['repeats its offer', moves(49_402)],
])('two UPDATEs, and a 200 that %s: the last offer counts', async (_, body) => {
  const { caller, node, leg, invite } = await ringing(supported)
  const nodeLeg = await early(node, invite)
  for (const port of [49_400, 49_402]) {
    node.request('UPDATE', nodeLeg, { body: moves(port) })
    await node.next('200 UPDATE')
  }
  node.reply(invite, 200, { tag: 'a', body })
  expect(portIn(await acknowledge(caller, leg, node))).toBe('49300')
  await moved(caller, '49402')
  await hangUp(caller, leg, node)
})

test('an UPDATE of one fork is no matter of another one that answers', async () => {
  const { caller, node, leg, invite } = await ringing(supported)
  const nodeLeg = await early(node, invite)
  node.request('UPDATE', nodeLeg, { body: moves(49_400) })
  await node.next('200 UPDATE')
  node.reply(invite, 200, { tag: 'c', body: at(40_020) })
  expect(portIn(await acknowledge(caller, leg, node))).toBe('49300')
  await moved(caller, '40020')
  await hangUp(caller, leg, node)
})

test('hold and resume before the answer: the answers say so, and nothing has to follow', async () => {
  const { caller, node, leg, invite } = await ringing(supported)
  const nodeLeg = await early(node, invite)
  node.request('UPDATE', nodeLeg, { body: moves(49_300).replace('sendrecv', 'sendonly') })
  const held = await node.next('200 UPDATE')
  expect(held.body).toContain('a=recvonly')
  node.request('UPDATE', nodeLeg, { body: at(49_300) })
  const resumed = await node.next('200 UPDATE')
  expect(resumed.body).toContain('a=sendrecv')
  expect(versionIn(resumed)).not.toBe(versionIn(held))
  node.reply(invite, 200, { tag: 'a' })
  await acknowledge(caller, leg, node)
  await rig.settle()
  expect(asked(caller)).toEqual([])
  await hangUp(caller, leg, node)
})

test.each([
  ['a codec that was not offered', moves(49_400).replace('AVP 0 8 101', 'AVP 8'), 488],
  ['another profile', moves(49_400).replace('RTP/AVP', 'RTP/SAVP'), 488],
  ['no stream', moves(49_400).replace(/m=[^]*/, ''), 488],
  ['no description', 'hello', 488],
  ['nothing', '', 200],
])('an UPDATE with %s changes nothing', async (_, body, status) => {
  const { caller, node, leg, invite } = await ringing(supported)
  const nodeLeg = await early(node, invite)
  node.request('UPDATE', nodeLeg, { body })
  expect((await node.next(`${status} UPDATE`)).body).toBe('')
  node.reply(invite, 200, { tag: 'a' })
  expect(portIn(await acknowledge(caller, leg, node))).toBe('49300')
  await rig.settle()
  expect(asked(caller)).toEqual([])
  await hangUp(caller, leg, node)
})

test('an UPDATE before any answer to our offer is glare', async () => {
  const { caller, node, invite } = await ringing(supported)
  node.reply(invite, 180, { tag: 'a' })
  await caller.next('180 INVITE')
  node.request('UPDATE', node.calledLeg(invite, 'a'), { body: moves(49_400) })
  await node.next('491 UPDATE')
  node.reply(invite, 486, { tag: 'a' })
  await caller.next('486 INVITE')
})

test('with a relay it leads to the new place at once, and no re-INVITE follows', async () => {
  const media = await startMediaRig()
  rig = media
  const { caller, node, leg, invite } = await dial(media, { headers: supported })
  const nodeLeg = await early(node, invite)
  const first = await caller.next('183 INVITE')
  node.request('UPDATE', nodeLeg, { body: moves(49_400).replace('AVP 0 8 101', 'AVP 0') })
  expect(placeIn((await node.next('200 UPDATE')).body)).toBe(placeIn(invite.body))
  await rig.settle()
  const [session] = media.relay.sessions.values()
  expect(placeIn(session?.descriptions.get('uuid-1.1') ?? '')).toBe('127.0.0.1:49400')
  node.reply(invite, 200, { tag: 'a' })
  const ok = await acknowledge(caller, leg, node)
  expect(placeIn(ok.body).split(':')[0]).toBe(placeIn(first.body).split(':')[0])
  await rig.settle()
  expect(asked(caller)).toEqual([])
  await hangUp(caller, leg, node)
  await media.idle()
})

test('an UPDATE of the caller before the answer is not taken without effect', async () => {
  const { caller, node, leg, invite } = await ringing(supported)
  node.reply(invite, 183, { tag: 'b', body: at(40_010) })
  caller.learn(leg, await caller.next('183 INVITE'))
  caller.request('UPDATE', leg, { body: sdp('moved', 4_444) })
  expect((await caller.next('500 UPDATE')).get('Retry-After')).toBe('5')
  node.reply(invite, 486, { tag: 'b' })
  await caller.next('486 INVITE')
})

test('a PRACK with an offer (RFC 3262 §5) is not taken without effect, and acknowledges', async () => {
  const { caller, node, leg, invite } = await ringing(['Require: 100rel'])
  node.reply(invite, 183, { tag: 'b', body: at(40_010) })
  const first = await caller.next('183 INVITE')
  caller.learn(leg, first)
  const headers = [`RAck: ${first.get('RSeq')} 1 INVITE`]
  caller.request('PRACK', leg, { headers, body: sdp('moved', 4_444) })
  await caller.next('488 PRACK')
  node.reply(invite, 200, { tag: 'b', body: at(40_010) })
  expect(portIn(await caller.next('200 INVITE'))).toBe('40010')
  leg.cseq = 1
  caller.request('ACK', leg)
  await node.next('ACK')
  leg.cseq = 3
  await hangUp(caller, leg, node)
})
