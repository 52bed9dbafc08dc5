import { existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { RecordingRetention } from '../../../../control/observe/retention/retention.ts'
import { all, execute } from '../../../../schema/sql/query.ts'
import { emptyStore } from '../../../support/empty-store.ts'
import { temporaryFolder } from '../../../support/temporary-folder.ts'

const day = 86_400_000
const uuid = (count: number) => `019ab0c4-1e7f-7a37-9d1f-0f6a5f5e9c1${count}`

async function open(days: number, { hasOthers = false, today = 100 } = {}) {
  const folder = temporaryFolder()
  const store = emptyStore()
  for (const age of [0, 1, 2, 3]) {
    const row = { call_uuid: uuid(age), tenant_id: null, started_at: (100 - age) * day }
    const file = { duration_ms: 1, bytes: 1, sha256: '' }
    await execute(store, store.db.insertInto('recording').values({ ...row, ...file }))
    writeFileSync(join(folder, `${uuid(age)}.wav`), 'x')
  }
  const logged: string[] = []
  const retention = new RecordingRetention({
    store,
    hasOthers,
    now: () => today * day + 1,
    config: { recording: { folder }, retention: { recordingDays: days } },
    log: (_, message) => void logged.push(message),
  })
  const left = async () => {
    const query = store.db.selectFrom('recording').select('call_uuid').orderBy('started_at', 'desc')
    return (await all(store, query)).map((row) => row.call_uuid)
  }
  const files = () => [0, 1, 2, 3].filter((age) => existsSync(join(folder, `${uuid(age)}.wav`)))
  return { retention, left, files, logged, folder }
}

test('recordings past their retention are removed, file and row', async () => {
  const { retention, left, files, logged } = await open(2)
  await retention.step()
  expect([await left(), files()]).toEqual([
    [uuid(0), uuid(1)],
    [0, 1],
  ])
  expect(logged).toHaveLength(1)
})

test('a file that cannot be removed keeps its row, for the next attempt', async () => {
  const { retention, left, folder, logged } = await open(3)
  rmSync(join(folder, `${uuid(3)}.wav`))
  mkdirSync(join(folder, `${uuid(3)}.wav`))
  await retention.step()
  expect([(await left()).length, logged]).toEqual([4, ['old recordings could not be removed']])
})

test('a recording whose file another node has is left to it, and one that no node has removed for 30 days loses its row', async () => {
  const { retention, left, files, folder } = await open(2, { hasOthers: true })
  // The disk of another node has it.
  rmSync(join(folder, `${uuid(3)}.wav`))
  await retention.step()
  expect([await left(), files()]).toEqual([
    [uuid(0), uuid(1), uuid(3)],
    [0, 1],
  ])
  const later = await open(2, { hasOthers: true, today: 130 })
  rmSync(join(later.folder, `${uuid(3)}.wav`))
  await later.retention.step()
  expect([await later.left(), later.files()]).toEqual([[], []])
})
