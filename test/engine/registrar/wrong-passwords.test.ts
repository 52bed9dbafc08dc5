import { describe, expect, test } from 'vitest'
import { WrongPasswords } from '../../../engine/registrar/wrong-passwords.ts'
import type { Store } from '../../../schema/storage/store.ts'
import { ManualTime } from '../../support/manual-time.ts'
import { eachDatabase } from '../../support/shared-database.ts'
import { readRows, runSql } from '../../support/stored.ts'

const startedAt = Date.UTC(2026, 0, 1)
const hour = 3_600_000

async function counting(store: Store) {
  await runSql(store, "INSERT INTO tenant (id, slug, name, created_at) VALUES (1, 'acme', 'a', 0)")
  const time = new ManualTime(startedAt)
  const logged: string[] = []
  const counter = () =>
    new WrongPasswords({
      store,
      wallNow: time.now,
      schedule: time.schedule,
      log: (_level, message) => void logged.push(message),
    })
  const rows = () =>
    readRows(
      store,
      'SELECT extension_id, source, failures, first_at, last_at FROM wrong_password ORDER BY hour, extension_id, source',
    )
  return { time, logged, counter, rows }
}

describe.each(eachDatabase)('wrong passwords on $database', ({ open }) => {
  test('are counted by hour, extension and source, by all processes together, for fifteen days', async () => {
    const store = await open()
    const { time, counter, rows } = await counting(store)
    const [one, other] = [counter(), counter()]
    const guess = { tenantId: 1, extensionId: 7 }
    one.add({ ...guess, address: '192.0.2.1' })
    time.advance(500)
    other.add({ ...guess, address: '192.0.2.1' })
    one.add({ ...guess, address: '2001:db8::1:2:3:4' })
    one.add({ address: '192.0.2.1', tenantId: 1, extensionId: undefined })
    // Its tenant is gone: the others are stored all the same.
    one.add({ address: '192.0.2.1', tenantId: 99, extensionId: 9 })
    await one.stop()
    await other.stop()
    const at = startedAt + 500
    expect(await rows()).toEqual([
      { extension_id: 0, source: '192.0.2.1', failures: 1, first_at: at, last_at: at },
      { extension_id: 7, source: '192.0.2.1', failures: 2, first_at: startedAt, last_at: at },
      { extension_id: 7, source: '2001:db8::/64', failures: 1, first_at: at, last_at: at },
    ])
    time.advance(15 * 24 * hour + hour)
    one.add({ ...guess, address: '192.0.2.2' })
    await one.stop()
    expect(await rows()).toMatchObject([{ source: '192.0.2.2', failures: 1 }])
  })

  test('of more sources than 2,000 an hour are counted together, and none is lost while nothing can be stored', async () => {
    const store = await open()
    const { counter, rows, logged } = await counting(store)
    const counted = counter()
    await runSql(store, 'ALTER TABLE wrong_password RENAME TO away')
    for (let index = 0; index < 2_005; index += 1)
      counted.add({ address: `10.0.${index >> 8}.${index & 255}`, tenantId: 1, extensionId: 7 })
    await counted.stop()
    expect(logged).toEqual(['counts of wrong passwords cannot be stored yet'])
    await runSql(store, 'ALTER TABLE away RENAME TO wrong_password')
    await counted.stop()
    const stored = await rows()
    expect([stored.length, stored[0]]).toMatchObject([2_001, { source: '', failures: 5 }])
  })
})
