import { expect, onTestFinished, test } from 'vitest'
import {
  type Resolution,
  HostAddresses,
  hostResolver,
} from '../../../engine/dispatcher/host-addresses.ts'
import { DnsServer } from '../../support/dns-server.ts'
import { VirtualClock } from './virtual-clock.ts'

function start(answer: (host: string) => Promise<Resolution>) {
  const clock = new VirtualClock()
  const asked: string[] = []
  const hosts = new HostAddresses(async (host) => {
    asked.push(host)
    return answer(host)
  }, clock.schedule)
  return { clock, asked, hosts }
}

test('a literal address is its own and is never looked up', async () => {
  const { clock, asked, hosts } = start(async () => ({ addresses: ['10.0.0.1'], ttlMs: 1_000 }))
  hosts.watch('test', ['192.0.2.1', '2001:db8::1'])
  await clock.advance(0)
  expect(hosts.addressesOf('192.0.2.1')).toEqual(['192.0.2.1'])
  expect(hosts.addressesOf('2001:DB8:0::1')).toEqual(['2001:db8::1'])
  expect(asked).toEqual([])
})

test('a name is refreshed when its TTL has passed, and not before', async () => {
  const { clock, asked, hosts } = start(async () => ({ addresses: ['10.0.0.1'], ttlMs: 60_000 }))
  hosts.watch('test', ['PBX.example.com'])
  await clock.advance(59_000)
  expect(asked).toEqual(['pbx.example.com'])
  expect(hosts.addressesOf('pbx.Example.com')).toEqual(['10.0.0.1'])
  await clock.advance(1_000)
  expect(asked).toHaveLength(2)
})

test('a look-up waits for a second at most, and finds nothing of what is not told by then', async () => {
  const { clock, asked, hosts } = start((host) =>
    host === 'slow.example.com'
      ? new Promise(() => undefined)
      : Promise.resolve({ addresses: ['::ffff:10.0.0.1'], ttlMs: 0 }),
  )
  const names = ['192.0.2.1', 'PBX.example.com', 'pbx.example.com']
  const addressesOf = await hosts.lookUp(names)
  expect(names.map(addressesOf)).toEqual([['192.0.2.1'], ['10.0.0.1'], ['10.0.0.1']])
  expect(asked).toEqual(['pbx.example.com'])
  let isOver = false
  const late = hosts.lookUp([...names, 'slow.example.com']).finally(() => (isOver = true))
  await clock.advance(999)
  expect(isOver).toBe(false)
  await clock.advance(1)
  const found = await late
  expect([found('slow.example.com'), found('pbx.example.com')]).toEqual([[], ['10.0.0.1']])
})

test('a name that stops resolving keeps its addresses and is tried again', async () => {
  let isBroken = false
  const { clock, asked, hosts } = start(async () => {
    if (isBroken) throw new Error('SERVFAIL')
    return { addresses: ['10.0.0.1'], ttlMs: 10_000 }
  })
  hosts.watch('test', ['pbx.example.com'])
  await clock.advance(5_000)
  isBroken = true
  await clock.advance(60_000)
  expect(hosts.addressesOf('pbx.example.com')).toEqual(['10.0.0.1'])
  expect(asked.length).toBeGreaterThan(5)
})

test('the version grows only when addresses change', async () => {
  let addresses = ['10.0.0.2', '10.0.0.1']
  const { clock, hosts } = start(async () => ({ addresses, ttlMs: 10_000 }))
  hosts.watch('test', ['pbx.example.com'])
  await clock.advance(0)
  const { version } = hosts
  addresses = ['10.0.0.1', '10.0.0.2']
  await clock.advance(10_000)
  expect(hosts.version).toBe(version)
  addresses = ['10.0.0.3']
  await clock.advance(10_000)
  expect(hosts.version).toBe(version + 1)
})

test('a name is kept while any owner needs it, and then forgotten with its timer', async () => {
  const { clock, hosts } = start(async () => ({ addresses: ['10.0.0.1'], ttlMs: 10_000 }))
  hosts.watch('dispatcher', ['pbx.example.com'])
  hosts.watch('routing', ['pbx.example.com'])
  await clock.advance(0)
  hosts.watch('dispatcher', [])
  expect(hosts.addressesOf('pbx.example.com')).toEqual(['10.0.0.1'])
  hosts.watch('routing', [])
  expect(hosts.addressesOf('pbx.example.com')).toEqual([])
  expect(clock.pending).toBe(0)
})

test('the name of a service stands for the addresses of all its hosts', async () => {
  const dns = await DnsServer.start()
  onTestFinished(() => dns.close())
  const resolve = hostResolver([dns.address])
  const srv = (target: string) => ({
    type: 'SRV' as const,
    name: '_sip._udp.carrier.example',
    ttl: 300,
    data: { target, port: 5_070, priority: 1, weight: 1 },
  })
  dns.serve(
    srv('one.carrier.example'),
    srv('two.carrier.example'),
    { type: 'A', name: 'one.carrier.example', ttl: 30, data: '192.0.2.1' },
    { type: 'A', name: 'two.carrier.example', ttl: 40, data: '192.0.2.2' },
  )
  const { addresses, ttlMs } = await resolve('_sip._udp.carrier.example')
  expect([[...addresses].toSorted(), ttlMs]).toEqual([['192.0.2.1', '192.0.2.2'], 30_000])
  // Most domains have no such records: they are not asked again and again.
  expect(await resolve('_sip._tcp.carrier.example')).toEqual({ addresses: [], ttlMs: 60_000 })
})

test('a name is unresolvable when DNS has not known it three times in a row', async () => {
  let known: readonly string[] = []
  const due: (() => void)[] = []
  const hosts = new HostAddresses(
    async () => ({ addresses: known, ttlMs: 1_000 }),
    (work) => {
      due.push(work)
      return () => undefined
    },
  )
  const refresh = async (): Promise<void> => {
    due.shift()?.()
    for (let turn = 0; turn < 3; turn += 1) await Promise.resolve()
  }
  hosts.watch('test', ['Gone.example', '192.0.2.1'])
  await refresh()
  await refresh()
  expect(hosts.isUnresolvable('gone.example')).toBe(false)
  await refresh()
  expect(hosts.isUnresolvable('GONE.example')).toBe(true)
  expect(hosts.isUnresolvable('192.0.2.1')).toBe(false)
  known = ['192.0.2.2']
  await refresh()
  expect(hosts.isUnresolvable('gone.example')).toBe(false)
})
