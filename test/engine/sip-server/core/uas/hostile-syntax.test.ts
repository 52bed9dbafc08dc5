/**
 * The reaction to every case of RFC 3261 §8.2, §16.3 and §20, and of RFC 4475, as the sender of the
 * message sees it: one response, the header that says what would do, and nothing for applications.
 */
import { expect, test } from 'vitest'
import { decodeMessage, encodeMessage } from '../../../../../schema/sip/message.ts'
import { acknowledge, answered, invited } from '../../../../support/caller.ts'
import {
  caller,
  header,
  requestOf,
  responseOf,
  sdp,
  tcpCaller,
  VirtualServer,
} from '../../../../support/sip-core.ts'
import { invalidCases } from '../../../../vectors/torture-invalid.ts'
import { semanticCases } from '../../../../vectors/torture-semantics.ts'
import { validCases } from '../../../../vectors/torture-valid.ts'

/** The one answer to a message that no application may see. */
function refusalOf(text: string, server = new VirtualServer(), flow = caller): string {
  server.receive(text, flow)
  expect(server.takeDelivered()).toEqual([])
  const sent = server.takeSent()
  expect(sent).toHaveLength(1)
  return sent[0]?.text ?? ''
}

const statusOf = (text: string): string => /^SIP\/2\.0 (\d{3}) /.exec(text)?.[1] ?? 'none'

const without = (name: string): string =>
  requestOf('OPTIONS').replace(new RegExp(`^${name}:.*\\r\\n`, 'm'), '')

const having = (line: string): string => {
  const name = line.slice(0, line.indexOf(':'))
  return requestOf('OPTIONS').replace(new RegExp(`^${name}:.*\\r\\n`, 'm'), `${line}\r\n`)
}

const invite = (line: string): string =>
  requestOf('INVITE', { body: sdp }).replace(/^Contact:.*$/m, line)

// RFC 3261 §8.1.1 and §20: what every request has, once, and readable. `test/schema/sip/parse.test.ts` has
// every case.
test.each([
  ['no To', without('To')],
  ['two From', requestOf('OPTIONS', { extra: ['From: <sip:mallory@203.0.113.7>;tag=f2'] })],
  ['two Content-Lengths', requestOf('OPTIONS', { extra: ['Content-Length: 7'] })],
  ['a CSeq of another method', having('CSeq: 1 INVITE')],
  ['a Content-Length beyond the datagram', having('Content-Length: 9999')],
  ['a second Via that is none', having('Via: SIP/2.0/UDP 203.0.113.7;branch=z9hG4bK1, nonsense')],
  ['an INVITE without Contact', invite('Subject: no way back')],
  ['an INVITE with the Contact *', invite('Contact: *')],
  ['a REFER without Refer-To', requestOf('REFER')],
  ['a Request-URI with headers', requestOf('OPTIONS', { uri: 'sip:b@198.51.100.10?Subject=x' })],
  ['a Request-URI with a blank in it', requestOf('OPTIONS', { uri: 'sip:b@198.51.100.10; lr' })],
])('400: %s', (_what, text) => {
  expect(statusOf(refusalOf(text))).toBe('400')
})

test('400 by TCP: a stream says how long its messages are', () => {
  const text = requestOf('OPTIONS').replace('Via: SIP/2.0/UDP', 'Via: SIP/2.0/TCP')
  const bare = text.replace(/^Content-Length:.*\r\n/m, '')
  expect(statusOf(refusalOf(bare, undefined, tcpCaller))).toBe('400')
})

// §8.2.1, §21.4.6, §21.5.2.
test.each(['REGISTER', 'PUBLISH'])('405 names what is allowed: %s', (method) => {
  const text = refusalOf(requestOf(method))
  expect(statusOf(text)).toBe('405')
  expect(header(text, 'Allow').split(', ')).toEqual(
    expect.arrayContaining(['INVITE', 'ACK', 'CANCEL', 'BYE', 'OPTIONS']),
  )
})

test('405 for a method that does not exist, too, with what does', () => {
  const text = refusalOf(requestOf('FROBNICATE'))
  expect(statusOf(text)).toBe('405')
  expect(header(text, 'Allow')).toContain('INVITE')
})

// §21.4.11.
test('413: a message announced larger than any that is read', () => {
  const length = having('Content-Length: 99999999').replace('SIP/2.0/UDP', 'SIP/2.0/TCP')
  expect(statusOf(refusalOf(length, undefined, tcpCaller))).toBe('413')
})

// §8.2.3.
test('415 says which bodies and encodings are read', () => {
  const body = requestOf('INVITE', { body: 'hello' }).replace('application/sdp', 'text/plain')
  const byType = refusalOf(body)
  expect([statusOf(byType), header(byType, 'Accept')]).toEqual([
    '415',
    'application/sdp, multipart/mixed',
  ])
  const extra = ['Content-Encoding: gzip']
  const byEncoding = refusalOf(requestOf('INVITE', { body: sdp, extra }))
  expect([statusOf(byEncoding), header(byEncoding, 'Accept-Encoding')]).toEqual(['415', 'identity'])
})

// §8.2.2.1.
test.each(['http://example.com', 'mailto:bob@example.com', 'unknownScheme:totallyopaque'])(
  '416: %s',
  (uri) => {
    expect(statusOf(refusalOf(requestOf('OPTIONS', { uri })))).toBe('416')
  },
)

