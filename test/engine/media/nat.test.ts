import { expect, test } from 'vitest'
import { natAddressOf } from '../../../engine/media/parties.ts'
import { readDescription } from '../../../engine/media/description.ts'
import { baresipOffer, chromiumOffer } from '../../support/media-party.ts'

const described = (address: string) =>
  readDescription(
    baresipOffer.replace(
      'c=IN IP4 127.0.0.1',
      `c=IN IP${address.includes(':') ? 6 : 4} ${address}`,
    ),
  )

test.each<[string, string | undefined, string | undefined]>([
  // In the description, where the INVITE comes from, where media goes instead.
  ['192.168.1.7', '198.51.100.7', '198.51.100.7'],
  ['10.1.2.3', '198.51.100.7', '198.51.100.7'],
  ['172.31.0.9', '198.51.100.7', '198.51.100.7'],
  ['100.64.0.9', '198.51.100.7', '198.51.100.7'],
  ['fd00::9', '2001:db8::7', '2001:db8::7'],
  ['192.168.1.7', '10.0.0.1', '10.0.0.1'],
  ['127.0.0.1', '198.51.100.7', '198.51.100.7'],
  ['192.168.1.7', '192.168.1.7', undefined],
  // A media server beside the signalling, or STUN.
  ['203.0.113.9', '198.51.100.7', undefined],
  ['172.32.0.9', '198.51.100.7', undefined],
  ['127.0.0.2', '127.0.0.1', undefined],
  // Hold, the old way.
  ['0.0.0.0', '198.51.100.7', undefined],
  ['media.example.com', '198.51.100.7', undefined],
  // Behind a proxy.
  ['192.168.1.7', undefined, undefined],
])('c=%s from %s: %s', (address, source, expected) => {
  const from = { address: source, boundBehindNat: undefined }
  expect(natAddressOf(from, described(address))).toBe(expected)
})

test('before a phone has described itself, its REGISTER tells', () => {
  const from = { address: '198.51.100.7', boundBehindNat: '198.51.100.7' }
  expect(natAddressOf(from, undefined)).toBe('198.51.100.7')
  expect(natAddressOf({ ...from, boundBehindNat: undefined }, undefined)).toBeUndefined()
  // It has found its public address by STUN.
  expect(natAddressOf(from, described('198.51.100.8'))).toBeUndefined()
})

test('a browser finds its way by ICE', () => {
  const from = { address: '198.51.100.7', boundBehindNat: '198.51.100.7' }
  expect(natAddressOf(from, readDescription(chromiumOffer))).toBeUndefined()
})
