/**
 * Requests that are refused, under overload too, and answers to senders that may have written the
 * address of another.
 */
import { expect, test } from 'vitest'
import { RefusedInvites } from '../../../../../engine/sip-server/core/uas/refused-invites.ts'
import { composeResponse } from '../../../../../schema/sip/index.ts'
import { acknowledge, answered, invited, respond } from '../../../../support/caller.ts'
import {
  VirtualServer,
  caller,
  header,
  requestOf,
  sdp,
  tcpCaller,
} from '../../../../support/sip-core.ts'

const unavailable = 'SIP/2.0 503 Service Unavailable'

const methods = (server: VirtualServer): (string | undefined)[] =>
  server.takeDelivered().map(({ sip }) => sip.split(' ', 1)[0])

// RFC 3261 §18.2.1-2, RFC 3581 §4.
test.each([
  ['', ';received=203.0.113.99', 5060],
  [';rport', ';received=203.0.113.99', 31_000],
])(
  'a response goes to the source address, and to the source port only where rport asks for it: "%s"',
  (rport, received, port) => {
    const server = new VirtualServer()
    const via = `SIP/2.0/UDP 203.0.113.7:5060${rport};branch=z9hG4bK-o`
    const source = { ...caller, address: '203.0.113.99', port: 31_000 }
    server.receive(requestOf('OPTIONS', { toTag: 'x', via }), source)
    const [sent] = server.takeSent()
    const filled = via.replace(';rport', ';rport=31000')
    expect(header(sent?.text ?? '', 'Via')).toBe(`${filled}${received}`)
    expect(sent?.flow).toMatchObject({ address: '203.0.113.99', port })
  },
)

test('an INVITE that was refused may come again by another way, as serial forking does it', () => {
  const server = new VirtualServer()
  respond(server, invited(server), 486)
  server.takeDelivered()
  const again = requestOf('INVITE', { branch: 'z9hG4bK-next', body: sdp })
  respond(server, invited(server, again), 200)
  expect(server.takeStartLines()).toEqual(['SIP/2.0 200 Any'])
  server.receive(requestOf('INVITE', { branch: 'z9hG4bK-too-late', body: sdp }))
  expect(server.takeStartLines()).toEqual(['SIP/2.0 482 Loop Detected'])
})

// RFC 4475 §3.3.1: what cannot be copied is not made up.
test('a request without From, To and CSeq gets 400 that has no such header either', () => {
  const server = new VirtualServer()
  server.receive(requestOf('INVITE').replace(/^(From|To|CSeq):.*\r\n/gm, ''))
  const text = server.takeSent()[0]?.text
  expect(text).toMatch(/^SIP\/2\.0 400 [^]*\r\nCall-ID: .+\r\n/)
  expect(text).not.toMatch(/^(From|To|CSeq):/m)
})

test('an application that never answers an INVITE costs the caller no more than the limit', () => {
  const server = new VirtualServer({ timers: { applicationMs: 64_000 } })
  invited(server)
  server.advance(64_000)
  expect(server.takeStartLines()[0]).toBe('SIP/2.0 480 Temporarily Unavailable')
})

test.each([{ maxUnanswered: 1 }, { maxDialogs: 1 }])(
  'a full server (%j) refuses what is new and lets the calls that it has end',
  (limits) => {
    const server = new VirtualServer({ limits })
    const toTag = answered(server)
    acknowledge(server, toTag)
    const others = { callId: 'c2', fromTag: 'f2' }
    server.receive(requestOf('INVITE', { ...others, branch: 'z9hG4bK-2', body: sdp }))
    server.receive(requestOf('OPTIONS', { ...others, branch: 'z9hG4bK-3' }))
    server.takeDelivered()
    const refused = server.takeSent().at(-1)?.text ?? ''
    expect([refused.split('\r\n')[0], header(refused, 'Retry-After')]).toEqual([unavailable, '5'])
    server.receive(requestOf('BYE', { toTag, cseq: 2 }))
    expect(methods(server)).toEqual(['BYE'])
    expect(server.core.stats()['dialogs']).toBe(0)
  },
)

