/** Requests that are refused, under overload too, and answers to senders that may have written the address of another. */
import { expect, test } from 'vitest'
import type { NewRequest, Screening } from '../../../../../engine/sip-server/options.ts'
import { composeResponse } from '../../../../../engine/sip-server/message/index.ts'
import { RefusedInvites } from '../../../../../engine/sip-server/core/uas/receive-request.ts'
import { acknowledge, answered, invited, respond } from '../../../../support/caller.ts'
import {
  VirtualServer,
  caller,
  header,
  requestOf,
  sdp,
  tcpCaller,
  type SentMessage,
} from '../../../../support/sip-core.ts'

// RFC 3261 §18.2.1-2, RFC 3581 §4.
test('responses go to the source address, and to the source port only where rport asks for it', () => {
  const source = { ...caller, address: '203.0.113.99', port: 31_000 }
  const server = new VirtualServer()
  server.receive(requestOf('OPTIONS', { toTag: 'x' }), source)
  const [plain] = server.takeSent()
  expect(header(plain?.text ?? '', 'Via')).toContain(';received=203.0.113.99')
  expect(plain?.flow).toMatchObject({ address: '203.0.113.99', port: 5060 })

  server.receive(
    requestOf('OPTIONS', {
      toTag: 'x',
      via: 'SIP/2.0/UDP 203.0.113.7:5060;rport;branch=z9hG4bK-o',
    }),
    source,
  )
  const [symmetric] = server.takeSent()
  expect(header(symmetric?.text ?? '', 'Via')).toBe(
    'SIP/2.0/UDP 203.0.113.7:5060;rport=31000;branch=z9hG4bK-o;received=203.0.113.99',
  )
  expect(symmetric?.flow).toMatchObject({ address: '203.0.113.99', port: 31_000 })
})

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
  const crippled = requestOf('INVITE').replace(/^(From|To|CSeq):.*\r\n/gm, '')
  server.receive(crippled)
  const [refused] = server.takeSent()
  expect(refused?.text).toMatch(/^SIP\/2\.0 400 /)
  expect(refused?.text).toMatch(/^Call-ID: .+\r$/m)
  expect(refused?.text).not.toMatch(/^(From|To|CSeq):/m)
})

test('an application that never answers an INVITE costs the caller no more than the limit', () => {
  const server = new VirtualServer({ timers: { applicationMs: 64_000 } })
  invited(server)
  server.advance(64_000)
  expect(server.takeStartLines()[0]).toBe('SIP/2.0 480 Temporarily Unavailable')
})

test('a full server refuses what is new and lets the calls that it has end', () => {
  for (const limits of [{ maxUnanswered: 1 }, { maxDialogs: 1 }]) {
    const server = new VirtualServer({ limits })
    const toTag = answered(server)
    acknowledge(server, toTag)
    const others = { callId: 'c2', fromTag: 'f2' }
    server.receive(requestOf('INVITE', { ...others, branch: 'z9hG4bK-2', body: sdp }))
    server.receive(requestOf('OPTIONS', { ...others, branch: 'z9hG4bK-3' }))
    server.takeDelivered()
    const refused = server.takeSent().at(-1)?.text ?? ''
    expect(refused.startsWith('SIP/2.0 503 Service Unavailable\r\n')).toBe(true)
    expect(header(refused, 'Retry-After')).toBe('5')
    server.receive(requestOf('BYE', { toTag, cseq: 2 }))
    expect(server.takeDelivered()[0]?.sip.startsWith('BYE ')).toBe(true)
    expect(server.core.stats()['dialogs']).toBe(0)
  }
})

test('a request inside a dialog may insist on no more than one outside', () => {
  const server = new VirtualServer()
  const toTag = answered(server)
  acknowledge(server, toTag)
  server.takeSent()
  server.receive(requestOf('INFO', { toTag, cseq: 2, extra: ['Require: unheard-of'] }))
  expect(server.takeStartLines()).toEqual(['SIP/2.0 420 Bad Extension'])
})

test('an INVITE describes its session in SDP, unless its body may be ignored', () => {
  const asText = requestOf('INVITE', { body: 'hello' }).replace('application/sdp', 'text/plain')
  const server = new VirtualServer()
  server.receive(asText)
  const [refused] = server.takeSent()
  expect(refused?.text.startsWith('SIP/2.0 415 Unsupported Media Type\r\n')).toBe(true)
  expect(header(refused?.text ?? '', 'Accept')).toBe('application/sdp, multipart/mixed')
  for (const [from, to] of [
    ['text/plain', 'multipart/mixed;boundary=b'],
    ['text/plain', 'text/plain\r\nContent-Disposition: render;handling=optional'],
  ] as const) {
    const other = new VirtualServer()
    other.receive(asText.replace(from, to))
    expect(other.takeStartLines()).toEqual(['SIP/2.0 100 Trying'])
  }
})

