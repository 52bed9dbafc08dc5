import { expect, test } from 'vitest'
import { decodeCommand } from '../../../../engine/sip-server/wire/command.ts'

const invite = 'INVITE sip:b@192.0.2.20 SIP/2.0\r\nContent-Length: 0\r\n\r\n'

test('authenticate carries a secret and tags', () => {
  expect(decodeCommand('7e5c|authenticate|cymru|sbc,east')).toEqual({
    id: '7e5c',
    command: { kind: 'authenticate', secret: 'cymru', tags: ['sbc', 'east'] },
  })
  expect(decodeCommand('7e5c|authenticate|cymru|').command).toMatchObject({ tags: [] })
})

test('verbs are lower case, however they are written', () => {
  expect(decodeCommand('1|route|INVITE').command).toEqual({ kind: 'route', verb: 'invite' })
  expect(decodeCommand('1|remove_route|cdr:start').command).toEqual({
    kind: 'remove-route',
    verb: 'cdr:start',
  })
  expect(decodeCommand('1|ping')).toEqual({ id: '1', command: { kind: 'ping' } })
})

test('a sip command has a transaction, a dialog, a next hop and a message', () => {
  expect(decodeCommand(`1|sip|||sip:192.0.2.9:5070;transport=tcp\r\n${invite}`).command).toEqual({
    kind: 'sip',
    transactionId: '',
    dialogId: '',
    routeUrl: 'sip:192.0.2.9:5070;transport=tcp',
    message: expect.objectContaining({ text: invite }),
  })
  expect(decodeCommand(`1|sip|t1|c1@203.0.113.7;from-tag=f1\r\n${invite}`).command).toMatchObject({
    transactionId: 't1',
    dialogId: 'c1@203.0.113.7;from-tag=f1',
    routeUrl: '',
  })
})

test('proxy names its options, timeouts in milliseconds and destinations', () => {
  const leader =
    '5|proxy|t4|remainInDialog|fullResponse||serial|2s|1500ms|sip:192.0.2.20|sip:192.0.2.21'
  expect(decodeCommand(`${leader}\r\n${invite}`)).toEqual({
    id: '5',
    command: {
      kind: 'proxy',
      transactionId: 't4',
      remainInDialog: true,
      fullResponse: true,
      followRedirects: false,
      simultaneous: false,
      provisionalTimeoutMs: 2_000,
      finalTimeoutMs: 1_500,
      destinations: ['sip:192.0.2.20', 'sip:192.0.2.21'],
      message: expect.objectContaining({ text: invite }),
    },
  })
})

test.each([
  ['', ''],
  ['1', '1'],
  ['1|dance', '1'],
  ['1|route', '1'],
  ['1|remove_route|', '1'],
  ['1|sip|', '1'],
  ['1|sip||', '1'],
  ['1|sip||\r\n', '1'],
  ['1|proxy|t4||||serial|||', '1'],
  ['1|proxy|||||serial|||sip:a', '1'],
])('%j is a problem with a reason and the id to answer', (payload, id) => {
  const decoded = decodeCommand(payload)
  expect(decoded).toMatchObject({ id, command: undefined })
  expect(decoded).toHaveProperty('problem')
})
