/** Callees of the process before this one: they ring and answer after a crash. */
import { expect, test } from 'vitest'
import { answer, calleeSdp, called, dialogIdOf, invite } from '../../../../support/callee.ts'
import { next, restored, savedDialog, startLine } from '../../../../support/restarted-core.ts'
import { VirtualServer, callee, header, responseOf } from '../../../../support/sip-core.ts'

const contact = 'Contact: <sip:bob@192.0.2.20:5070>'

/** An INVITE of a process that has crashed since, and the next process. */
function crashed(isToBeEnded: () => boolean = () => true) {
  const request = invite(new VirtualServer())
  const server = next()
  server.core.endOrphanedInvites(isToBeEnded, server.now)
  return { request, server }
}

const texts = (server: VirtualServer): string[] => server.takeSent().map(({ text }) => text)

test('who rings gets CANCEL once, and its 487 is acknowledged', () => {
  const { request, server } = crashed()
  answer(server, request, 100)
  expect(texts(server)).toEqual([])
  answer(server, request, 180)
  const [cancel = '', ...others] = texts(server)
  expect(others).toEqual([])
  expect(startLine(cancel)).toBe('CANCEL sip:bob@192.0.2.20 SIP/2.0')
  for (const name of ['Via', 'From', 'To', 'Call-ID'])
    expect(header(cancel, name)).toBe(header(request, name))
  expect(header(cancel, 'CSeq')).toBe('1 CANCEL')
  answer(server, request, 183)
  answer(server, cancel, 200)
  expect(texts(server)).toEqual([])
  answer(server, request, 487)
  const [ack = ''] = texts(server)
  expect([startLine(ack), header(ack, 'Via')]).toEqual([
    'ACK sip:bob@192.0.2.20 SIP/2.0',
    header(request, 'Via'),
  ])
  expect(header(ack, 'To')).toContain(';tag=bt')
})

test('who answers gets ACK and BYE in the dialog that the answer makes', () => {
  const { request, server } = crashed()
  const lines = [contact, 'Record-Route: <sip:192.0.2.2;lr>', 'Record-Route: <sip:192.0.2.1;lr>']
  server.receive(responseOf(request, 200, { toTag: 'bt', extra: lines, body: calleeSdp }), callee)
  const sent = server.takeSent()
  const [ack = '', bye = ''] = sent.map(({ text }) => text)
  expect([startLine(ack), startLine(bye)]).toEqual([
    'ACK sip:bob@192.0.2.20:5070 SIP/2.0',
    'BYE sip:bob@192.0.2.20:5070 SIP/2.0',
  ])
  expect([header(ack, 'CSeq'), header(bye, 'CSeq')]).toEqual(['1 ACK', '2 BYE'])
  for (const text of [ack, bye]) {
    expect(header(text, 'From')).toBe(header(request, 'From'))
    expect(header(text, 'To')).toBe(`${header(request, 'To')};tag=bt`)
    expect(text).toContain('Route: <sip:192.0.2.1;lr>\r\nRoute: <sip:192.0.2.2;lr>\r\n')
  }
  expect(sent.every(({ flow }) => flow.address === '192.0.2.20' && flow.port === 5060)).toBe(true)
  server.receive(responseOf(request, 200, { toTag: 'bt', extra: lines, body: calleeSdp }), callee)
  expect(texts(server)).toEqual([ack])
  answer(server, bye, 200)
  server.advance(60_000)
  expect(server.core.stats()).toMatchObject({ dialogs: 0, clientTransactions: 0, deadlines: 0 })
})

test('a 2xx again in a dialog that was restored is acknowledged, and the dialog lives on', () => {
  const first = new VirtualServer()
  const request = called(first, [])
  const server = restored(savedDialog(first, dialogIdOf(request)))
  server.core.endOrphanedInvites(() => true, server.now)
  answer(server, request, 180)
  expect(texts(server)).toEqual([])
  answer(server, request, 200, { body: calleeSdp })
  const [ack = '', ...others] = texts(server)
  expect([header(ack, 'CSeq'), others]).toEqual(['1 ACK', []])
  answer(server, request, 200, { toTag: 'other', body: calleeSdp })
  expect(texts(server).map((text) => header(text, 'CSeq'))).toEqual(['1 ACK', '2 BYE'])
  expect(server.core.stats()).toMatchObject({ dialogs: 1 })
})

test.each([
  ['from a source that is not known', (text: string) => text, (): boolean => false],
  ['to another method', (text: string) => text.replace('1 INVITE', '1 OPTIONS')],
  ['to another host', (text: string) => text.replace('UDP 198.51.100.10', 'UDP 198.51.100.11')],
  [
    'to another port',
    (text: string) => text.replace('UDP 198.51.100.10:5060', 'UDP 198.51.100.10'),
  ],
  ['with a branch that is not made here', (text: string) => text.replace('z9hG4bK', 'z9hG4bK-')],
  [
    'that goes on to another hop',
    (text: string) => text.replace('From:', 'Via: SIP/2.0/UDP 192.0.2.9;branch=z9hG4bK1\r\nFrom:'),
  ],
])('a response %s is dropped', (_what, change, isToBeEnded = (): boolean => true) => {
  const { request, server } = crashed(isToBeEnded)
  for (const status of [180, 200]) {
    const response = responseOf(request, status, { toTag: 'bt', extra: [contact] })
    server.receive(change(response), callee)
  }
  expect(server.takeSent()).toEqual([])
})

test('so much is done in a second, and nothing after 32', () => {
  const { request, server } = crashed()
  const answers = (count: number, name: string): number => {
    for (let number = 0; number < count; number++)
      answer(server, request.replace('z9hG4bK', `z9hG4bK${name}${number}`), 180)
    return texts(server).filter((text) => text.startsWith('CANCEL ')).length
  }
  expect(answers(300, 'a')).toBe(200)
  server.advance(1_000)
  server.takeSent()
  expect(answers(50, 'b')).toBe(50)
  server.advance(31_000)
  server.takeSent()
  expect(answers(50, 'c')).toBe(0)
})