/** A server that lets calls in until it is told otherwise. */
function start() {
  const load = { isTooHigh: false }
  const server = new VirtualServer({
    refusesCall: (invite) => load.isTooHigh && invite.toTag === '',
  })
  return { server, load }
}

// RFC 3261 §21.5.4, §8.2.6.2, §8.2.7.
test('under overload a new call gets 503 with Retry-After at once, and leaves nothing behind', () => {
  const { server, load } = start()
  load.isTooHigh = true
  const before = server.core.stats()
  const via = 'SIP/2.0/UDP 203.0.113.7:5060;rport;branch=z9hG4bK-over'
  const invite = requestOf('INVITE', { body: sdp, via, callId: 'over@x', cseq: 7 })
  server.receive(invite)
  const [sent, ...more] = server.takeSent()
  const text = sent?.text ?? ''
  expect(more).toEqual([])
  expect(text.split('\r\n', 1)).toEqual(['SIP/2.0 503 Service Unavailable'])
  expect(header(text, 'Retry-After')).toBe('1')
  expect(header(text, 'Via')).toBe(
    'SIP/2.0/UDP 203.0.113.7:5060;rport=5060;branch=z9hG4bK-over;received=203.0.113.7',
  )
  expect(header(text, 'From')).toBe(header(invite, 'From'))
  expect(header(text, 'To')).toMatch(/^<sip:18005551212@198\.51\.100\.10>;tag=\w+$/)
  expect(header(text, 'Call-ID')).toBe('over@x')
  expect(header(text, 'CSeq')).toBe('7 INVITE')
  expect(server.takeDelivered()).toEqual([])
  expect({ ...server.core.stats(), outputs: 0 }).toEqual({ ...before, outputs: 0 })

  server.receive(invite)
  expect(server.takeSent().map((again) => again.text)).toEqual([text])
  server.receive(requestOf('ACK', { via, callId: 'over@x', cseq: 7, toTag: 'any' }))
  expect(server.takeSent()).toEqual([])
  expect(server.takeDelivered()).toEqual([])
})

const named = (branch: string, more: object = {}): string =>
  requestOf('INVITE', { body: sdp, branch, ...more })

test('a copy of a refused INVITE is refused when there is room again, and the next try is let in', () => {
  const { server, load } = start()
  load.isTooHigh = true
  server.receive(named('z9hG4bK-early'))
  const [refused] = server.takeSent()
  load.isTooHigh = false
  server.receive(named('z9hG4bK-early'))
  expect(server.takeSent().map(({ text }) => text)).toEqual([refused?.text])
  server.advance(31_000)
  server.receive(named('z9hG4bK-early'))
  expect(server.takeStartLines()).toEqual(['SIP/2.0 503 Service Unavailable'])
  expect(server.takeDelivered()).toEqual([])
  server.receive(named('z9hG4bK-next', { cseq: 2 }))
  expect(server.takeStartLines()).toEqual(['SIP/2.0 100 Trying'])
})

test('a copy of a call that was let in before gets its answer, not a refusal', () => {
  const { server, load } = start()
  invited(server)
  load.isTooHigh = true
  server.receive(requestOf('INVITE', { body: sdp }))
  expect(server.takeStartLines()).toEqual(['SIP/2.0 100 Trying'])
})

test('a call that was let in before can be changed and ended', () => {
  const { server, load } = start()
  const toTag = answered(server)
  load.isTooHigh = true
  acknowledge(server, toTag)
  server.takeDelivered()
  server.receive(requestOf('INVITE', { toTag, cseq: 2, branch: 'z9hG4bK-re', body: sdp }))
  server.receive(requestOf('BYE', { toTag, cseq: 3, branch: 'z9hG4bK-bye' }))
  expect(server.takeDelivered().map(({ sip }) => sip.split(' ', 1)[0])).toEqual(['INVITE', 'BYE'])
})

const screening = (screen: (request: NewRequest) => Screening | undefined) =>
  new VirtualServer({ more: { screen } })

