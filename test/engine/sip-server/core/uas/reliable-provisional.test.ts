/** Provisional responses that must arrive: RFC 3262 as UAS. */
import { expect, test } from 'vitest'
import { invited } from '../../../../support/caller.ts'
import { VirtualServer, header, requestOf, sdp, sip, tagIn } from '../../../../support/sip-core.ts'

const supported = 'Supported: 100rel'
const required = 'Require: 100rel'

/** An INVITE that waits for its answer; returns its transaction id. */
const ringing = (server: VirtualServer, lines: string[] = [supported]): string =>
  invited(server, requestOf('INVITE', { body: sdp, extra: lines }))

/** The application's response; returns what left, and the reply. */
function respond(
  server: VirtualServer,
  transactionId: string,
  status: number,
  { lines = [required], body = '' }: { lines?: string[]; body?: string } = {},
) {
  server.command(`sip|${transactionId}|\r\n${sip(`SIP/2.0 ${status} X`, lines, body)}`)
  const reply = server.takeDelivered().find(({ kind }) => kind === 'response')
  return { sent: server.takeSent().map(({ text }) => text), reply }
}

const rseqOf = (text: string | undefined): number => Number(header(text ?? '', 'RSeq'))

/** The caller's PRACK for a response; `overrides` for one that is wrong. */
function prack(server: VirtualServer, text: string | undefined, rack?: string, cseq = 2): void {
  const toTag = tagIn(header(text ?? '', 'To'))
  const extra = [`RAck: ${rack ?? `${rseqOf(text)} 1 INVITE`}`]
  server.receive(requestOf('PRACK', { toTag, cseq, branch: `z9hG4bK-p${cseq}`, extra }))
}

/** The application answers the request that it was given last. */
function answerPrack(server: VirtualServer): void {
  const event = server.takeDelivered().at(-1)
  server.command(`sip|${event?.transactionId ?? ''}|\r\n${sip('SIP/2.0 200 OK', [])}`)
}

test('it carries RSeq, Require and Contact, and is repeated with doubling back-off until its PRACK', () => {
  const server = new VirtualServer()
  const { sent } = respond(server, ringing(server), 183, { body: sdp })
  const [text = ''] = sent
  expect(header(text, 'Require')).toBe('100rel')
  expect(header(text, 'Contact')).toBe('<sip:18005551212@198.51.100.10:5060>')
  expect(rseqOf(text)).toBeGreaterThan(0)
  expect(rseqOf(text)).toBeLessThan(2 ** 31)
  const start = server.now
  server.advance(8_000)
  const repeated = server.takeSent()
  expect(repeated.map(({ at }) => at - start)).toEqual([500, 1_500, 3_500, 7_500])
  expect(new Set(repeated.map((message) => message.text))).toEqual(new Set([text]))
  prack(server, text)
  server.advance(100_000)
  expect(server.takeSent().map((message) => message.text.slice(0, 11))).not.toContain('SIP/2.0 183')
})

test('a caller that requires it gets every provisional so, whatever the application asked for', () => {
  const server = new VirtualServer()
  const { sent } = respond(server, ringing(server, [required]), 180, { lines: [] })
  expect([header(sent[0] ?? '', 'Require'), rseqOf(sent[0]) > 0]).toEqual(['100rel', true])
})

test('a caller that does not know it is not sent one: the application is told', () => {
  const server = new VirtualServer()
  const { sent, reply } = respond(server, ringing(server, []), 180)
  expect(sent).toEqual([])
  const reason = 'Remote endpoint does not support 100rel'
  expect(reply).toMatchObject({ verdict: 'NOK', reason })
})

test('the next one waits for the PRACK of the first, and counts on by one', () => {
  const server = new VirtualServer()
  const transactionId = ringing(server)
  const first = respond(server, transactionId, 180)
  const second = respond(server, transactionId, 183, { body: sdp })
  expect([first.sent.length, second.sent.length, second.reply?.verdict]).toEqual([1, 0, 'OK'])
  prack(server, first.sent[0])
  const [next] = server.takeSent()
  expect(next?.text.startsWith('SIP/2.0 183')).toBe(true)
  expect(rseqOf(next?.text)).toBe(rseqOf(first.sent[0]) + 1)
})

test.each([
  ['another number', (rseq: number) => `${rseq + 1} 1 INVITE`],
  ['another INVITE', (rseq: number) => `${rseq} 7 INVITE`],
  ['another method', (rseq: number) => `${rseq} 1 UPDATE`],
])('a PRACK for %s gets 481 and does not stop the repetition', (_name, rackOf) => {
  const server = new VirtualServer()
  const { sent } = respond(server, ringing(server), 180)
  prack(server, sent[0], rackOf(rseqOf(sent[0])))
  expect(server.takeStartLines()).toEqual(['SIP/2.0 481 Call/Transaction Does Not Exist'])
  expect(server.takeDelivered()).toEqual([])
  server.advance(500)
  expect(server.takeStartLines()).toEqual(['SIP/2.0 180 X'])
})

test('the 200 does not overtake a session description, and follows the answer to its PRACK', () => {
  const server = new VirtualServer()
  const transactionId = ringing(server)
  const early = respond(server, transactionId, 183, { body: sdp })
  const ok = respond(server, transactionId, 200, { lines: [], body: sdp })
  expect(ok).toEqual({ sent: [], reply: undefined })
  prack(server, early.sent[0])
  expect(server.takeSent()).toEqual([])
  answerPrack(server)
  expect(server.takeSent().map(({ text }) => header(text, 'CSeq'))).toEqual(['2 PRACK', '1 INVITE'])
  expect(server.takeDelivered().map(({ verdict }) => verdict)).toEqual(['OK', 'OK'])
})

test('without PRACK the INVITE ends with 503 after 64*T1, and the application as with a CANCEL', () => {
  const server = new VirtualServer()
  const transactionId = ringing(server)
  respond(server, transactionId, 183, { body: sdp })
  respond(server, transactionId, 200, { lines: [], body: sdp })
  server.advance(32_000)
  const lines = server.takeStartLines()
  expect(lines.at(-1)).toBe('SIP/2.0 503 Service Unavailable')
  const events = server.takeDelivered()
  expect(events.find(({ sip: text }) => text.startsWith('CANCEL'))?.transactionId).toBe(
    transactionId,
  )
  // The answer that was held is refused.
  expect(events.some(({ verdict }) => verdict === 'NOK')).toBe(true)
  expect(server.core.stats()).toMatchObject({ dialogs: 0, inboundRequests: 0 })
})

test('CANCEL ends the repetition, and what was waiting is never sent', () => {
  const server = new VirtualServer()
  const transactionId = ringing(server)
  respond(server, transactionId, 183, { body: sdp })
  respond(server, transactionId, 180)
  server.receive(requestOf('CANCEL', { branch: 'z9hG4bK-INVITE-1' }))
  server.receive(requestOf('ACK', { branch: 'z9hG4bK-INVITE-1' }))
  expect(server.takeStartLines()).toEqual(['SIP/2.0 200 OK', 'SIP/2.0 487 Request Terminated'])
  server.advance(100_000)
  expect(server.takeStartLines()).toEqual([])
  expect(server.core.stats()).toMatchObject({ dialogs: 0, deadlines: 0 })
})

test('more than can wait are refused', () => {
  const server = new VirtualServer()
  const transactionId = ringing(server)
  const replies = Array.from(
    { length: 20 },
    () => respond(server, transactionId, 180).reply?.verdict,
  )
  expect(replies.filter((reply) => reply === 'NOK')).toHaveLength(4)
})
