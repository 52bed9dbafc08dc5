import { expect, test } from 'vitest'
import { parseVia } from '../../../../engine/sip-server/message/fields.ts'
import { paramsOf } from './sample.ts'

test('a Via has transport, sent-by, branch and parameters', () => {
  expect(
    parseVia(
      'SIP/2.0/udp Host.example.com:5070;rport=1;received=192.0.2.7;maddr=224.0.1.75;ttl=1;branch=z9hG4bKx',
    ),
  ).toEqual({
    protocol: 'UDP',
    host: 'Host.example.com',
    port: 5070,
    branch: 'z9hG4bKx',
    params: paramsOf([
      ['rport', '1'],
      ['received', '192.0.2.7'],
      ['maddr', '224.0.1.75'],
      ['ttl', '1'],
      ['branch', 'z9hG4bKx'],
    ]),
  })
})

test('blanks may stand around slashes and the colon', () => {
  expect(parseVia('sip / 2.0 / WSS   [2001:db8::9:1] : 5061 ; rport')).toMatchObject({
    protocol: 'WSS',
    host: '2001:db8::9:1',
    port: 5061,
    branch: '',
    params: paramsOf([['rport', '']]),
  })
})

test.each([
  '',
  'SIP/2.0',
  'SIP/2.0/UDP',
  'SIP/2.0/UDP ',
  'SIP/2.0/UDP;branch=x',
  'HTTP/2.0/UDP h',
  'SIP/x/UDP h',
  'SIP/2.0/UDP h:0',
  'SIP/2.0/UDP h:65536',
  'SIP/2.0/UDP h:',
  'SIP/2.0/UDP h:5x',
  'SIP/2.0/UDP h i',
  'SIP/2.0/UDP 2001:db8::1',
  'SIP/2.0/UDP [::1',
  'SIP/2.0/UDP [x]',
  'SIP/2.0/UDP h;branch=a;branch=b',
  'SIP/2.0/U/P h',
  'SIP/2.0/UDP :5060',
  'SIP/2.0/UDP [::1]5060',
])('%s is no Via', (value) => {
  expect(parseVia(value)).toBeUndefined()
})

test('the Via of another version is read, so that its sender can be told', () => {
  expect(parseVia('SIP/7.0/UDP h;branch=z9hG4bKx')).toMatchObject({ host: 'h', branch: 'z9hG4bKx' })
})