test('a refused request gets the same answer again and again, and keeps no state', () => {
  const server = screening(() => ({ status: 603, reason: 'Decline' }))
  const before = server.core.stats()
  server.receive(requestOf('INVITE', { body: sdp }))
  server.receive(requestOf('INVITE', { body: sdp }))
  server.receive(requestOf('ACK'))
  const [first, second, ...rest] = server.takeSent().map(({ text }) => text)
  expect(first).toContain('SIP/2.0 603 Decline\r\n')
  expect(second).toBe(first)
  expect(rest).toEqual([])
  expect(server.delivered).toEqual([])
  expect(server.core.stats()).toEqual(before)
})

test('a dropped request gets no answer', () => {
  const server = screening(() => 'drop')
  server.receive(requestOf('OPTIONS'))
  expect(server.takeSent()).toEqual([])
  expect(server.delivered).toEqual([])
})

const challenge = { 'Proxy-Authenticate': 'Digest realm="a"', 'X-Long': 'x'.repeat(500) }

function challenged(server: VirtualServer, transactionId: string): readonly SentMessage[] {
  const message = composeResponse(407, '', challenge, '')
  const sip = { kind: 'sip', transactionId, dialogId: '', routeUrl: '', message } as const
  const command = { ...sip, toStranger: true }
  server.drive((core, now) => core.command(server.clientId, { id: 'x', command }, now))
  server.takeDelivered()
  return server.takeSent()
}

const handled = (server: VirtualServer, transactionId: string): void =>
  server.drive((core, now) => core.handled(server.clientId, transactionId, now))

const bareInvite = requestOf('INVITE', { body: sdp })

test('a challenge to a stranger is sent once, and each copy of its INVITE is a new one', () => {
  const server = new VirtualServer({ isInProcess: true })
  const [first] = challenged(server, invited(server, bareInvite))
  server.advance(64_000)
  expect(server.takeSent()).toEqual([])
  expect(server.core.stats()).toMatchObject({ serverTransactions: 0, merged: 0, deadlines: 0 })
  const [again] = challenged(server, invited(server, bareInvite))
  expect(again?.text).toBe(first?.text)
})

test('by UDP it is at most twice as long as the request: its last header lines are left out', () => {
  const server = new VirtualServer({ isInProcess: true })
  const [answer] = challenged(server, invited(server, bareInvite))
  expect(answer?.text).toContain('Proxy-Authenticate: Digest realm="a"')
  expect(answer?.text).not.toContain('X-Long')
  const [whole] = challenged(server, invited(server, requestOf('INVITE', { body: sdp }), tcpCaller))
  expect(whole?.text).toContain('X-Long')
})

test('a request that is too short for any answer gets none', () => {
  const server = new VirtualServer()
  server.receive('X s:x SIP/2.0\r\nv:SIP/2.0/UDP a;branch=z9hG4bK1\r\n\r\n')
  expect(server.takeSent()).toEqual([])
})

// RFC 3261 §17.2.1.
test('100 waits until an application of this process has seen the INVITE, and is not sent after its answer', () => {
  const server = new VirtualServer({ isInProcess: true })
  server.receive(bareInvite, caller)
  expect(server.takeSent()).toEqual([])
  const transactionId = server.takeDelivered()[0]?.transactionId ?? ''
  handled(server, transactionId)
  expect(server.takeStartLines()).toEqual(['SIP/2.0 100 Trying'])
  handled(server, transactionId)
  expect(server.takeSent()).toEqual([])

  const other = new VirtualServer({ isInProcess: true })
  const id = invited(other, bareInvite)
  respond(other, id, 180)
  other.takeSent()
  handled(other, id)
  expect(other.takeSent()).toEqual([])
})

const keyOf = (number: number): string => `z9hg4bk-${number} 203.0.113.7:5060 INVITE`

const keys = (from: number, to: number): string[] =>
  Array.from({ length: to - from }, (_, index) => keyOf(from + index))

test('twenty thousand are known for 64·T1, and no other INVITE is taken for one of them', () => {
  const refused = new RefusedInvites(32_000, [1, 2])
  for (const key of keys(0, 20_000)) refused.add(key, 5_500)
  expect(keys(0, 20_000).every((key) => refused.has(key, 37_499))).toBe(true)
  expect(keys(20_000, 200_000).some((key) => refused.has(key, 6_000))).toBe(false)
  expect(refused.isEmpty(37_499)).toBe(false)
  expect(refused.has(keyOf(1), 39_000)).toBe(false)
  expect(refused.isEmpty(39_000)).toBe(true)
})
