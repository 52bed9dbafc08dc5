import { expect, test } from 'vitest'
import { GatewayGuard } from '../../../engine/routing/gateway-guard.ts'
import type { CarrierGateway, Sender } from '../../../schema/contracts/gateways.ts'
import { gatewayNames, gatewayUri } from '../../../engine/routing/routing-records.ts'

const gateway = (fields: Partial<CarrierGateway>): CarrierGateway => ({
  carrier: 'north',
  tenantId: null,
  host: '203.0.113.7',
  port: 5_060,
  transport: 'udp',
  netmask: 32,
  ...fields,
})

/** The records of DNS. */
const records: Readonly<Record<string, readonly string[]>> = {
  'carrier.example': ['203.0.113.9'],
  '_sip._udp.carrier.example': ['203.0.113.10'],
  'alias.example': ['203.0.113.7'],
  'other.example': ['198.51.100.1'],
  '_sip._tcp.service.example': ['203.0.113.7'],
  localhost: ['127.0.0.1', '::1'],
}
const addressesOf = (host: string): readonly string[] =>
  records[host] ?? (/^[\d.]+$|:/.test(host) ? [host] : [])
const guardOf = (...gateways: readonly CarrierGateway[]): GatewayGuard =>
  new GatewayGuard(gateways, addressesOf)

const acme = 3
const rival = 4

const guard = guardOf(
  gateway({}),
  gateway({ carrier: 'wide', host: '198.51.100.64', netmask: 26 }),
  gateway({ carrier: 'named', host: 'carrier.example', port: 0 }),
  gateway({ carrier: 'six', host: '2001:db8::5', netmask: 64 }),
  gateway({ carrier: 'here', host: '127.0.0.1', port: 5_070 }),
)

test.each([
  'sip:1900@203.0.113.7',
  'sip:1900@203.0.113.7:5060',
  'sip:1900@203.0.113.7:5099;transport=tcp',
  'sip:1900@203.0.113.7;transport=UDP',
  'SIP:1900@203.0.113.7',
  'sips:1900@203.0.113.7:5061',
  '<sip:203.0.113.7;lr>',
  '"a proxy" <sip:203.0.113.7;lr>;x=1',
  'sip:1900@192.0.2.1;maddr=203.0.113.7',
  'sip:1900@192.0.2.1;MADDR=203.0.113.7',
  'sip:1900@[::ffff:203.0.113.7]',
  'sip:1900@[::FFFF:cb00:7107]:5060',
  'sip:1900@[0:0:0:0:0:ffff:203.0.113.7]',
  'sip:1900@198.51.100.127',
  'sip:1900@carrier.example',
  'sip:1900@CARRIER.Example.:5080',
  'sip:1900@203.0.113.10',
  'sip:1900@alias.example',
  'sip:1900@Alias.Example.:5070',
  'sip:1900@service.example',
  'sip:1900@[2001:db8::1]',
  'sip:1900@127.0.0.1:5070',
  'sip:1900@localhost:5070',
  'sip:1900;phone-context=a.example@203.0.113.7',
  // A URI that cannot be read here, or in two ways, might be read elsewhere.
  'sip:1900@203.0.113.7;maddr=192.0.2.1;maddr=203.0.113.7',
  'sip:1900@192.0.2.1@203.0.113.7',
  'sip:1900@[203.0.113.7',
  // Addresses to some readers, names to others.
  'sip:1900@203.0.28935',
  'sip:1900@3405803783',
  'sip:1900@0xcb007107',
  'sip:1900@203.0.113.007:5060',
  'sip:1900@192.0.2.1;maddr=%32%30%33.0.113.7',
])('%s leads to a gateway', (uri) => {
  expect(guard.behind(uri, acme)).toBeDefined()
})

test.each([
  'sip:1900@198.51.100.1',
  'sip:1900@198.51.100.128',
  'sip:1900@other.example',
  'sip:1900@unknown.example',
  'sip:1900@3cx:5060',
  'sip:1900@0xbx',
  'sip:1900@pbx-1',
  'sip:203.0.113.7@192.0.2.1',
  'sip:1900@192.0.2.1;x=203.0.113.7',
  'sip:1900@[2001:db8:0:1::1]',
  // On loopback the port tells who is meant.
  'sip:1900@127.0.0.1:5080',
  'sip:1900@localhost',
])('%s does not', (uri) => {
  expect(guard.behind(uri, acme)).toBeUndefined()
})

test.each<[string, Sender, boolean]>([
  // Its own carrier, in its whole network and at any port.
  ['sip:203.0.113.9', acme, true],
  ['sip:203.0.113.7:5099', acme, true],
  // That of another tenant: its very place, for which its carrier would charge it, and nothing
  // beside.
  ['sip:203.0.113.7', rival, true],
  ['sip:203.0.113.7:5099', rival, false],
  ['sip:203.0.113.9', rival, false],
  // No tenant makes what belongs to the platform unreachable.
  ['sip:203.0.113.7', 'platform', false],
])('of a carrier of a tenant, %s is a gateway to %s: %s', (uri, sender, isGateway) => {
  const own = guardOf(gateway({ tenantId: acme, netmask: 24 }))
  expect(own.behind(uri, sender) !== undefined).toBe(isGateway)
})

test('a gateway is known by the name of its carrier, and by no other that leads there', () => {
  expect(guard.ownersOf('Carrier.Example.')).toEqual([null])
  expect(guard.ownersOf('alias.example')).toEqual([])
  expect(guard.at({ address: '203.0.113.7', port: 9 }, 'unknown')?.carrier).toBe('north')
})

const placeOf = (host: string, port: number, transport: 'udp' | 'tcp' | 'tls' = 'udp') => ({
  host,
  port,
  transport,
})

// RFC 3263 §4.2: a port that is given rules SRV records out.
test.each([
  [placeOf('sip.carrier.example', 5070), 'sip:sip.carrier.example:5070;transport=udp'],
  [placeOf('203.0.113.1', 0), 'sip:203.0.113.1:5060;transport=udp'],
  [placeOf('2001:db8::1', 0, 'tls'), 'sip:[2001:db8::1]:5061;transport=tls'],
])('a gateway with an address or a port of its own is that place: %o', (gateway, uri) => {
  expect(gatewayUri(gateway)).toBe(uri)
  expect(gatewayNames(gateway)).toEqual([gateway.host])
})

test.each([
  ['udp', '_sip._udp.carrier.example'],
  ['tcp', '_sip._tcp.carrier.example'],
  ['tls', '_sips._tcp.carrier.example'],
] as const)('a name without a port is left to its SRV records, by %s', (transport, records) => {
  const gateway = placeOf('carrier.example', 0, transport)
  expect(gatewayUri(gateway)).toBe(`sip:carrier.example;transport=${transport}`)
  expect(gatewayNames(gateway)).toEqual(['carrier.example', records])
})
