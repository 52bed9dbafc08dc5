import { readdirSync, writeFileSync, mkdtempSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { ScheduledBackups } from '../../../engine/backups/scheduled-backups.ts'
import { temporaryFolder } from '../../support/temporary-folder.ts'

const root = temporaryFolder()
const hour = 3_600_000
const start = Date.UTC(2026, 10, 22, 9)

function scheduled(folder = mkdtempSync(join(root, 'backups-'))) {
  const time = { now: start }
  const state = { isFailing: false, problem: undefined as Error | undefined }
  const logged: string[] = []
  const backups = new ScheduledBackups({
    plan: { folder, intervalMs: 24 * hour, keep: 3 },
    databasePath: '/var/lib/tollgate.db',
    make: (file) => {
      if (state.problem) return Promise.reject(state.problem)
      writeFileSync(file, '')
      return Promise.resolve()
    },
    isStorageFailing: () => state.isFailing,
    now: () => time.now,
    log: (level) => logged.push(level),
  })
  const pass = async (ms: number) => {
    time.now += ms
    backups.tick()
    await Promise.resolve()
    await new Promise((resolve) => setImmediate(resolve))
  }
  return { folder, backups, pass, state, logged, files: () => readdirSync(folder).toSorted() }
}

test('a backup is made at once and then every interval; the newest are kept, and nothing else is touched', async () => {
  const { folder, pass, files } = scheduled()
  writeFileSync(join(folder, 'tollgate-mine.db'), '')
  await pass(0)
  expect(files()).toEqual(['tollgate-20261122T090000Z.db', 'tollgate-mine.db'])
  for (let day = 0; day < 4; day += 1) {
    await pass(23 * hour)
    await pass(hour)
  }
  expect(files()).toEqual([
    'tollgate-20261124T090000Z.db',
    'tollgate-20261125T090000Z.db',
    'tollgate-20261126T090000Z.db',
    'tollgate-mine.db',
  ])
})

test('a restart makes no further one before its time', async () => {
  const first = scheduled()
  await first.pass(0)
  const second = scheduled(first.folder)
  await second.pass(23 * hour)
  expect(second.files()).toHaveLength(1)
  await second.pass(hour)
  expect(second.files()).toHaveLength(2)
})

test('a failure is an error in the log and in the metrics, removes nothing, and is tried again', async () => {
  const { pass, state, logged, backups, files } = scheduled()
  await pass(0)
  state.problem = new Error('no space left')
  await pass(24 * hour)
  await pass(60_000)
  expect(logged).toEqual(['info', 'error'])
  expect(backups.telemetry()).toEqual({
    backups_made_total: 1,
    backups_failed_total: 1,
    backup_age_seconds: 86_460,
  })
  state.problem = undefined
  await pass(600_000)
  expect(files()).toHaveLength(2)
  expect(backups.telemetry()).toMatchObject({ backups_made_total: 2, backup_age_seconds: 0 })
})

test('while nothing can be stored no backup takes the last room', async () => {
  const { pass, state, files } = scheduled()
  state.isFailing = true
  await pass(0)
  expect(files()).toEqual([])
})
