import { expect, test } from 'vitest'
import { execute } from '../../../schema/sql/query.ts'
import { Phone, startRegistrar } from './phone.ts'

test('a clock that was set back before a restart makes no phone be registered for longer than two hours', async () => {
  const world = await startRegistrar()
  const phone = new Phone(world)
  await phone.challenged()
  await phone.register()
  await execute(
    world.store,
    world.store.db.updateTable('binding').set({ expires_at: world.time.now() + 864e5 }),
  )
  const again = await startRegistrar({ store: world.store })
  const status = () => again.registrar.statusOf('acme.example', '101').status
  again.time.advance(7_100_000)
  expect(status()).toBe('registered')
  again.time.advance(101_000)
  expect(status()).toBe('unregistered')
})
