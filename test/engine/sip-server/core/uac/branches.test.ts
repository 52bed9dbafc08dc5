/** An INVITE that several branches answer: an early dialog for each (RFC 3261 §12.1.2, §13.2.2.4). */
import { expect, test } from 'vitest'
import { answer, calleeRequest, calleeSdp, dialogIdOf, invite } from '../../../../support/callee.ts'
import { VirtualServer, callee, header, sip } from '../../../../support/sip-core.ts'

const reliable = (rseq: number) => ['Require: 100rel', `RSeq: ${rseq}`]

const prack = (server: VirtualServer, request: string, rseq: number, lines: string[] = []) => {
  const rack = `RAck: ${rseq} 1 INVITE`
  server.command(`sip||${dialogIdOf(request)}\r\n${sip('PRACK sip:p SIP/2.0', [rack, ...lines])}`)
  return server.takeSent()[0]?.text ?? ''
}

test('each branch gets the PRACK for what it said, with numbers of its own', () => {
  const server = new VirtualServer()
  const request = invite(server)
  answer(server, request, 183, { toTag: 'one', lines: reliable(100), body: calleeSdp })
  answer(server, request, 183, { toTag: 'two', lines: reliable(900), body: calleeSdp })
  const ids = server.takeDelivered().map(({ dialogId }) => dialogId)
  expect(ids).toEqual([dialogIdOf(request), dialogIdOf(request)])
  const second = prack(server, request, 900)
  const first = prack(server, request, 100)
  expect([header(first, 'To'), header(first, 'CSeq')]).toEqual([
    '<sip:bob@192.0.2.20>;tag=one',
    '2 PRACK',
  ])
  expect([header(second, 'To'), header(second, 'CSeq')]).toEqual([
    '<sip:bob@192.0.2.20>;tag=two',
    '2 PRACK',
  ])
})

test('a request of one branch does not move the target of another', () => {
  const server = new VirtualServer()
  const request = invite(server)
  for (const toTag of ['bt', 'two']) answer(server, request, 180, { toTag })
  const update = calleeRequest(request, 'UPDATE', 1)
    .replace('tag=bt', 'tag=two')
    .replace('Contact: <sip:bob@192.0.2.20:5060>', 'Contact: <sip:two@192.0.2.20:7070>')
  server.receive(update, callee)
  server.takeSent()
  const info = sip('INFO sip:p SIP/2.0', [])
  server.command(`sip||${dialogIdOf(request)}\r\n${info}`)
  expect(server.takeStartLines()).toEqual(['INFO sip:bob@192.0.2.20:5060 SIP/2.0'])
  server.command(
    `sip||${dialogIdOf(request)}\r\n${sip('INFO sip:p SIP/2.0', ['To: <sip:b@c>;tag=two'])}`,
  )
  expect(server.takeStartLines()).toEqual(['INFO sip:two@192.0.2.20:7070 SIP/2.0'])
})

test('the branch that answers goes on with its own numbers, the other one is acknowledged and ended', () => {
  const server = new VirtualServer()
  const request = invite(server)
  for (const [toTag, rseq] of [
    ['one', 1],
    ['two', 50],
  ] as const) {
    answer(server, request, 183, { toTag, lines: reliable(rseq), body: calleeSdp })
    answer(server, prack(server, request, rseq), 200, { toTag })
  }
  answer(server, request, 200, { toTag: 'two', body: calleeSdp })
  server.command(`sip||${dialogIdOf(request)}\r\n${sip('ACK sip:p SIP/2.0', [])}`)
  server.takeSent()
  answer(server, request, 200, { toTag: 'one', body: calleeSdp })
  const [ack, bye] = server.takeSent().map(({ text }) => text)
  expect([header(ack ?? '', 'To'), header(bye ?? '', 'CSeq')]).toEqual([
    '<sip:bob@192.0.2.20>;tag=one',
    '3 BYE',
  ])
  server.command(`sip||${dialogIdOf(request)}\r\n${sip('BYE sip:p SIP/2.0', [])}`)
  const ours = server.takeSent()[0]?.text ?? ''
  expect([header(ours, 'To'), header(ours, 'CSeq')]).toEqual([
    '<sip:bob@192.0.2.20>;tag=two',
    '3 BYE',
  ])
})

test('after the call a copy of its 200 still gets the ACK, and the 200 of another branch ACK and BYE', () => {
  const server = new VirtualServer()
  const request = invite(server)
  const inDialog = (method: string): string => {
    server.command(`sip||${dialogIdOf(request)}\r\n${sip(`${method} sip:p SIP/2.0`, [])}`)
    return server.takeSent()[0]?.text ?? ''
  }
  answer(server, request, 200, { toTag: 'one', body: calleeSdp })
  const ack = inDialog('ACK')
  answer(server, inDialog('BYE'), 200, { toTag: 'one' })
  expect(server.core.stats()['dialogs']).toBe(0)
  answer(server, request, 200, { toTag: 'one', body: calleeSdp })
  expect(server.takeSent().map(({ text }) => text)).toEqual([ack])
  answer(server, request, 200, { toTag: 'two', body: calleeSdp })
  expect(server.takeSent().map(({ text }) => text.split(' ')[0])).toEqual(['ACK', 'BYE'])
})

test('a peer that invents tags fills no memory, and leaves none', () => {
  const server = new VirtualServer()
  const request = invite(server)
  for (let tag = 0; tag < 100; tag++) answer(server, request, 180, { toTag: `t${tag}` })
  expect(server.core.stats()['dialogs']).toBe(1)
  // The last of them are not known apart.
  const named = prack(server, request, 1, ['To: <sip:b@c>;tag=t99'])
  expect(header(named, 'To')).toContain('tag=t0')
  answer(server, named, 481)
  answer(server, request, 486)
  server.advance(64_000)
  expect(server.core.stats()).toMatchObject({ dialogs: 0, clientTransactions: 0, deadlines: 0 })
})
