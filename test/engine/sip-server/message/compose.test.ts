import { expect, test } from 'vitest'
import { composeRequest, composeResponse } from '../../../../engine/sip-server/message/message.ts'

test('headers are known by any spelling of their names, and absent values are no headers', () => {
  const message = composeRequest('INVITE', 'sip:b@h', {
    'call-id': 'c',
    f: '<sip:a@h>',
    Route: '<sip:p1>, <sip:p2>',
    'X-Own': '1',
    subject: undefined,
  })
  expect(message.entries().map(([name]) => name)).toEqual(['Call-ID', 'From', 'Route', 'X-Own'])
  expect([message.get('from'), message.get('Call-ID')]).toEqual(['<sip:a@h>', 'c'])
  expect([message.has('Subject'), message.has('route')]).toEqual([false, true])
  expect(message.list('Route')).toEqual(['<sip:p1>', '<sip:p2>'])
  expect(message.list('Path')).toEqual([])
  expect(message).toMatchObject({ kind: 'request', method: 'INVITE', uri: 'sip:b@h', body: '' })
})

test('a response has a status and a reason', () => {
  const message = composeResponse(486, 'Busy', {}, 'text')
  expect(message).toMatchObject({ kind: 'response', status: 486, reason: 'Busy', body: 'text' })
})
