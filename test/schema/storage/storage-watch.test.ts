import { copyFileSync, existsSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import Sqlite from 'better-sqlite3'
import { expect, onTestFinished, test } from 'vitest'
import { saveLostDatabase } from '../../../schema/sqlite/copy.ts'
import { migrate } from '../../../schema/migrations/migrate.ts'
import { openDatabase } from '../../../schema/sqlite/open.ts'
import type { StorageProblem } from '../../../schema/storage/storage.ts'
import { StorageWatch } from '../../../schema/storage/storage-watch.ts'
import { ManualTime } from '../../support/manual-time.ts'
import { turnOfEventLoop } from '../../support/waiting.ts'
import { temporaryFolder } from '../../support/temporary-folder.ts'

const folder = temporaryFolder()
let count = 0

function watched() {
  const path = join(folder, `${++count}.db`)
  const store = openDatabase(path, { busyTimeoutMs: 0 })
  migrate(store.sqlite, 0)
  const time = new ManualTime(0)
  const told: (StorageProblem | undefined)[] = []
  const watch = new StorageWatch({
    store,
    schedule: time.schedule,
    every: time.every,
    onLogGone: () => undefined,
    onChange: (problem) => told.push(problem),
  })
  onTestFinished(() => {
    watch.stop()
    store.close()
  })
  const write = () => store.sqlite.exec("INSERT INTO setting VALUES ('written', '1')")
  const code = () => store.storage.problem?.code
  const pass = async (ms: number): Promise<void> => {
    for (let passed = 0; passed < ms; passed += 250) {
      time.advance(250)
      await turnOfEventLoop()
      // A disk takes as long as it takes.
      await store.writeAhead?.sync().catch(() => undefined)
      await turnOfEventLoop()
    }
  }
  return { path, store, time, pass, told, watch, write, code }
}

test('on a quiet system a full disk is known within seven seconds, and its end within two', async () => {
  const { store, pass, told, code } = watched()
  store.sqlite.pragma('query_only = ON')
  await pass(7_500)
  expect(code()).toBe('commits_fail')
  expect(told).toMatchObject([{ reason: expect.stringContaining('readonly') as string }])
  store.sqlite.pragma('query_only = OFF')
  await pass(1_500)
  expect(told).toHaveLength(2)
  expect(code()).toBeUndefined()
})

test('failures of less than two seconds reject no write', () => {
  const { store, time, told } = watched()
  const group = {}
  for (let round = 0; round < 10; round += 1) {
    store.storage.failing(group, new Error('disk I/O error'))
    time.advance(1_900)
    expect(store.storage.problem).toBeUndefined()
    store.storage.working(group)
    time.advance(250)
  }
  store.storage.failing(group, new Error('disk I/O error'))
  time.advance(2_500)
  expect(told).toEqual([{ code: 'commits_fail', reason: 'disk I/O error' }])
})

test.each([
  ['removed', (path: string) => rmSync(path)],
  ['moved', (path: string) => renameSync(path, `${path}.moved`)],
  [
    'replaced',
    (path: string) => {
      copyFileSync(path, `${path}.copy`)
      renameSync(`${path}.copy`, path)
    },
  ],
])('a database that was %s takes no write any more; what it held can still be kept', (_, harm) => {
  const { path, store, time, watch, write, code } = watched()
  harm(path)
  time.advance(500)
  expect(code()).toBe('database_gone')
  expect(write).toThrow('readonly')
  watch.stop()
  write()
  const copy = new Sqlite(saveLostDatabase(store, 0), { readonly: true })
  const rows = copy.prepare("SELECT value FROM setting WHERE name = 'written'").all()
  copy.close()
  expect(rows).toHaveLength(1)
})

test('a database that comes back is used again', () => {
  const { path, time, told, write, code } = watched()
  renameSync(path, `${path}.moved`)
  time.advance(500)
  renameSync(`${path}.moved`, path)
  time.advance(500)
  expect(code()).toBeUndefined()
  expect(told).toHaveLength(2)
  write()
})

test('a write-ahead log that was removed is made anew, and nothing of it is lost', () => {
  const { path, time, write, code } = watched()
  write()
  rmSync(`${path}-wal`)
  time.advance(500)
  expect(code()).toBeUndefined()
  expect(existsSync(`${path}-wal`)).toBe(true)
  const other = new Sqlite(path, { readonly: true })
  onTestFinished(() => void other.close())
  const rows = other.prepare("SELECT value FROM setting WHERE name = 'written'").all()
  expect(rows).toHaveLength(1)
})