test('a request inside a dialog may insist on no more than one outside', () => {
  const server = new VirtualServer()
  const toTag = answered(server)
  acknowledge(server, toTag)
  server.takeSent()
  server.receive(requestOf('INFO', { toTag, cseq: 2, extra: ['Require: unheard-of'] }))
  expect(server.takeStartLines()).toEqual(['SIP/2.0 420 Bad Extension'])
})

test.each([
  ['text/plain', 'SIP/2.0 415 Unsupported Media Type'],
  ['multipart/mixed;boundary=b', 'SIP/2.0 100 Trying'],
  ['text/plain\r\nContent-Disposition: render;handling=optional', 'SIP/2.0 100 Trying'],
])('an INVITE with a body of %j gets %s', (type, line) => {
  const server = new VirtualServer()
  const invite = requestOf('INVITE', { body: 'hello' })
  server.receive(invite.replace('application/sdp', type))
  expect(server.takeStartLines()).toEqual([line])
})

/** A server that lets calls in until it is told otherwise. */
function loaded() {
  const load = { isTooHigh: false }
  const refusesCall = ({ toTag }: { toTag: string }): boolean => load.isTooHigh && toTag === ''
  return { server: new VirtualServer({ refusesCall }), load }
}

// RFC 3261 §21.5.4, §8.2.6.2, §8.2.7.
test('under overload a new call gets 503 with Retry-After at once, and leaves nothing behind', () => {
  const { server, load } = loaded()
  load.isTooHigh = true
  const before = server.core.stats()
  const via = 'SIP/2.0/UDP 203.0.113.7:5060;rport;branch=z9hG4bK-over'
  const invite = requestOf('INVITE', { body: sdp, via, callId: 'over@x', cseq: 7 })
  server.receive(invite)
  const [text = '', ...more] = server.takeSent().map((sent) => sent.text)
  expect([text.split('\r\n')[0], header(text, 'Retry-After'), more]).toEqual([unavailable, '1', []])
  for (const name of ['From', 'Call-ID', 'CSeq'])
    expect(header(text, name)).toBe(header(invite, name))
  expect(header(text, 'To')).toMatch(/^<sip:18005551212@198\.51\.100\.10>;tag=\w+$/)
  expect(server.takeDelivered()).toEqual([])
  expect({ ...server.core.stats(), outputs: 0 }).toEqual({ ...before, outputs: 0 })
  server.receive(invite)
  expect(server.takeSent().map((again) => again.text)).toEqual([text])
  server.receive(requestOf('ACK', { via, callId: 'over@x', cseq: 7, toTag: 'any' }))
  expect([server.takeSent(), server.takeDelivered()]).toEqual([[], []])
})

test('a copy of a refused INVITE is refused when there is room again, and the next try is let in', () => {
  const { server, load } = loaded()
  const invite = requestOf('INVITE', { body: sdp, branch: 'z9hG4bK-early' })
  load.isTooHigh = true
  server.receive(invite)
  const [refused] = server.takeSent()
  load.isTooHigh = false
  server.receive(invite)
  expect(server.takeSent().map(({ text }) => text)).toEqual([refused?.text])
  server.advance(31_000)
  server.receive(invite)
  expect(server.takeStartLines()).toEqual([unavailable])
  expect(server.takeDelivered()).toEqual([])
  server.receive(requestOf('INVITE', { body: sdp, branch: 'z9hG4bK-next', cseq: 2 }))
  expect(server.takeStartLines()).toEqual(['SIP/2.0 100 Trying'])
})

test('a call that was let in before gets answers to copies, and can be changed and ended', () => {
  const { server, load } = loaded()
  const transactionId = invited(server)
  load.isTooHigh = true
  server.receive(requestOf('INVITE', { body: sdp }))
  expect(server.takeStartLines()).toEqual(['SIP/2.0 100 Trying'])
  respond(server, transactionId, 200, ['To: <sip:x@y>;tag=mine'])
  server.takeDelivered()
  acknowledge(server, 'mine')
  const reinvite = { toTag: 'mine', cseq: 2, branch: 'z9hG4bK-re', body: sdp }
  server.receive(requestOf('INVITE', reinvite))
  server.receive(requestOf('BYE', { toTag: 'mine', cseq: 3, branch: 'z9hG4bK-bye' }))
  expect(methods(server)).toEqual(['ACK', 'INVITE', 'BYE'])
})

