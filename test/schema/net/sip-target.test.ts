import { expect, test } from 'vitest'
import { namesBehind, sipTarget } from '../../../schema/net/sip-target.ts'

test.each([
  ['sip:bob@GW.example.:5070;transport=TCP', 'gw.example', 5070, 'tcp', false],
  ['"Gate" <sips:gw.example?x=y>;q=1', 'gw.example', 0, undefined, true],
  ['sip:[2001:DB8::1]', '2001:db8::1', 0, undefined, false],
  ['sip:{call_uuid}@gw.example;mode={mode}', 'gw.example', 0, undefined, false],
  ['sip:a@gw.example;maddr=192.0.2.1', '192.0.2.1', 0, undefined, false],
])('%s leads to %s', (uri, host, port, transport, isSecure) => {
  expect(sipTarget(uri)).toEqual({ host, port, transport, isSecure })
})

test.each([
  'tel:+1555',
  'mailto:a@b',
  'gw.example',
  'sip:',
  'sip:a@b@c',
  'sip:gw.example:99999',
  'sip:gw;maddr=a;MADDR=b',
  'sip:gw;transport=udp;transport=tcp',
  'sip:203.0.28935',
  'sip:0xcb007107',
  'sip:203.0.113.007',
  '<sip:gw.example',
  'sip:gw.example;x=<y>',
])('%s could be read in two ways, or not at all', (uri) => {
  expect(sipTarget(uri)).toBeUndefined()
})

test('the SRV records of a name without a port are behind it', () => {
  const target = { host: 'gw.example', port: 0, transport: undefined, isSecure: false }
  expect(namesBehind(target)).toEqual([
    'gw.example',
    '_sip._udp.gw.example',
    '_sip._tcp.gw.example',
    '_sips._tcp.gw.example',
  ])
  expect(namesBehind({ ...target, transport: 'udp' })).toEqual([
    'gw.example',
    '_sip._udp.gw.example',
  ])
  expect(namesBehind({ ...target, port: 5060 })).toEqual(['gw.example'])
  expect(namesBehind({ ...target, host: '192.0.2.1' })).toEqual([])
})
