import { join } from 'node:path'
import { expect, onTestFinished, test, describe } from 'vitest'
import {
  Retention,
  RETENTION_STEP_MS,
  type RetentionPeriods,
} from '../../../control/observe/retention/retention.ts'
import { RecordingRetention } from '../../../control/observe/retention/recording-retention.ts'
import { transaction, all, execute } from '../../../schema/sql/query.ts'
import { migrate } from '../../../schema/migrations/migrate.ts'
import { openDatabase } from '../../../schema/sqlite/open.ts'
import { addRefusedCalls } from '../../../schema/records/refused-calls.ts'
import { endedCall } from '../../support/books.ts'
import { openControl, startOfTime } from '../../support/control.ts'
import { aRecord } from '../../support/summed-calls.ts'
import { temporaryFolder } from '../../support/temporary-folder.ts'
import { readColumn, readValue, runSql } from '../../support/stored.ts'
import { storeCall } from '../../support/stored-calls.ts'
import { onSqlite } from '../../support/on-sqlite.ts'
import { existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { emptyStore } from '../../support/empty-store.ts'
import { hasPostgres } from '../../support/postgres.ts'
import { sharedDatabase } from '../../support/shared-database.ts'
import { eventually } from '../../support/waiting.ts'

const dayMs = 86_400_000

const folder = temporaryFolder()

async function history(periods: RetentionPeriods) {
  const control = await openControl()
  const { store, deps, logged } = control
  const addCall = (callUuid: string, startedAt: number) =>
    storeCall(store, endedCall(callUuid, 10, { startedAt }), { costMicros: 0, currency: null })
  const addEntry = (at: number) =>
    runSql(
      store,
      `INSERT INTO audit_entry (at, actor, address, action, target, outcome, status, correlation_id)
         VALUES (?, 'a', 'b', 'c', 'd', 'success', 200, 'e')`,
      at,
    )
  const count = (table: string): Promise<unknown> =>
    readValue(store, `SELECT count(*) FROM ${table}`)
  const retention = new Retention(deps, periods)
  return { ...control, retention, addCall, addEntry, count, logged }
}

test('records past their period go, younger ones stay', async () => {
  const { retention, addCall, addEntry, count, store } = await history({
    callRecordDays: 30,
    auditDays: 365,
  })
  await addCall('old', startOfTime - 30 * dayMs - 1)
  await addCall('young', startOfTime - 30 * dayMs)
  await addEntry(startOfTime - 365 * dayMs - 1)
  await addEntry(startOfTime - 365 * dayMs)
  await retention.step()
  expect(await readColumn(store, 'SELECT call_uuid FROM cdr')).toEqual(['young'])
  expect(await count('audit_entry')).toBe(1)
})

test('batch follows batch while something is left to delete, and then it rests', async () => {
  const { retention, addEntry, count } = await history({ callRecordDays: 0, auditDays: 1 })
  for (let entry = 0; entry < 101; entry += 1) await addEntry(0)
  await retention.step()
  expect(await count('audit_entry')).toBe(1)
  expect(retention.pauseMs()).toBe(RETENTION_STEP_MS)
  await retention.step()
  expect(await count('audit_entry')).toBe(0)
  expect(retention.pauseMs()).toBe(10_000)
})

test.each([
  [{ callRecordDays: 1, auditDays: 0 }, [0, 1]],
  [{ callRecordDays: 0, auditDays: 1 }, [1, 0]],
])('0 keeps everything: %j', async (periods, left) => {
  const { retention, addCall, addEntry, count } = await history(periods)
  await addCall('old', 0)
  await addEntry(0)
  await retention.step()
  expect([await count('cdr'), await count('audit_entry')]).toEqual(left)
})

test('one step removes a small batch; the next goes on, until there is a rest of ten minutes', async () => {
  const { retention, addCall, count, store, tick, logged } = await history({
    callRecordDays: 1,
    auditDays: 0,
  })
  await transaction(store, async () => {
    for (let index = 0; index < 250; index += 1) await addCall(`call ${index}`, index)
  })
  const left: unknown[] = []
  for (let step = 0; step < 3; step += 1) {
    await retention.step()
    left.push(await count('cdr'))
  }
  expect(left).toEqual([150, 50, 0])
  expect(logged).toContainEqual({
    level: 'info',
    message: 'records past their retention were deleted',
    fields: { callRecords: 250, auditEntries: 0 },
  })
  await addCall('late', 0)
  await retention.step()
  expect(await count('cdr')).toBe(1)
  tick(600_000)
  await retention.step()
  expect(await count('cdr')).toBe(0)
})

test('no audit entry can be deleted within its retention, or changed', async () => {
  const { retention, addEntry, store, count } = await history({ callRecordDays: 0, auditDays: 30 })
  const remove = () => runSql(store, 'DELETE FROM audit_entry')
  await addEntry(0)
  await expect(remove()).rejects.toThrow('append-only')
  await addEntry(startOfTime)
  await retention.step()
  expect(await count('audit_entry')).toBe(1)
  await expect(remove()).rejects.toThrow('append-only')
  const change = runSql(store, "UPDATE audit_entry SET actor = 'x'")
  await expect(change).rejects.toThrow('append-only')
  expect(await count('audit_entry')).toBe(1)
})

test('the ledger keeps what a call cost, and a late report of it takes nothing again', async () => {
  const control = await history({ callRecordDays: 1, auditDays: 0 })
  const token = await control.key()
  await control.request('/rate-plans', { token, body: { name: 'retail' } })
  const rate = { rate_plan: 'retail', prefix: '', rate_per_minute: '1' }
  await control.request('/rates', { token, body: rate })
  const customer = { name: 'acme', numbers: ['100'], rate_plan: 'retail', balance: '10' }
  const { id } = (await control.request('/customers', { token, body: customer })).data<{
    id: number
  }>()
  const balance = async () =>
    (await control.request(`/customers/${id}/wallet`, { token })).data<{ balance: string }>()
      .balance
  const report = async () => {
    const body = { call_uuid: 'a', caller: '100', callee: '49', billsec: 60 }
    const answer = control.request('/api/ocs/cdr', { token, body })
    for (let turn = 0; turn < 20; turn += 1) await new Promise((done) => setImmediate(done))
    control.flushCalls()
    return answer
  }
  expect((await report()).status).toBe(200)
  expect(await balance()).toBe('9.00')
  control.tick(2 * dayMs)
  await control.retention.step()
  expect([await control.count('cdr'), await control.count('ocs_report')]).toEqual([0, 0])
  expect((await report()).status).toBe(200)
  expect(await balance()).toBe('9.00')
  expect(await control.count("ledger_entry WHERE kind = 'debit'")).toBe(1)
})

onSqlite('file')(
  'a database that is locked for a moment is tried again soon, and further and further apart while it stays so',
  async () => {
    const path = join(folder, 'locked.db')
    const store = openDatabase(path, { busyTimeoutMs: 1 })
    migrate(store.sqlite, 0)
    const other = openDatabase(path)
    onTestFinished(() => [store, other].forEach((each) => each.close()))
    let now = startOfTime
    const logged: string[] = []
    const deps = { store, now: () => now, log: (level: string) => void logged.push(level) }
    const retention = new Retention(deps, { callRecordDays: 1, auditDays: 0 })
    const pass = async (ms: number) => {
      for (const end = now + ms; now < end; now += RETENTION_STEP_MS) await retention.step()
    }
    const left = () => store.sqlite.prepare('SELECT count(*) FROM cdr').pluck().get()
    await storeCall(store, endedCall('old', 10, { startedAt: 0 }), {
      costMicros: 0,
      currency: null,
    })

    other.sqlite.exec('BEGIN IMMEDIATE')
    await pass(1_000)
    expect([left(), logged]).toEqual([1, []])
    other.sqlite.exec('COMMIT')
    await pass(1_000)
    expect([left(), logged]).toEqual([0, ['info']])

    now += 600_000
    other.sqlite.exec('BEGIN IMMEDIATE')
    await pass(3_600_000)
    // The first is not told; the others come after 1, 3, 7 … 1,023 s, then every ten minutes.
    expect(logged.filter((level) => level === 'warn')).toHaveLength(14)
  },
)

test('samples of calls from unknown sources go after 30 days, also where all other records are kept', async () => {
  const { retention, addCall, store, count } = await history({ callRecordDays: 0, auditDays: 0 })
  const stranger = (callUuid: string, startedAt: number) => {
    const call = { startedAt, answeredAt: null, denialCode: 'unknown_source' }
    return storeCall(store, endedCall(callUuid, 0, call), { costMicros: 0, currency: null })
  }
  await stranger('old', startOfTime - 30 * dayMs - 1)
  await stranger('young', startOfTime - 30 * dayMs)
  await addCall('a customer', 0)
  await retention.step()
  const left = await readColumn(store, 'SELECT call_uuid FROM cdr ORDER BY id')
  expect(left).toEqual(['young', 'a customer'])
  expect(await count('cdr')).toBe(2)
})

test('what an OCS elsewhere has not been told yet outlives its period', async () => {
  const { retention, addCall, store } = await history({ callRecordDays: 1, auditDays: 0 })
  await addCall('told', 0)
  await addCall('waiting', 0)
  await runSql(
    store,
    "INSERT INTO cdr_outbox (call_uuid, body, next_attempt_at) VALUES ('waiting', '{}', 0)",
  )
  await retention.step()
  expect(await readColumn(store, 'SELECT call_uuid FROM cdr')).toEqual(['waiting'])
})

test('counts of refused calls go with the records of their time', async () => {
  const { retention, store, count } = await history({ callRecordDays: 1, auditDays: 0 })
  const add = addRefusedCalls(store)
  for (let minute = 0; minute < 150; minute += 1)
    await add({ minute: minute * 60_000, reason: 'unknown_source', calls: 1 })
  await add({ minute: startOfTime, reason: 'overload', calls: 1 })
  await retention.step()
  await retention.step()
  expect(await count('refused_calls')).toBe(1)
})

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

test('with 0 recordings are kept', async () => {
  const { retention, files } = await open(0)
  await retention.step()
  expect(files()).toEqual([0, 1, 2, 3])
})

test('a file that cannot be removed keeps its row, for the next attempt', async () => {
  const { retention, left, folder, logged } = await open(3)
  rmSync(join(folder, `${uuid(3)}.wav`))
  mkdirSync(join(folder, `${uuid(3)}.wav`))
  await retention.step()
  expect([(await left()).length, logged]).toEqual([4, ['old recordings could not be removed']])
})

test('a recording whose file another instance has is left to it, and one that no instance has removed for 30 days loses its row', async () => {
  const { retention, left, files, folder } = await open(2, { hasOthers: true })
  // The disk of another instance has it.
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

const now = 100 * day

const record = (n: number, startedAt: number) =>
  aRecord({ call_uuid: `uuid-${n}`, start_stamp: startedAt })

describe.runIf(hasPostgres)('retention of several instances', () => {
  test('they delete what is old together, a batch by one instance at a time, and nothing that is younger', async () => {
    const { open } = await sharedDatabase()
    const stores = [await open(), await open(), await open()]
    const [store] = stores
    if (store === undefined) throw new Error('no node')
    const records = Array.from({ length: 350 }, (_, n) => record(n, n < 300 ? day : 99 * day))
    await execute(store, store.db.insertInto('cdr').values(records))
    await runSql(
      store,
      `INSERT INTO audit_entry (at, actor, address, action, target, outcome, status, correlation_id)
       SELECT n, 'a', 'b', 'c', 'd', 'success', 200, 'e' FROM generate_series(1, 150) AS n`,
    )
    const logged: unknown[] = []
    let at = now
    const instances = stores.map(
      (each) =>
        new Retention(
          { store: each, now: () => at, log: (...line) => logged.push(line) },
          { callRecordDays: 30, auditDays: 30 },
        ),
    )
    const left = () =>
      Promise.all(
        ['cdr', 'audit_entry'].map((table) => readValue(store, `SELECT count(*) FROM ${table}`)),
      )
    // A server that many tests use may refuse a connection: the instance then tries again after a
    // second.
    await eventually(async () => {
      at += 2_000
      await Promise.all(instances.map((instance) => instance.step()))
      expect(await left()).toEqual([50, 0])
    })
    await Promise.all(instances.map((instance) => instance.step()))
    expect(await left()).toEqual([50, 0])
    expect(logged.filter((line) => (line as string[])[0] === 'warn')).toEqual([])
  })
})
