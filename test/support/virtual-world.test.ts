import { expect, test } from 'vitest'
import { ManualTime } from './manual-time.ts'
import { SipPeer } from './sip-peer.ts'
import { VirtualWorld } from './virtual-world.ts'

const place = { address: '127.0.0.1', advertisedHost: '127.0.0.1', advertisedPort: 9 }

/** Two peers that send to each other. */
async function start() {
  const world = new VirtualWorld(new ManualTime(0))
  const listener = { protocol: 'udp' as const, port: 9, ...place }
  const one = await SipPeer.open(listener, {}, world.network)
  listener.port = one.port
  return { world, one, other: await SipPeer.open({ ...listener }, {}, world.network) }
}

test('datagrams arrive in the order in which they were sent', async () => {
  const { world, one, other } = await start()
  const methods = ['OPTIONS', 'INFO', 'MESSAGE']
  for (const method of methods) other.request(method, other.leg(one.uri))
  await world.settle()
  expect(one.inbox.map(({ method }) => method)).toEqual(methods)
})

test('an answer goes back to where its request came from', async () => {
  const { one, other } = await start()
  other.request('OPTIONS', other.leg(one.uri))
  one.reply(await one.next('OPTIONS'), 200)
  expect((await other.next(200)).get('CSeq')).toBe('1 OPTIONS')
})

test('who waits for what does not come hears so at once; a closed peer gets nothing', async () => {
  const { world, one, other } = await start()
  other.request('OPTIONS', other.leg(one.uri))
  one.close()
  await expect(other.next(200)).rejects.toThrow('no 200')
  await world.settle()
  expect([one.inbox, world.time.now()]).toEqual([[], 0])
})

test('what follows from one deadline comes before the next', async () => {
  const { world, one, other } = await start()
  const seen: unknown[] = []
  world.time.schedule(() => other.request('OPTIONS', other.leg(one.uri)), 100)
  world.time.schedule(() => seen.push(one.inbox.length, world.time.now()), 200)
  await world.advance(250)
  expect([...seen, world.time.now()]).toEqual([1, 200, 250])
})
