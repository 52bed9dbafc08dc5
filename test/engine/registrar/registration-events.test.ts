import { describe, expect, test } from 'vitest'
import { eachDatabase } from '../../support/shared-database.ts'
import { Phone, startRegistrar, withExtensions, type WorldOptions } from './phone.ts'

describe.each(eachDatabase)('what is told of registrations on $database', ({ open }) => {
  const start = async (options: WorldOptions = {}) =>
    startRegistrar({ store: options.store ?? (await withExtensions(await open())), ...options })

  const phonesOf = (contacts: number, extension = '101') => ({
    tenantId: 1,
    domain: 'acme.example',
    extension,
    contacts,
  })

  test('it is told when a phone comes and when it goes, not when it stays', async () => {
    const world = await start()
    const phone = new Phone(world)
    await phone.register()
    await phone.register()
    expect(world.told).toEqual([phonesOf(1)])
    await phone.register({ expires: '0' })
    expect(world.told).toEqual([phonesOf(1), phonesOf(0)])
  })

  test('it is told when a binding expires, once for each time that a phone is gone', async () => {
    const world = await start()
    await new Phone(world).register({ expires: '60' })
    await new Phone(world, { port: 5_061 }).register({ expires: '120' })
    world.time.advance(59_000)
    expect(world.told).toEqual([phonesOf(1), phonesOf(2)])
    world.time.advance(4_000)
    expect(world.told).toEqual([phonesOf(1), phonesOf(2), phonesOf(1)])
    world.time.advance(60_000)
    expect(world.told.at(-1)).toEqual(phonesOf(0))
    world.time.advance(600_000)
    expect(world.told).toHaveLength(4)
  })

  test('it is told when the API ends the phones of an extension', async () => {
    const world = await start()
    await new Phone(world).register()
    const ends = ['ACME.example', 'acme.example'].map((domain) =>
      world.registrar.endBindings(domain, '101'),
    )
    await world.registrar.flush()
    expect(await Promise.all(ends)).toEqual([true, false])
    expect(world.told).toEqual([phonesOf(1), phonesOf(0)])
  })

  test('one phone of several is removed by its contact, and stays away after a restart', async () => {
    const world = await start()
    await new Phone(world).register()
    await new Phone(world, { port: 5_061 }).register()
    const { registrar } = world
    const [first, second] = registrar.statusOf('acme.example', '101').contacts
    const end = registrar.endBindings('ACME.example', '101', first?.uri ?? '')
    expect(await registrar.endBindings('acme.example', '101', first?.uri ?? '')).toBe(false)
    expect(world.told.at(-1)).toEqual(phonesOf(1))
    await registrar.flush()
    expect(await end).toBe(true)
    const again = await start({ store: world.store })
    expect(again.registrar.statusOf('acme.example', '101').contacts.map(({ uri }) => uri)).toEqual([
      second?.uri,
    ])
  })
})
