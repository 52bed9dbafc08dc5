import { networkInterfaces } from 'node:os'
import { expect, test } from 'vitest'
import { DialledDomains } from '../../../engine/routing/dialled-domains.ts'

const settings = {
  advertisedHost: '203.0.113.1',
  hostNames: ['SBC.example.com'],
  foreignDomains: ['Friends.example'],
}

test('ours are the names that are set, and the addresses where SIP is served', () => {
  const listeners: { host: string }[] = []
  const domains = new DialledDomains({ ...settings, listeners: () => listeners })
  expect(domains.isOwn('192.0.2.1')).toBe(false)
  listeners.push({ host: '192.0.2.1' })
  for (const own of ['203.0.113.1', 'sbc.example.com', '192.0.2.1', 'localhost'])
    expect(domains.isOwn(own)).toBe(true)
  expect(domains.isOwn('127.0.0.1')).toBe(false)
  expect(domains.isAllowed('friends.example')).toBe(true)
  expect(domains.isAllowed('elsewhere.example')).toBe(false)
})

test('where SIP is served everywhere, every address of the machine is ours', () => {
  const domains = new DialledDomains({ ...settings, listeners: () => [{ host: '0.0.0.0' }] })
  const addresses = Object.values(networkInterfaces()).flatMap((each = []) => each)
  for (const { address } of addresses) expect(domains.isOwn(address)).toBe(true)
  expect(domains.isOwn('192.0.2.1')).toBe(false)
})
