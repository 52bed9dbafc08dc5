import { expect, test } from 'vitest'
import {
  instanceNameOf,
  instanceSipAddressesOf,
  instanceSipUriOf,
  instanceUrlOf,
} from '../../../engine/stores/instance-place.ts'

const unset = {
  apiTls: undefined,
  instance: { name: undefined, url: undefined, sipUri: undefined },
}

test('an instance has the name of its host, unless it is given another one', () => {
  expect(instanceNameOf(unset, 'sbc-1.example.com')).toBe('sbc-1.example.com')
  expect(instanceNameOf({ instance: { ...unset.instance, name: 'a' } }, 'sbc-1')).toBe('a')
  expect(() => instanceNameOf(unset, 'sbc 1')).toThrow('NODE_NAME is not set')
})

test.each([
  [{ host: '10.0.0.1', port: 8080 }, 'http://10.0.0.1:8080'],
  [{ host: '0.0.0.0', port: 8080 }, 'http://sbc-1:8080'],
  [{ host: '::', port: 8080 }, 'http://sbc-1:8080'],
  [{ host: '2001:db8::1', port: 80 }, 'http://[2001:db8::1]:80'],
])('other instances reach %o at %s', (place, url) => {
  expect(instanceUrlOf(unset, place, 'sbc-1')).toBe(url)
  const apiTls = { certFile: 'api.pem', keyFile: 'api.key' }
  expect(instanceUrlOf({ ...unset, apiTls }, place, 'sbc-1')).toBe(url.replace('http:', 'https:'))
  const given = {
    apiTls: undefined,
    instance: { ...unset.instance, url: 'https://sbc.example.com' },
  }
  expect(instanceUrlOf(given, place, 'sbc-1')).toBe('https://sbc.example.com')
})

const udp = { protocol: 'udp', host: '10.0.0.1', port: 5_060 }
const tcp = { protocol: 'tcp', host: '2001:db8::1', port: 5_070 }
const page = { protocol: 'wss', host: '10.0.0.1', port: 443 }

test('other instances send SIP to the first listener that is no WebSocket, unless another address is given', () => {
  expect(instanceSipUriOf(unset, [page, udp, tcp])).toBe('sip:10.0.0.1:5060')
  expect(instanceSipUriOf(unset, [tcp, udp])).toBe('sip:[2001:db8::1]:5070;transport=tcp')
  expect(instanceSipUriOf(unset, [page])).toBe('')
  const given = { instance: { ...unset.instance, sipUri: 'sip:10.9.0.1;transport=tls' } }
  expect(instanceSipUriOf(given, [udp])).toBe('sip:10.9.0.1;transport=tls')
})

test('requests of an instance come from where its sockets are bound, or from any address that the machine shows', () => {
  const ofMachine = ['10.0.0.1', '192.168.7.1', 'fe80::1', '2001:db8::1']
  expect(instanceSipAddressesOf([udp, tcp, page], ofMachine)).toEqual(['10.0.0.1', '2001:db8::1'])
  expect(instanceSipAddressesOf([{ protocol: 'udp', host: '0.0.0.0' }, udp], ofMachine)).toEqual([
    '10.0.0.1',
    '192.168.7.1',
  ])
  expect(instanceSipAddressesOf([{ protocol: 'tcp', host: '::' }], ofMachine)).toEqual([
    '10.0.0.1',
    '192.168.7.1',
    '2001:db8::1',
  ])
  expect(instanceSipAddressesOf([{ protocol: 'wss', host: '0.0.0.0' }], ofMachine)).toEqual([])
  const many = Array.from({ length: 100 }, (_, index) => `10.0.1.${index}`)
  expect(instanceSipAddressesOf([{ protocol: 'udp', host: '0.0.0.0' }], many)).toHaveLength(32)
})
