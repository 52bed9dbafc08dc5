import { expect, test } from 'vitest'
import { acknowledge, answered, invited } from '../../../../support/caller.ts'
import { VirtualServer, header, requestOf, sdp } from '../../../../support/sip-core.ts'

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

test('a copy of an INVITE that a full server has refused is refused when a call has ended', () => {
  const server = new VirtualServer({ limits: { maxDialogs: 1 } })
  const toTag = answered(server)
  acknowledge(server, toTag)
  const others = { callId: 'c2', fromTag: 'f2' }
  server.receive(named('z9hG4bK-2', others))
  server.receive(requestOf('BYE', { toTag, cseq: 2 }))
  server.takeSent()
  server.receive(named('z9hG4bK-2', others))
  expect(server.takeStartLines()).toEqual(['SIP/2.0 503 Service Unavailable'])
  expect(server.core.traffic.refusedWhenFull).toBe(1)
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
