import { expect, test } from 'vitest'
import { noteRulesWithoutRelay } from '../../../engine/media/create-media.ts'
import { execute } from '../../../schema/sql/query.ts'
import { emptyStore } from '../../support/empty-store.ts'

test('a start without relays tells of rules that need one', async () => {
  const store = emptyStore()
  const notes = async (): Promise<string[]> => {
    const logged: string[] = []
    await noteRulesWithoutRelay(store, (level, message) => void logged.push(`${level} ${message}`))
    return logged
  }
  const stamps = { created_at: 0, updated_at: 0 }
  await execute(store, store.db.insertInto('carrier').values({ name: 'plain', ...stamps }))
  await execute(
    store,
    store.db.insertInto('tenant').values({ slug: 'a', name: 'A', media: 'bypass', created_at: 0 }),
  )
  expect(await notes()).toEqual([])
  for (const [name, rule] of Object.entries({
    a: { media: 'anchor' },
    b: { codecs: '["PCMA"]' },
  } as const))
    await execute(store, store.db.insertInto('carrier').values({ name, ...stamps, ...rule }))
  store.sqlite.exec("UPDATE tenant SET dtmf = 'info'")
  expect(await notes()).toEqual([
    'warn media rules of 2 carriers need RTPENGINE, and have no effect',
    'warn media rules of 1 tenants need RTPENGINE, and have no effect',
  ])
})
