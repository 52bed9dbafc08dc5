import { expect, test } from 'vitest'
import { prefixOf, noteRulesWithoutRelay } from '../../../engine/media/create-media.ts'
import { emptyStore } from '../../support/empty-store.ts'

const one = prefixOf('tollgate-0', '/data/tollgate.db', 'a')

test.each([
  ['in containers of the same name', prefixOf('tollgate-0', '/data/tollgate.db', 'b')],
  ['with a copy of a database', prefixOf('tollgate-1', '/data/tollgate.db', 'a')],
  ['beside another on one machine', prefixOf('tollgate-0', '/data/other.db', 'a')],
])('an installation %s takes no session of another for its own', (_, other) => {
  expect(other).not.toBe(one)
  expect(prefixOf('tollgate-0', '/data/tollgate.db', 'a')).toBe(one)
})

test('a start without relays tells of rules that need one', async () => {
  const store = emptyStore()
  const notes = async (): Promise<string[]> => {
    const logged: string[] = []
    await noteRulesWithoutRelay(store, (level, message) => void logged.push(`${level} ${message}`))
    return logged
  }
  const insert = (table: string, values: string) =>
    store.sqlite.exec(`INSERT INTO ${table} ${values}`)
  insert('carrier', "(name, created_at, updated_at) VALUES ('plain', 0, 0)")
  insert('tenant', "(slug, name, media, created_at) VALUES ('a', 'A', 'bypass', 0)")
  expect(await notes()).toEqual([])
  insert('carrier', "(name, media, created_at, updated_at) VALUES ('a', 'anchor', 0, 0)")
  insert('carrier', `(name, codecs, created_at, updated_at) VALUES ('b', '["PCMA"]', 0, 0)`)
  store.sqlite.exec("UPDATE tenant SET dtmf = 'info'")
  expect(await notes()).toEqual([
    'warn media rules of 2 carriers need RTPENGINE, and have no effect',
    'warn media rules of 1 tenants need RTPENGINE, and have no effect',
  ])
})
