import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { FileChanges } from '../../../schema/changes/file-changes.ts'
import { openDatabase } from '../../../schema/sqlite/open.ts'
import type { LocalStore } from '../../../schema/storage/store.ts'
import { ManualTime } from '../../support/manual-time.ts'
import { temporaryFolder } from '../../support/temporary-folder.ts'
import { turnOfEventLoop } from '../../support/waiting.ts'

let [own, other]: LocalStore[] = []
let time: ManualTime
let changes: FileChanges
const log: string[] = []

beforeEach(async () => {
  const path = join(temporaryFolder(), 'tollgate.db')
  ;[own, other] = [openDatabase(path), openDatabase(path)]
  own.sqlite.exec('CREATE TABLE t (x)')
  time = new ManualTime(0)
  log.length = 0
  const { schedule, every } = time
  changes = new FileChanges(own, { schedule, every, log: (level) => log.push(level) })
})
afterEach(async () => {
  await changes.stop()
  own?.close()
  other?.close()
})

test('a commit of another connection is told once within a second, an own one never', async () => {
  let reloads = 0
  changes.follow({ topics: ['rate'], reload: async () => void (reloads += 1) })
  await changes.start()
  own?.sqlite.exec('INSERT INTO t VALUES (1)')
  time.advance(1_000)
  expect(reloads).toBe(0)
  other?.sqlite.exec('INSERT INTO t VALUES (2)')
  time.advance(1_000)
  expect(reloads).toBe(1)
  await turnOfEventLoop()
  for (let second = 0; second < 5; second += 1) {
    time.advance(1_000)
    await turnOfEventLoop()
  }
  expect(reloads).toBe(1)
})
