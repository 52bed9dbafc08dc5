import { expect, test } from 'vitest'
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
