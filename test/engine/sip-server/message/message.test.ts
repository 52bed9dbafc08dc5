import { expect, test } from 'vitest'
import { parseAppMessage } from '../../../../engine/sip-server/message/parse.ts'
import { invite, lines, read } from './sample.ts'

test('compact and lower case names are found by the canonical one', () => {
  const message = read(
    lines(
      'BYE sip:a@b SIP/2.0',
      'v: SIP/2.0/TCP h',
      'f: sip:a@b;tag=1',
      'i: id',
      'X: 90',
      'CSEQ: 2 BYE',
      '',
      '',
    ),
  )
  expect([message.callId, message.fromTag, message.via?.protocol]).toEqual(['id', '1', 'TCP'])
  expect(message.get('session-expires')).toBe('90')
  expect(message.entries().map(([name]) => name)).toEqual([
    'Via',
    'From',
    'Call-ID',
    'Session-Expires',
    'CSeq',
  ])
})

test('an unknown header keeps its spelling and is found in any case', () => {
  const message = read(invite(['X-Call-UUID: 1', 'x-call-uuid: 2']))
  expect([message.get('x-CALL-uuid'), message.has('X-CALL-UUID')]).toEqual(['1', true])
  expect(message.all('X-Call-UUID')).toEqual(['1', '2'])
  expect(message.entries().slice(-2)).toEqual([
    ['X-Call-UUID', '1'],
    ['x-call-uuid', '2'],
  ])
  expect([message.get('X-Other'), message.has('X-Other')]).toEqual([undefined, false])
})

test('a list runs over all lines of a header, and commas in quotes and brackets divide nothing', () => {
  const message = read(
    invite([
      'Contact: "A, B" <sip:a@b;x=1,2>, <sip:c@d>',
      'Contact: sip:e@f',
      'Supported: 100rel,,timer ,',
    ]),
  )
  expect(message.list('Contact')).toEqual(['"A, B" <sip:a@b;x=1,2>', '<sip:c@d>', 'sip:e@f'])
  expect(message.all('Contact')).toHaveLength(2)
  expect(message.list('Supported')).toEqual(['100rel', 'timer'])
  expect([message.list('Route'), message.contact?.displayName]).toEqual([[], 'A, B'])
})

test('folded lines read as one, blanks around a value are no part of it', () => {
  const message = read(
    invite(['Subject:', '  \t one', '\t two  ', ' ', '   three\t', ' ', 'X-Empty:  ']),
  )
  expect([message.get('Subject'), message.get('X-Empty')]).toEqual(['one two three', ''])
})

test('only a message without folding and compact names may be handed on as it is', () => {
  expect(read(invite(['subject: 1'])).hasPlainHeaders).toBe(true)
  expect(read(invite(['Subject: 1', ' 2'])).hasPlainHeaders).toBe(false)
  expect(read(invite(['s: 1'])).hasPlainHeaders).toBe(false)
  expect(parseAppMessage(invite(['no colon']))?.hasPlainHeaders).toBe(false)
  expect(parseAppMessage(invite().replaceAll('\r\n', '\n'))?.hasPlainHeaders).toBe(false)
})

test('the topmost Via is the first value of the first line', () => {
  const message = read(
    invite(['Via: SIP/2.0/TCP lower']).replace('rport', 'rport, SIP/2.0/TLS next'),
  )
  expect([message.via?.host, message.via?.port, message.via?.params.get('rport')]).toEqual([
    '192.0.2.1',
    5060,
    '',
  ])
  expect(message.list('Via')).toHaveLength(3)
})

test('absent and unreadable fields read as undefined or empty', () => {
  const message = read(
    lines('OPTIONS sip:a@b SIP/2.0', 'Via: ?', 'From: <', 'CSeq: x', 'Contact: *', '', ''),
  )
  expect([message.via, message.from, message.to, message.cseq, message.contact]).toEqual([
    undefined,
    undefined,
    undefined,
    undefined,
    undefined,
  ])
  expect([message.fromTag, message.toTag, message.callId, message.maxForwards]).toEqual([
    '',
    '',
    '',
    undefined,
  ])
})

test('a response has the method of its CSeq', () => {
  const ringing = invite().replace(/^.*/, 'SIP/2.0 180 Ringing')
  expect(read(ringing)).toMatchObject({
    kind: 'response',
    status: 180,
    reason: 'Ringing',
    method: 'INVITE',
  })
  expect(read(ringing.replace('1 INVITE', 'x')).method).toBe('')
})