test('twenty thousand refused INVITEs are known for 64·T1, and no other is taken for one of them', () => {
  const keys = (from: number, to: number): string[] =>
    Array.from({ length: to - from }, (_, at) => `z9hg4bk-${from + at} 203.0.113.7:5060 INVITE`)
  const refused = new RefusedInvites(32_000, [1, 2])
  for (const key of keys(0, 20_000)) refused.add(key, 5_500)
  expect(keys(0, 20_000).every((key) => refused.has(key, 37_499))).toBe(true)
  expect(keys(20_000, 200_000).some((key) => refused.has(key, 6_000))).toBe(false)
  expect(refused.isEmpty(39_000)).toBe(true)
})

test('a request that is screened out gets the same answer again and again, and keeps no state', () => {
  const screen = () => ({ status: 603, reason: 'Decline' })
  const server = new VirtualServer({ more: { screen } })
  const before = server.core.stats()
  server.receive(requestOf('INVITE', { body: sdp }))
  server.receive(requestOf('INVITE', { body: sdp }))
  server.receive(requestOf('ACK'))
  const [first, second, ...rest] = server.takeSent().map(({ text }) => text)
  expect(first).toContain('SIP/2.0 603 Decline\r\n')
  expect([second, rest, server.delivered]).toEqual([first, [], []])
  expect(server.core.stats()).toEqual(before)
})

// RFC 3261 §26.3.2.4; `test/support/attacks` has the whole.
function challenged(server: VirtualServer, transactionId: string): string {
  const headers = { 'Proxy-Authenticate': 'Digest realm="a"', 'X-Long': 'x'.repeat(500) }
  const message = composeResponse(407, '', headers, '')
  const sip = { kind: 'sip', transactionId, dialogId: '', routeUrl: '', message } as const
  const command = { ...sip, toStranger: true }
  server.drive((core, now) => core.command(server.clientId, { id: 'x', command }, now))
  server.takeDelivered()
  return server.takeSent()[0]?.text ?? ''
}

test('a challenge to a stranger is sent once, at most twice as long as its INVITE by UDP, and each copy is a new one', () => {
  const server = new VirtualServer({ isInProcess: true })
  const first = challenged(server, invited(server))
  expect(first).toContain('Proxy-Authenticate: Digest realm="a"')
  expect(first).not.toContain('X-Long')
  server.advance(64_000)
  expect(server.takeSent()).toEqual([])
  expect(server.core.stats()).toMatchObject({ serverTransactions: 0, merged: 0, deadlines: 0 })
  expect(challenged(server, invited(server))).toBe(first)
  const byTcp = new VirtualServer({ isInProcess: true })
  expect(challenged(byTcp, invited(byTcp, undefined, tcpCaller))).toContain('X-Long')
})

test('a request that is too short for any answer gets none', () => {
  const server = new VirtualServer()
  server.receive('X s:x SIP/2.0\r\nv:SIP/2.0/UDP a;branch=z9hG4bK1\r\n\r\n')
  expect(server.takeSent()).toEqual([])
})

// RFC 3261 §17.2.1.
test('an INVITE that an application of this process has seen gets 100 within 200 ms, unless it has another response', () => {
  const lines = (answeredAfterMs: number): readonly string[] => {
    const server = new VirtualServer({ isInProcess: true })
    const transactionId = invited(server)
    for (let times = 0; times < 2; times++)
      server.drive((core, now) => core.handled(server.clientId, transactionId, now))
    server.advance(answeredAfterMs)
    respond(server, transactionId, 180)
    server.advance(199)
    return server.takeStartLines()
  }
  expect(lines(0)).toEqual(['SIP/2.0 180 Any'])
  expect(lines(50)).toEqual(['SIP/2.0 180 Any'])
  expect(lines(199)).toEqual(['SIP/2.0 100 Trying', 'SIP/2.0 180 Any'])
})
