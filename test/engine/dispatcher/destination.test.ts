import { expect, test } from 'vitest'
import {
  formatDestination,
  isSameDestination,
  parseDestination,
} from '../../../engine/dispatcher/destination-set.ts'

test('a node compiles into the destination string of the specification', () => {
  expect(formatDestination({ host: '10.0.0.5', port: 5060, transport: 'udp' })).toBe(
    'sip:10.0.0.5:5060;transport=udp',
  )
  expect(formatDestination({ host: '2001:db8::5', port: 5070, transport: 'tcp' })).toBe(
    'sip:[2001:db8::5]:5070;transport=tcp',
  )
})

test.each([
  'sip:pbx.example.com:5060;transport=udp',
  'sip:pbx.example.com:5060',
  'sip:pbx.example.com',
  'SIP:PBX.Example.COM;Transport=UDP',
  'sip:pbx.example.com.;lr',
  '<sip:pbx.example.com>',
  '  sip:pbx.example.com ',
])('%s names the node pbx.example.com:5060 over UDP', (text) => {
  const node = { host: 'PBX.example.com', port: 5060, transport: 'udp' } as const
  const parsed = parseDestination(text)
  expect(parsed && isSameDestination(parsed, node)).toBe(true)
})

test.each(['sip:pbx.example.com:5061', 'sip:pbx.example.com;transport=tcp', 'sip:pbx.example.org'])(
  '%s is another node',
  (text) => {
    const node = { host: 'pbx.example.com', port: 5060, transport: 'udp' } as const
    const parsed = parseDestination(text)
    expect(parsed && isSameDestination(parsed, node)).toBe(false)
  },
)

test.each([
  '',
  'pbx.example.com',
  'sips:pbx.example.com',
  'sip:user@pbx.example.com',
  'sip:pbx.example.com:0',
  'sip:pbx.example.com:65536',
  'sip:pbx.example.com:5060;transport=sctp',
  'sip:pbx example.com',
  `sip:${'a'.repeat(400)}`,
])('"%s" is no destination', (text) => {
  expect(parseDestination(text)).toBeUndefined()
})
