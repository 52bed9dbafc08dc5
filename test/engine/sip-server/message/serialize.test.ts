import { expect, test } from 'vitest'
import {
  ackForFailure,
  cancelFor,
  responseHeaders,
  serialize,
} from '../../../../engine/sip-server/message/serialize.ts'
import { invite, lines, read } from './sample.ts'

test('Content-Length counts the bytes of the body, whatever was given', () => {
  const text = serialize({
    startLine: 'SIP/2.0 200 OK',
    headers: [
      ['Content-Length', '99'],
      ['l', '98'],
      ['X-Length', '1'],
    ],
    body: 'é\udcff',
  })
  expect(text).toBe(lines('SIP/2.0 200 OK', 'X-Length: 1', 'Content-Length: 3', '', 'é\udcff'))
})

test('a response takes Via, From, To, Call-ID and CSeq from its request and tags To', () => {
  const request = read(invite(['Via: SIP/2.0/TCP next', 'Record-Route: <sip:p;lr>', 'Subject: x']))
  expect(responseHeaders(request, { toTag: 't1', withRecordRoute: true })).toEqual([
    ['Via', 'SIP/2.0/UDP 192.0.2.1:5060;branch=z9hG4bKa1;rport'],
    ['From', '"Alice" <sip:alice@example.com>;tag=f1'],
    ['To', '<sip:bob@example.com>;tag=t1'],
    ['Call-ID', 'c1@192.0.2.1'],
    ['CSeq', '1 INVITE'],
    ['Via', 'SIP/2.0/TCP next'],
    ['Record-Route', '<sip:p;lr>'],
  ])
  expect(responseHeaders(request, {}).map(([name]) => name)).not.toContain('Record-Route')
})

test('a To tag of the request is kept', () => {
  const request = read(invite().replace('To: <sip:bob@example.com>', 'To: <sip:b@c>;tag=old'))
  expect(responseHeaders(request, { toTag: 'new' })).toContainEqual(['To', '<sip:b@c>;tag=old'])
})

test('only the topmost Via is replaced', () => {
  const request = read(invite(['Via: C']).replace('rport', 'rport, B'))
  const vias = responseHeaders(request, { topVia: 'A' }).filter(([name]) => name === 'Via')
  expect(vias).toEqual([
    ['Via', 'A, B'],
    ['Via', 'C'],
  ])
  expect(responseHeaders(read(invite().replace('Via', 'X')), { topVia: 'A' })).toHaveLength(4)
})

const sent = invite([
  'Via: SIP/2.0/TCP behind',
  'Route: <sip:p1;lr>',
  'Route: <sip:p2;lr>',
  'Proxy-Authorization: Digest x',
  'Require: 100rel',
])

test('the ACK of a failure repeats the hop of its INVITE and the To of the response', () => {
  const response = read(
    invite()
      .replace(/^.*/, 'SIP/2.0 486 Busy Here')
      .replace('example.com>\r\nCall', 'b>;tag=x\r\nCall'),
  )
  expect(ackForFailure(sent, response)).toBe(
    lines(
      'ACK sip:bob@example.com SIP/2.0',
      'Via: SIP/2.0/UDP 192.0.2.1:5060;branch=z9hG4bKa1;rport',
      'Max-Forwards: 70',
      'Route: <sip:p1;lr>',
      'Route: <sip:p2;lr>',
      'From: "Alice" <sip:alice@example.com>;tag=f1',
      'To: <sip:bob@b>;tag=x',
      'Call-ID: c1@192.0.2.1',
      'CSeq: 1 ACK',
      'Proxy-Authorization: Digest x',
      'Content-Length: 0',
      '',
      '',
    ),
  )
})

test('the CANCEL of an INVITE repeats its hop, To and number, and requires nothing', () => {
  expect(cancelFor(sent)).toBe(
    lines(
      'CANCEL sip:bob@example.com SIP/2.0',
      'Via: SIP/2.0/UDP 192.0.2.1:5060;branch=z9hG4bKa1;rport',
      'Max-Forwards: 70',
      'Route: <sip:p1;lr>',
      'Route: <sip:p2;lr>',
      'From: "Alice" <sip:alice@example.com>;tag=f1',
      'To: <sip:bob@example.com>',
      'Call-ID: c1@192.0.2.1',
      'CSeq: 1 CANCEL',
      'Content-Length: 0',
      '',
      '',
    ),
  )
})

test('nothing follows from a text that is no INVITE', () => {
  const withoutTo = read(lines('SIP/2.0 486 Busy', 'CSeq: 1 INVITE', '', ''))
  expect([cancelFor('?'), ackForFailure(sent, withoutTo)]).toEqual([undefined, undefined])
})
