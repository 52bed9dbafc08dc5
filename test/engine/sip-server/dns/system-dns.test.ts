/** Records from a real DNS server on loopback, and names of this machine. */
import { afterEach, beforeEach, expect, test } from 'vitest'
import { systemDns } from '../../../../engine/sip-server/dns/system-dns.ts'
import { DnsServer } from '../../../support/dns-server.ts'

let server: DnsServer
beforeEach(async () => {
  server = await DnsServer.start()
})
afterEach(() => server.close())

test('NAPTR and SRV records come as they are', async () => {
  server.serve(
    {
      type: 'NAPTR',
      name: 'example.com',
      data: {
        order: 10,
        preference: 20,
        flags: 's',
        services: 'SIP+D2U',
        regexp: '',
        replacement: '_sip._udp.example.com',
      },
    },
    {
      type: 'SRV',
      name: '_sip._udp.example.com',
      data: { priority: 1, weight: 2, port: 5099, target: 'a.example.com' },
    },
  )
  const dns = systemDns([server.address])
  expect((await dns.naptr('example.com')).records).toEqual([
    expect.objectContaining({
      order: 10,
      preference: 20,
      flags: 's',
      service: 'SIP+D2U',
      replacement: '_sip._udp.example.com',
    }),
  ])
  expect((await dns.srv('_sip._udp.example.com')).records).toMatchObject([
    { priority: 1, weight: 2, port: 5099, name: 'a.example.com' },
  ])
  expect((await dns.srv('_sip._tcp.example.com')).records).toEqual([])
})

test('names of this machine are found although no DNS server knows them', async () => {
  const { records } = await systemDns([server.address]).addresses('localhost')
  expect(records).toContain('127.0.0.1')
  expect(server.asked).toEqual([])
})

test('a name that does not exist is an answer; silence and errors are none', async () => {
  const dns = systemDns([server.address])
  expect(await dns.srv('_sip._udp.example.com')).toMatchObject({ records: [], isAnswer: true })
  expect(await dns.addresses('missing.example.com')).toMatchObject({ records: [], isAnswer: true })
  // Bounded: this test would not end otherwise.
  server.fallSilent()
  const [srv, addresses] = await Promise.all([
    dns.srv('_sip._tcp.example.com'),
    dns.addresses('silent.example.com'),
  ])
  expect([srv.isAnswer, addresses.isAnswer]).toEqual([false, false])
})
