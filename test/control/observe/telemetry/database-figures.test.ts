import { describe, expect, test } from 'vitest'
import { databaseFigures } from '../../../../control/observe/telemetry/telemetry.ts'
import { hasPostgres } from '../../../support/postgres.ts'
import { localDatabase, sharedDatabase } from '../../../support/shared-database.ts'

test('the size of a file and its free space are known', async () => {
  const local = localDatabase()
  const figures = await databaseFigures(local, () => 0)()
  expect(figures.bytes).toBeGreaterThan(100_000)
  local.sqlite?.exec('CREATE TABLE large (text TEXT); INSERT INTO large VALUES (zeroblob(1000000))')
  local.sqlite?.exec('DROP TABLE large')
  const { bytes, free_bytes: free } = await databaseFigures(local, () => 0)()
  expect(bytes).toBeGreaterThan(figures.bytes)
  expect(free).toBeGreaterThan(1_000_000)
  expect(free).toBeLessThan(bytes)
})

describe.runIf(hasPostgres)('on PostgreSQL', () => {
  test('the size of the database is read once a minute', async () => {
    const { open } = await sharedDatabase()
    const store = await open()
    let now = 0
    const read = databaseFigures(store, () => now)
    const first = await read()
    expect(first.bytes).toBeGreaterThan(1_000_000)
    expect(first.free_bytes).toBeNull()
    await store.statements.execute(
      'CREATE TABLE large AS SELECT repeat(md5(n::text), 8) AS text FROM generate_series(1, 20000) n',
    )
    now = 59_999
    expect(await read()).toEqual(first)
    now = 60_000
    expect((await read()).bytes).toBeGreaterThan(first.bytes + 4_000_000)
  })
})
