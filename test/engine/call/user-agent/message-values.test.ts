import { expect, test } from 'vitest'
import { headersOf } from '../../../../engine/call/user-agent/requests.ts'
import { parseAppMessage } from '../../../../engine/sip-server/message/parse.ts'

function headers(...lines: readonly string[]) {
  const message = parseAppMessage(['MESSAGE sip:b@h SIP/2.0', ...lines, '', ''].join('\r\n'))
  if (message === undefined) throw new Error('no message')
  return headersOf(message)
}

test('names are in small letters, those of private headers and Diversion as they were sent', () => {
  const lines = ['Call-ID: c', 'f: <sip:a@h>', 'My-Header: 1', 'X-Own: 2', 'P-Own: 3']
  const read = headers(...lines, 'P-Asserted-Identity: <sip:a@h>', 'Diversion: <sip:d@h>')
  expect(Object.keys(read)).toEqual([
    'call-id',
    'from',
    'my-header',
    'X-Own',
    'P-Own',
    'p-asserted-identity',
    'Diversion',
  ])
  // Once more: now some names are known.
  expect(headers('Call-ID: c', 'My-Header: 1')).toEqual({ 'call-id': 'c', 'my-header': '1' })
})

test('repeated headers are one value', () => {
  const read = headers('Supported: timer', 'k: replaces', 'X-Own: 1', 'X-Own: 2')
  expect(read).toEqual({ supported: 'timer,replaces', 'X-Own': '1,2' })
})
