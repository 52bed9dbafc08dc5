/** Phones that are lost, as webhooks are told of them. */
import { describe, expect, test } from 'vitest'
import { LostRegistrations } from '../../../engine/registrar/lost-registrations.ts'
import type { OutgoingEvent } from '../../../schema/contracts/engine.ts'
import { hasPostgres } from '../../support/postgres.ts'
import { sharedDatabase } from '../../support/shared-database.ts'
import { readRows, runSql } from '../../support/stored.ts'
import { Phone, startRegistrar, withExtensions, type World, type WorldOptions } from './phone.ts'

async function startTold(options: WorldOptions = {}) {
  const world = await startRegistrar({ keepsLost: () => true, ...options })
  const events: OutgoingEvent[] = []
  const lost = watcherOf(world, events)
  /** Time passes, and what is removed meanwhile is stored. */
  const pass = async (ms: number) => {
    for (let passed = 0; passed < ms; passed += 1_000) world.time.advance(1_000)
    await world.registrar.flush()
    await lost.tell()
  }
  return { ...world, events, lost, pass }
}

const watcherOf = ({ store, time }: Pick<World, 'store' | 'time'>, events: OutgoingEvent[]) =>
  new LostRegistrations({
    store,
    now: time.now,
    sink: { writeAll: async (more) => void events.push(...more) },
    log: () => undefined,
  })

const namesIn = (events: readonly OutgoingEvent[]) =>
  events.flatMap(({ type, data }) =>
    (data['registrations'] as { extension: string; reason: string }[]).map(
      ({ extension, reason }) => `${type} ${extension} ${reason}`,
    ),
  )

test('a phone that does not renew its registration is lost, and told once', async () => {
  const world = await startTold()
  await new Phone(world).register({ expires: '60' })
  await world.pass(50_000)
  expect(world.events).toEqual([])
  await world.pass(100_000)
  await world.pass(100_000)
  expect(world.events).toMatchObject([
    {
      type: 'registration.lost',
      tenantId: 1,
      data: {
        of: 'extension',
        count: 1,
        extension: '101',
        registrations: [{ extension: '101', domain: 'acme.example', reason: 'expired' }],
      },
    },
  ])
})

test('a phone that renews its registration or ends it itself is not lost', async () => {
  const world = await startTold()
  const phone = new Phone(world)
  await phone.register({ expires: '60' })
  await world.pass(40_000)
  await phone.register({ expires: '60' })
  await world.pass(40_000)
  await phone.register({ expires: '0' })
  await world.pass(200_000)
  expect(world.events).toEqual([])
})

test('a phone whose connection closes is lost, unless it comes back within moments', async () => {
  const world = await startTold()
  const one = new Phone(world, { protocol: 'tcp', port: 40_001 })
  await one.register()
  world.registrar.connectionClosed(one.source)
  await world.pass(3_000)
  await new Phone(world, { protocol: 'tcp', port: 40_002 }).register()
  await world.pass(30_000)
  expect(world.events).toEqual([])
  world.registrar.connectionClosed({ ...one.source, port: 40_002 })
  await world.pass(30_000)
  expect(namesIn(world.events)).toEqual(['registration.lost 101 connection_closed'])
})

test('nothing is kept where no webhook asks for it', async () => {
  const world = await startTold({ keepsLost: () => false })
  await new Phone(world).register({ expires: '60' })
  await world.pass(200_000)
  expect(await readRows(world.store, 'SELECT * FROM lost_registration')).toEqual([])
})

const storm = (count: number) =>
  `WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${count})
   INSERT INTO lost_registration
     (tenant_id, extension_id, domain, extension, contact, reason, at)
   SELECT 1, 1, 'acme.example', '101', 'sip:' || i, 'expired', 1 FROM n`

test('10,000 phones that are lost at once are told in a few events, each of a bounded size', async () => {
  const world = await startTold()
  await runSql(world.store, storm(10_000))
  for (let tick = 0; tick < 7; tick += 1) await world.lost.tell()
  expect(world.events.map(({ data }) => data['count'])).toEqual([2_000, 2_000, 2_000, 2_000, 2_000])
  expect(Math.max(...world.events.map((event) => JSON.stringify(event).length))).toBeLessThan(
    20_000,
  )
})

describe.runIf(hasPostgres)('two instances', () => {
  test('tell of each lost phone once', async () => {
    const { open } = await sharedDatabase()
    const store = await withExtensions(await open())
    const world = await startTold({ store, node: 'one' })
    await runSql(store, storm(500))
    const other = watcherOf({ store: await open(), time: world.time }, world.events)
    await Promise.all([world.lost.tell(), other.tell()])
    await Promise.all([world.lost.tell(), other.tell()])
    expect(world.events.reduce((sum, { data }) => sum + Number(data['count']), 0)).toBe(500)
  })
})
