/** Two instances that serve the phones of one database. */
import { describe, expect, onTestFinished, test } from 'vitest'
import { ServerNotices } from '../../../schema/changes/server-notices.ts'
import { hasPostgres } from '../../support/postgres.ts'
import { sharedDatabase } from '../../support/shared-database.ts'
import { eventually } from '../../support/waiting.ts'
import { Phone, startRegistrar, whileWriting, withExtensions, type World } from './phone.ts'

const realTimer = (work: () => void, delayMs: number) => {
  const timer = setTimeout(work, delayMs)
  return () => clearTimeout(timer)
}

async function startTwo() {
  const { url, open } = await sharedDatabase()
  await withExtensions(await open())
  const dead = new Set<string>()
  const hop = {
    targetOf: () => undefined,
    isReachable: ({ holder }: { readonly holder: string }) => !dead.has(holder),
  }
  const start = async (holder: string): Promise<World> => {
    const notices = new ServerNotices({ url, schedule: realTimer, log: () => undefined })
    await notices.start()
    onTestFinished(() => notices.stop())
    return startRegistrar({ store: await open(), node: holder, notices, hop })
  }
  return { one: await start('one'), two: await start('two'), dead }
}

const statusAt = ({ registrar }: World, extension = '101') =>
  registrar
    .statusOf('acme.example', extension)
    .contacts.map(({ uri, holder }) => `${uri} at ${holder}`)
    .toSorted()

/**
 * Lets the instance read what others have told. Little time passes, so that nothing expires on a
 * busy machine.
 */
async function follows(world: World, check: () => void): Promise<void> {
  await eventually(() => {
    world.time.advance(5)
    check()
  })
}

describe.runIf(hasPostgres)('two instances', () => {
  test('a refresh at one instance keeps the phone registered at the other', async () => {
    const { one, two } = await startTwo()
    const phone = new Phone(two)
    await phone.register({ expires: '60' })
    await follows(one, () => expect(statusAt(one)).toEqual(['sip:101@203.0.113.7:5060 at two']))
    for (const world of [one, two]) world.time.advance(50_000)
    await phone.register({ expires: '60' })
    one.time.advance(6_000)
    await follows(one, () => {
      const [contact] = one.registrar.statusOf('acme.example', '101').contacts
      expect(contact?.expiresAt).toBeGreaterThan(one.time.now() + 40_000)
    })
    one.time.advance(20_000)
    expect(statusAt(one)).toHaveLength(1)
    one.time.advance(60_000)
    await follows(one, () => expect(statusAt(one)).toEqual([]))
    expect(one.told).toEqual([])
  })

  test('a phone that registers at another instance is bound there alone, and each is told of its own', async () => {
    const { one, two } = await startTwo()
    const place = { port: 40_000, protocol: 'tcp' }
    await new Phone(one, place).register()
    await follows(two, () => expect(statusAt(two)).toHaveLength(1))
    await new Phone(two, place).register()
    const moved = ['sip:101@203.0.113.7:40000 at two']
    expect(statusAt(two)).toEqual(moved)
    await follows(one, () => expect(statusAt(one)).toEqual(moved))
    expect([one.told.length, two.told.length]).toEqual([1, 0])
  })

  test('a closed connection of one instance ends its phone at all, unless that has come to another instance', async () => {
    const { one, two } = await startTwo()
    const contact = '<sip:101@10.0.0.5;transport=ws>;+sip.instance="<urn:x>"'
    const first = { port: 40_000, protocol: 'ws' }
    await new Phone(one, first).register({ contact })
    await follows(two, () => expect(statusAt(two)).toHaveLength(1))
    one.registrar.connectionClosed({ ...first, address: '203.0.113.7' })
    expect(statusAt(one)).toEqual([])
    one.time.advance(50)
    await follows(two, () => expect(statusAt(two)).toEqual([]))

    await new Phone(one, first).register({ contact })
    await new Phone(two, { port: 40_001, protocol: 'ws' }).register({ contact })
    // The first instance may not have heard of that yet.
    one.registrar.connectionClosed({ ...first, address: '203.0.113.7' })
    one.time.advance(50)
    await one.registrar.flush()
    const moved = ['sip:101@10.0.0.5;transport=ws at two']
    await follows(one, () => expect(statusAt(one)).toEqual(moved))
    expect(statusAt(two)).toEqual(moved)
  })

  test('the connections of an instance that is gone are closed: its phones are not registered, and make room', async () => {
    const { one, two, dead } = await startTwo()
    for (let port = 40_001; port <= 40_005; port++)
      await new Phone(two, { port, protocol: 'tcp' }).register()
    await follows(one, () => expect(statusAt(one)).toHaveLength(5))
    dead.add('two')
    expect(one.registrar.statusOf('acme.example', '101')).toMatchObject({
      status: 'unregistered',
      contacts: [],
    })
    expect((await new Phone(one).register()).status).toBe(200)
    expect(statusAt(one)).toEqual(['sip:101@203.0.113.7:5060 at one'])
    // It was paused: what has not given way is there again.
    dead.delete('two')
    expect(statusAt(one)).toHaveLength(5)
    expect(statusAt(one)).toContain('sip:101@203.0.113.7:5060 at one')
  })

  test('a phone behind NAT is kept alive by the instance that it is bound at alone', async () => {
    const { one, two } = await startTwo()
    await new Phone(two, { port: 40_001 }).register({ contact: '<sip:101@10.0.0.5>' })
    await follows(one, () => expect(statusAt(one)).toHaveLength(1))
    one.time.advance(60_000)
    two.time.advance(60_000)
    expect([one.keptAlive.length, two.keptAlive.length > 0]).toEqual([0, true])
  })

  test('what the API ends at one instance ends at all', async () => {
    const { one, two } = await startTwo()
    await new Phone(two).register()
    await new Phone(two, { port: 5_061 }).register()
    await follows(one, () => expect(statusAt(one)).toHaveLength(2))
    const contact = 'sip:101@203.0.113.7:5060'
    const end = one.registrar.endBindings('acme.example', '101', contact)
    expect(await whileWriting(one.registrar, end)).toBe(true)
    await follows(two, () => expect(statusAt(two)).toEqual(['sip:101@203.0.113.7:5061 at two']))
    await whileWriting(one.registrar, one.registrar.endBindings('acme.example', '101'))
    await follows(two, () => expect(statusAt(two)).toEqual([]))
  })

  test('what was told while this instance did not listen is read when it listens again', async () => {
    const { one, two } = await startTwo()
    await new Phone(two).register()
    await follows(one, () => expect(statusAt(one)).toHaveLength(1))
    const statements = two.store.statements.prepare(
      `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
        WHERE datname = current_database() AND query LIKE 'LISTEN%'`,
    )
    await statements.all([])
    await new Phone(two, { port: 5_061 }).register()
    await follows(one, () => expect(statusAt(one)).toHaveLength(2))
  })
})
