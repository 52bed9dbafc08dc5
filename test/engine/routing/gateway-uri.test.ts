import { expect, test } from 'vitest'
import { gatewayNames, gatewayUri } from '../../../engine/routing/routing-records.ts'

const at = (host: string, port: number, transport: 'udp' | 'tcp' | 'tls' = 'udp') => ({
  host,
  port,
  transport,
})

// RFC 3263 §4.2: a port that is given rules SRV records out.
test.each([
  [at('sip.carrier.example', 5070), 'sip:sip.carrier.example:5070;transport=udp'],
  [at('203.0.113.1', 0), 'sip:203.0.113.1:5060;transport=udp'],
  [at('2001:db8::1', 0, 'tls'), 'sip:[2001:db8::1]:5061;transport=tls'],
])('a gateway with an address or a port of its own is that place: %o', (gateway, uri) => {
  expect(gatewayUri(gateway)).toBe(uri)
  expect(gatewayNames(gateway)).toEqual([gateway.host])
})

test.each([
  ['udp', '_sip._udp.carrier.example'],
  ['tcp', '_sip._tcp.carrier.example'],
  ['tls', '_sips._tcp.carrier.example'],
] as const)('a name without a port is left to its SRV records, by %s', (transport, records) => {
  const gateway = at('carrier.example', 0, transport)
  expect(gatewayUri(gateway)).toBe(`sip:carrier.example;transport=${transport}`)
  expect(gatewayNames(gateway)).toEqual(['carrier.example', records])
})