// §8.2.2.3.
test('420 names what is not supported, and only that', () => {
  const text = refusalOf(requestOf('OPTIONS', { extra: ['Require: timer, unheard-of'] }))
  expect([statusOf(text), header(text, 'Unsupported')]).toEqual(['420', 'unheard-of'])
})

// §12.2.2, §15.1.2, §9.2.
test.each(['BYE', 'INVITE', 'INFO', 'UPDATE', 'MESSAGE', 'OPTIONS', 'REFER'])(
  '481: %s in a dialog that does not exist',
  (method) => {
    const extra = method === 'REFER' ? ['Refer-To: <sip:x@y>'] : []
    expect(statusOf(refusalOf(requestOf(method, { toTag: 'unknown', extra })))).toBe('481')
  },
)

test.each(['BYE', 'UPDATE'])('481: %s outside any dialog', (method) => {
  expect(statusOf(refusalOf(requestOf(method)))).toBe('481')
})

test('481: CANCEL of nothing', () => {
  expect(statusOf(refusalOf(requestOf('CANCEL')))).toBe('481')
})

test('481: a dialog of the same Call-ID with other tags is another one', () => {
  const server = new VirtualServer()
  const toTag = answered(server)
  acknowledge(server, toTag)
  server.takeSent()
  server.takeDelivered()
  const bye = requestOf('BYE', { toTag, fromTag: 'mallory', cseq: 2 })
  expect(statusOf(refusalOf(bye, server))).toBe('481')
  expect(server.core.stats()['dialogs']).toBe(1)
})

// §8.2.2.2.
test.each(['INVITE', 'OPTIONS', 'MESSAGE', 'SUBSCRIBE', 'REFER'])(
  '482: the same %s by another way, while the first one is here',
  (method) => {
    const extra = ['Event: presence', 'Refer-To: <sip:x@y>']
    const copy = (branch: string): string => requestOf(method, { branch, extra })
    const server = new VirtualServer()
    server.receive(copy('z9hG4bK-one-way'))
    expect(server.takeDelivered()).toHaveLength(1)
    server.takeSent()
    expect(statusOf(refusalOf(copy('z9hG4bK-other-way'), server))).toBe('482')
    // A copy by the same way is a retransmission, and another number another request.
    server.receive(copy('z9hG4bK-one-way'))
    server.receive(requestOf(method, { branch: 'z9hG4bK-next', cseq: 2, extra }))
    expect(server.takeDelivered()).toHaveLength(1)
  },
)

// §7.1, §21.5.6.
test.each(['SIP/1.0', 'SIP/3.0', 'SIP/7.0'])('505: %s', (version) => {
  const text = requestOf('OPTIONS').replace(/SIP\/2\.0/, version)
  expect(statusOf(refusalOf(text))).toBe('505')
})

test('an ACK is never answered, whatever is wrong with it', () => {
  const server = new VirtualServer()
  for (const text of [
    requestOf('ACK'),
    requestOf('ACK', { toTag: 'unknown' }),
    requestOf('ACK').replace(/^CSeq:.*$/m, 'CSeq: x'),
    requestOf('ACK', { uri: 'http://x' }),
    requestOf('ACK', { extra: ['Require: unheard-of'] }),
    requestOf('ACK').replace('SIP/2.0', 'SIP/3.0'),
  ])
    server.receive(text)
  expect(server.takeSent()).toEqual([])
  expect(server.takeDelivered()).toEqual([])
})

test('a response that belongs to nothing, or is broken, is dropped without a word', () => {
  const server = new VirtualServer()
  server.receive(responseOf(requestOf('INVITE'), 200))
  server.receive(responseOf(requestOf('INVITE'), 200).replace(/^CSeq:.*$/m, 'CSeq: ?'))
  server.receive('SIP/2.0 200\r\n\r\n')
  expect(server.takeSent()).toEqual([])
  expect(server.takeDelivered()).toEqual([])
})

test.each([...validCases, ...invalidCases, ...semanticCases])(
  'RFC 4475 $name: the sender gets what its message deserves, and the next call is served',
  ({ text, verdict }) => {
    const server = new VirtualServer()
    server.receive(decodeMessage(encodeMessage(text)))
    const delivered = server.takeDelivered()
    const statuses = server.takeSent().map((sent) => statusOf(sent.text))
    if (verdict === 'dropped' || text.startsWith('SIP/2.0'))
      expect([statuses, delivered]).toEqual([[], []])
    else if (verdict !== 'accepted')
      expect([statuses, delivered]).toEqual([[String(verdict.status)], []])
    // A readable request is for an application, or is refused by the layer that knows why.
    else if (delivered.length === 0) expect(statuses.join()).toMatch(/^(400|405|415|420|481|501)$/)
    const call = requestOf('INVITE', { callId: 'after', branch: 'z9hG4bK-after', body: sdp })
    expect(invited(server, call)).not.toBe('')
  },
)

test.each([
  ['bext01', '420'],
  ['invut', '415'],
  // Read as RFC 2543 wrote it; but without a Contact there is no way back into its dialog.
  ['inv2543', '400'],
])('RFC 4475 %s: %s', (name, status) => {
  const all = [...invalidCases, ...semanticCases]
  const text = all.find((each) => each.name.startsWith(`${name} `))?.text ?? ''
  const server = new VirtualServer()
  server.receive(text)
  expect(server.takeSent().map((sent) => statusOf(sent.text))).toEqual([status])
})
