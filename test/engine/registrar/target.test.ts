import { expect, test } from 'vitest'
import { type Binding, targetOf } from '../../../engine/registrar/bindings.ts'

const bound = (
  contact: string,
  source: Partial<Binding['source']>,
  path: string[] = [],
): Binding => ({
  contact,
  instance: null,
  regId: null,
  q: 1_000,
  callId: 'c',
  cseq: 1,
  path,
  userAgent: '',
  node: 'one',
  registeredAt: 0,
  expiresAt: 1,
  source: { protocol: 'udp', address: '198.51.100.7', port: 5_060, ...source },
})
const media = (...binding: Parameters<typeof bound>) => {
  const { isOnWebSocket, natAddress } = targetOf(bound(...binding))
  return { isOnWebSocket, natAddress }
}

test('a phone behind NAT is known by its private Contact from a public address', () => {
  expect(media('sip:1@192.168.1.7:5062', {})).toEqual({ natAddress: '198.51.100.7' })
  expect(media('sip:1@192.168.1.7:5062', { protocol: 'tls' }).natAddress).toBe('198.51.100.7')
  expect(media('sip:1@198.51.100.7:40000', {})).toEqual({})
  expect(media('sip:1@192.168.1.7', { address: '192.168.1.7' })).toEqual({})
  expect(media('sip:1@phone.example', {})).toEqual({})
})

test('a browser is known by its transport', () => {
  for (const protocol of ['ws', 'wss'])
    expect(media('sip:x@abc.invalid;transport=ws', { protocol })).toEqual({ isOnWebSocket: true })
})
