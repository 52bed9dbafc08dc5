/**
 * How soon an instance knows what phones do at another one, and what it does when the database is
 * away.
 */
import { expect, test } from 'vitest'
import { execute } from '../../../schema/sql/query.ts'
import { turnOfEventLoop } from '../../support/waiting.ts'
import { Phone, startRegistrar } from './phone.ts'

async function follow() {
  let tell = (_payload: string): void => undefined
  const notices = {
    on: (_channel: string, handler: (payload: string) => void) => {
      tell = handler
      return () => undefined
    },
    onGap: () => () => undefined,
    listening: () => Promise.resolve(),
  }
  const one = await startRegistrar({ notices })
  const two = await startRegistrar({ store: one.store, node: 'two', time: one.time })
  const idOf = (user: string) => one.registrar.extensionAt('acme.example', user)?.extensionId
  const pass = async (ms: number): Promise<void> => {
    one.time.advance(ms)
    for (let turn = 0; turn < 20; turn += 1) await turnOfEventLoop()
  }
  return {
    one,
    pass,
    registers: (user: string) => new Phone(two, { user }).register(),
    tell: (user: string) => tell(`two ${idOf(user)}`),
    isKnown: (user: string) => one.registrar.contactsOf('acme.example', user).length > 0,
  }
}

test('what another instance tells is read at once, and twenty times a second at most', async () => {
  const { pass, registers, tell, isKnown } = await follow()
  await registers('101')
  await registers('102')
  tell('101')
  await pass(0)
  expect(isKnown('101')).toBe(true)
  tell('102')
  await pass(49)
  expect(isKnown('102')).toBe(false)
  await pass(1)
  expect(isKnown('102')).toBe(true)
})

test('what cannot be read is read half a second later', async () => {
  const { one, pass, registers, tell, isKnown } = await follow()
  await registers('101')
  const rename = (from: string, to: string) =>
    execute(one.store, one.store.db.schema.alterTable(from).renameTo(to))
  await rename('binding', 'away')
  tell('101')
  await pass(0)
  await rename('away', 'binding')
  await pass(499)
  expect(isKnown('101')).toBe(false)
  await pass(1)
  expect(isKnown('101')).toBe(true)
})

test('a phone that registers before an instance that starts is told of any is read by it', async () => {
  const one = await startRegistrar()
  let listens = (): void => undefined
  const listening = new Promise<void>((resolve) => (listens = resolve))
  const deaf = () => () => undefined
  const notices = { on: deaf, onGap: deaf, listening: () => listening }
  const starting = startRegistrar({ store: one.store, node: 'two', time: one.time, notices })
  for (let turn = 0; turn < 20; turn += 1) await turnOfEventLoop()
  await new Phone(one).register()
  listens()
  const two = await starting
  expect(two.registrar.contactsOf('acme.example', '101')).toHaveLength(1)
})
