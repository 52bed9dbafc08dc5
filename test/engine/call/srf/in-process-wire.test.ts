import { expect, test } from 'vitest'
import { brief } from '../../../../engine/call/srf/in-process-wire.ts'

const sent = '9|response|i7|OK|network|120|udp|192.0.2.1|5060|time|id|Msg sent:|'

test('of what was sent the library gets what it reads, and the whole body', () => {
  const lines = [
    ...['INVITE sip:b SIP/2.0', 'Via: SIP/2.0/UDP h', 'From: <sip:a>;tag=1', 'to: <sip:b>'],
    ...['i: call', 'Max-Forwards: 70', 'CSeq: 1 INVITE', 'Contact: <sip:a@h>', 'Supported: timer'],
    ...['Content-Length: 30'],
  ]
  const body = '\r\n\r\nv=0\r\nVia: no header\r\n\r\nlast'
  const kept = [...[0, 2, 3, 4, 6, 7].map((line) => lines[line])]
  expect(brief(`${sent}\r\n${lines.join('\r\n')}${body}`)).toBe(
    `${sent}\r\n${kept.join('\r\n')}${body}`,
  )
})

test.each([
  '9|sip|network|120|udp|192.0.2.1|5060|time|id|\r\nBYE sip:a SIP/2.0\r\nVia: v\r\n\r\n',
  '9|response|i7|NOK|unable to find dialog',
  `${sent}\r\n`,
  '',
])('everything else passes as it is (%j)', (payload) => {
  expect(brief(payload)).toBe(payload)
})
