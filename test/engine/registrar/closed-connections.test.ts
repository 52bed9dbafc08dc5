/** Phones whose connections close: RFC 5626 §5.3, §6. */
import { expect, test } from 'vitest'
import { all } from '../../../schema/sql/query.ts'
import { loaded, Phone, startRegistrar, whileWriting, type World } from './phone.ts'

const status = ({ registrar }: Pick<World, 'registrar'>) => {
  const { status: state, contacts } = registrar.statusOf('acme.example', '101')
  return [state, ...contacts.map(({ uri }) => uri)]
}

const stored = async ({ store, registrar }: World) => {
  await registrar.flush()
  const rows = await all(store, store.db.selectFrom('binding').select('contact'))
  return rows.map(({ contact }) => contact)
}

/** A page that is loaded anew has a user part and an instance of its own each time. */
const webPhone = (number: number) => ({
  contact:
    `<sip:u${number}@p${number}.invalid;transport=ws>;reg-id=1;` +
    `+sip.instance="<urn:uuid:0000000${number}-0000-4000-8000-000000000000>"`,
  expires: '600',
})

test.each(['ws', 'wss', 'tcp', 'tls'])(
  'by %s, a phone that comes back by a new connection is never locked out by its closed ones',
  async (protocol) => {
    const world = await startRegistrar()
    for (let number = 1; number <= 8; number++) {
      const phone = new Phone(world, { protocol, port: 40_000 + number })
      const { status: answer, headers } = await phone.register(webPhone(number))
      expect([answer, headers['Contact']]).toEqual([
        200,
        `<sip:u${number}@p${number}.invalid;transport=ws>;expires=600;+sip.instance="<urn:uuid:0000000${number}-0000-4000-8000-000000000000>";reg-id=1`,
      ])
      expect(status(world)[0]).toBe('registered')
      world.registrar.connectionClosed(phone.source)
      expect(status(world)).toEqual(['unregistered'])
      expect(world.registrar.contactsOf('acme.example', '101')).toEqual([])
      expect(world.registrar.telemetry()).toMatchObject({
        registered_extensions: 0,
        registered_contacts: 0,
      })
    }
    expect(await stored(world)).toEqual([])
    expect(world.told.map(({ contacts }) => contacts)).toEqual(
      Array.from({ length: 8 }, () => [1, 0]).flat(),
    )
  },
)

test.each(['udp', 'tcp', 'ws'])(
  'of six living phones by %s the one that is refreshed the longest time ago makes room',
  async (protocol) => {
    const world = await startRegistrar()
    const phones = [1, 2, 3, 4, 5, 6].map(
      (number) => new Phone(world, { protocol, port: 40_000 + number }),
    )
    for (const phone of phones) {
      expect((await phone.register()).status).toBe(200)
      world.time.advance(1_000)
    }
    expect(status(world)).toHaveLength(1 + 5)
    expect(status(world)).not.toContain('sip:101@203.0.113.7:40001')
    expect(await stored(world)).toHaveLength(5)
    // It comes again, and the next one makes room.
    expect((await phones[0]?.register())?.status).toBe(200)
    expect(status(world)).not.toContain('sip:101@203.0.113.7:40002')
  },
)

test('the other phones of an extension, and those behind a proxy of the closed connection, stay', async () => {
  const world = await startRegistrar()
  world.proxies.add('192.0.2.9')
  const proxy = { protocol: 'tcp', address: '192.0.2.9', port: 5_070 }
  const behind = new Phone(world, proxy)
  const path = { path: '<sip:192.0.2.9;transport=tcp;lr>', supported: 'path' }
  await behind.register({ contact: '<sip:101@10.0.0.8>', ...path })
  const direct = new Phone(world, { protocol: 'tcp', port: 40_001 })
  await direct.register()
  const desk = new Phone(world)
  await desk.register()
  world.registrar.connectionClosed({ protocol: 'udp', address: '203.0.113.7', port: 40_001 })
  world.registrar.connectionClosed({ protocol: 'tcp', address: '203.0.113.7', port: 40_009 })
  expect(status(world)).toHaveLength(1 + 3)
  world.registrar.connectionClosed(direct.source)
  world.registrar.connectionClosed(proxy)
  const left = ['sip:101@10.0.0.8', 'sip:101@203.0.113.7:5060']
  expect(status(world).slice(1).toSorted()).toEqual(left)
  expect((await stored(world)).toSorted()).toEqual(left)
})

test('a phone that has come back by another connection stays when the old one is closed', async () => {
  const world = await startRegistrar()
  const contact = '<sip:101@10.0.0.8;transport=tcp>;+sip.instance="<urn:x>"'
  const old = new Phone(world, { protocol: 'tcp', port: 40_001 })
  await old.register({ contact })
  await new Phone(world, { protocol: 'tcp', port: 40_002 }).register({ contact })
  world.registrar.connectionClosed(old.source)
  expect(status(world)).toEqual(['registered', 'sip:101@10.0.0.8;transport=tcp'])
  expect(await stored(world)).toEqual(['sip:101@10.0.0.8;transport=tcp'])
})

test('a phone that comes back at once by a connection from the same port stays stored', async () => {
  const world = await startRegistrar()
  const phone = new Phone(world, { protocol: 'tcp', port: 40_001 })
  await phone.register()
  await stored(world)
  world.time.advance(1_000)
  world.registrar.connectionClosed(phone.source)
  world.time.advance(5)
  const authorization = phone.credentials()
  const headers = phone.headers({ contact: phone.contact, authorization })
  const answer = world.registrar.handle({ method: 'REGISTER', headers, source: phone.source })
  await whileWriting(world.registrar, answer)
  expect((await answer).status).toBe(200)
  expect(status(world)).toEqual(['registered', 'sip:101@203.0.113.7:40001'])
  expect(await stored(world)).toEqual(['sip:101@203.0.113.7:40001'])
})

test('a connection that is closed before the REGISTER is stored leaves nothing', async () => {
  const world = await startRegistrar()
  const phone = new Phone(world, { protocol: 'tls', port: 40_001 })
  await phone.challenged()
  const answer = phone.register()
  await Promise.resolve()
  world.registrar.connectionClosed(phone.source)
  expect((await answer).status).toBe(200)
  // The SIP server tells it again, when the answer cannot be sent there.
  world.registrar.connectionClosed(phone.source)
  expect(status(world)).toEqual(['unregistered'])
  expect(await stored(world)).toEqual([])
  expect(world.told.at(-1)?.contacts).toBe(0)
})

test('a start finds phones by UDP as they were, and no phone on a connection of the last process', async () => {
  const world = await startRegistrar()
  await new Phone(world).register()
  await new Phone(world, { protocol: 'wss', port: 40_001 }).register(webPhone(1))
  const next = await loaded(world.deps)
  expect(status({ registrar: next })).toEqual(['registered', 'sip:101@203.0.113.7:5060'])
  await next.flush()
  expect(await stored(world)).toEqual(['sip:101@203.0.113.7:5060'])
})
