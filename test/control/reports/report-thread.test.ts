import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { expect, onTestFinished, test, describe } from 'vitest'
import type { RequestedPage } from '../../../control/http/envelope.ts'
import type { ReportRequest } from '../../../control/reports/report-chunks.ts'
import { ReportThread } from '../../../control/reports/report-thread.ts'
import { StatementThread } from '../../../control/reports/statement-thread.ts'
import { temporaryFolder } from '../../support/temporary-folder.ts'
import { Reports } from '../../../control/reports/reports.ts'
import type { ReportDatabase } from '../../../control/reports/report-worker.ts'
import { migrate } from '../../../schema/migrations/migrate.ts'
import { openDatabase } from '../../../schema/sqlite/open.ts'
import type { Store } from '../../../schema/storage/store.ts'
import { DatabaseUnavailable } from '../../../schema/sql/failure.ts'
import { execute } from '../../../schema/sql/query.ts'
import { hasPostgres } from '../../support/postgres.ts'
import { sharedDatabase } from '../../support/shared-database.ts'
import { aRecord } from '../../support/summed-calls.ts'
import { threadFile } from '../../support/thread-file.ts'
import { runScript, runSql } from '../../support/stored.ts'
import { eventually } from '../../support/waiting.ts'

/**
 * Speaks as `report-worker.ts` does; its reports are what their format says, or as long as their
 * page.
 */
const stub = `
import { parentPort, workerData } from 'node:worker_threads'
const left = new Map()
const asked = []
parentPort.on('message', ({ report, request, isOver }) => {
  if (isOver) return void asked.push('over ' + report + ', ' + (left.get(report)?.length ?? 0) + ' left')
  if (request) left.set(report, [workerData.path, request.format, ...asked])
  if (request?.page) left.set(report, Array(request.page.limit).fill('piece'))
  if (request?.format === 'csv') process.exit(1)
  if (request?.format === 'ndjson') return parentPort.postMessage({ report, error: 'no disk' })
  const text = left.get(report)?.shift()
  parentPort.postMessage(text === undefined ? { report } : { report, bytes: new TextEncoder().encode(text) })
})
`

const whole = {
  sort: { by: 'start', isDescending: false },
  page: undefined,
  withTotals: true,
} as const

function open() {
  const file = join(temporaryFolder(), 'stub.mjs')
  writeFileSync(file, stub)
  const thread = new ReportThread(pathToFileURL(file), { path: 'a path' }, () => undefined)
  onTestFinished(() => thread.stop())
  const begin = (format: ReportRequest['format'], page?: RequestedPage) => {
    const filter = { tenantId: null, from: 0, before: 1 }
    return thread.open({ ...whole, filter, format, page })
  }
  const read = async (format: ReportRequest['format']): Promise<string> => {
    let text = ''
    for await (const bytes of begin(format)) text += `${new TextDecoder().decode(bytes)};`
    return text
  }
  return { begin, read }
}

test('a thread that ends fails the reports that wait for it; the next one starts another', async () => {
  const { read } = open()
  await expect(read('csv')).rejects.toThrow('has ended')
  expect(await read('json')).toBe('a path;json;')
})

test('a report whose thread has ended between two pieces fails, it does not seem complete', async () => {
  const { begin, read } = open()
  const drain = async (pieces: AsyncGenerator<Uint8Array, void>): Promise<void> => {
    for (;;) if ((await pieces.next()).done === true) return
  }
  const pieces = begin('json', { page: 1, limit: 20 })
  expect((await pieces.next()).done).toBe(false)
  await expect(read('csv')).rejects.toThrow('has ended')
  await expect(drain(pieces)).rejects.toThrow('has ended')
  const others = begin('json', { page: 1, limit: 20 })
  await others.next()
  await expect(read('csv')).rejects.toThrow('has ended')
  expect(await read('json')).toBe('a path;json;')
  await expect(drain(others)).rejects.toThrow('has ended')
})

test('only a few pieces of a report are produced ahead of its reader', async () => {
  const { begin, read } = open()
  const pieces = begin('json', { page: 1, limit: 20 })
  await pieces.next()
  // Answers come in order: whatever was asked for before this has been made.
  await read('json')
  await pieces.return()
  expect(await read('json')).toBe('a path;json;over 2, 0 left;over 1, 16 left;')
})

const file = await threadFile(new URL('../../../control/reports/report-worker.ts', import.meta.url))

function reader(place: ReportDatabase) {
  const thread = new ReportThread(file, place, () => undefined)
  onTestFinished(() => thread.stop())
  return async (): Promise<string[]> => {
    let text = ''
    const filter = { tenantId: null, from: 0, before: 10_000 }
    for await (const bytes of thread.open({ ...whole, filter, format: 'ndjson' }))
      text += new TextDecoder().decode(bytes)
    return text.trim().split('\n')
  }
}

const record = (n: number) => aRecord({ call_uuid: `uuid-${n}`, start_stamp: n })

test('the thread keeps the sums of an SQLite file, and answers from them', async () => {
  const path = join(temporaryFolder(), 'a.db')
  const store = openDatabase(path)
  onTestFinished(() => store.close())
  migrate(store.sqlite, 0)
  const records = Array.from({ length: 30 }, (_, n) => record(n))
  await execute(store, store.db.insertInto('cdr').values(records))
  const thread = new ReportThread(file, { path }, () => undefined)
  const reports = new Reports(thread, { now: () => 0, log: () => undefined })
  onTestFinished(() => reports.stop())
  expect(await reports.rollUp({ now: 0, retainedFrom: undefined })).toEqual({
    added: 30,
    behind: 0,
    hasMoreBlocks: false,
  })
  const found = await reports.summarize({
    tenantId: null,
    from: 0,
    before: 100,
    groupBy: 'caller',
    filters: {},
    orderBy: 'count',
    limit: 5,
  })
  expect(found).toMatchObject({ source: 'sums', totals: { groups: 1, calls: 30 } })
})

describe.runIf(hasPostgres)('reports on PostgreSQL', () => {
  test('they are produced by the thread, from its own connection, whole and in order', async () => {
    const { url, open } = await sharedDatabase()
    const store = await open()
    const records = Array.from({ length: 1_200 }, (_, n) => record(n))
    await execute(store, store.db.insertInto('cdr').values(records))
    const lines = await reader({ url })()
    expect(lines.map((line) => (JSON.parse(line) as { call_uuid: string }).call_uuid)).toEqual(
      records.map(({ call_uuid: uuid }) => uuid),
    )
  })

  test('a server that does not answer fails the report as the rest of the API', async () => {
    const read = reader({ url: 'postgres://me:secret@127.0.0.1:1/nothing' })
    await expect(read()).rejects.toThrow(DatabaseUnavailable)
  })
})

function threadAt(place: ReportDatabase) {
  const maker = new ReportThread(file, place, () => undefined)
  onTestFinished(() => maker.stop())
  return { maker, thread: new StatementThread(maker) }
}

function openFile() {
  const path = join(temporaryFolder(), 'a.db')
  const store = openDatabase(path)
  onTestFinished(() => store.close())
  migrate(store.sqlite, 0)
  return { path, store }
}

const hash = '00ff'.repeat(16)

/** A key: a row with numbers, texts, bytes and nulls. */
const fill = (store: Store) =>
  runScript(
    store,
    `INSERT INTO application_key (uuid, kind, name, key_prefix, key_hash, scopes, rate_limit_rpm, created_at)
     VALUES ('u-1', 'sbc', 'one', 'sbc_live_abc', ${'sqlite' in store ? `x'${hash}'` : `'\\x${hash}'`}, '["*"]', 600, 3)`,
  )

async function expectSameRows(store: Store, { thread }: ReturnType<typeof threadAt>) {
  const mark = store.statements.isShared ? '$1' : '?'
  const sql = `SELECT * FROM application_key WHERE name = ${mark}`
  const [here, apart] = [store.statements.prepare(sql), thread.prepare(sql, null)]
  const rows = await here.all(['one'])
  expect(rows).toMatchObject([{ uuid: 'u-1', key_hash: Buffer.from(hash, 'hex') }])
  expect(await apart.all(['one'])).toEqual(rows)
  expect(await apart.get(['one'])).toEqual(rows[0])
  expect(await apart.arrays(['one'])).toEqual(await here.arrays(['one']))
  expect([await apart.get(['no']), await apart.all(['no'])]).toEqual([undefined, []])
  await expect(thread.prepare('SELECT id FROM nowhere', null).all([])).rejects.toThrow(/nowhere/)
}

test('a statement gives in the thread what it gives here, sees what was committed a moment ago, and writes nothing', async () => {
  const { path, store } = openFile()
  const opened = threadAt({ path })
  await fill(store)
  await expectSameRows(store, opened)
  await runSql(store, "UPDATE application_key SET name = 'two'")
  expect(await opened.thread.prepare('SELECT name FROM application_key', null).all([])).toEqual([
    { name: 'two' },
  ])
  const remove = opened.thread.prepare('DELETE FROM application_key RETURNING id', null)
  await expect(remove.all([])).rejects.toThrow('readonly')
  await expect(remove.run([])).rejects.toThrow('reads')
})

test('a question whose thread is restarted is asked once more', async () => {
  const { path, store } = openFile()
  const { maker, thread } = threadAt({ path })
  await fill(store)
  const names = thread.prepare('SELECT name FROM application_key', null)
  const asked = names.all([])
  await maker.stop()
  expect(await asked).toEqual([{ name: 'one' }])
})

describe.runIf(hasPostgres)('on PostgreSQL', () => {
  test('a statement gives in the thread what it gives here', async () => {
    const { url, open } = await sharedDatabase()
    const store = await open()
    await fill(store)
    await expectSameRows(store, threadAt({ url }))
  })

  test('a search that the server ends is refused with what to do, and takes no connection of calls', async () => {
    const { url, open } = await sharedDatabase()
    const store = await open()
    const { thread } = threadAt({ url })
    const slow = Promise.allSettled(
      Array.from({ length: 8 }, () =>
        thread.prepare('SELECT pg_sleep(600)::text AS slept', null).all([]),
      ),
    )
    let isOver = false
    void slow.then(() => (isOver = true))
    const cancel = store.statements.prepare(
      `SELECT pg_cancel_backend(pid) AS ended FROM pg_stat_activity
       WHERE datname = current_database() AND state = 'active' AND query LIKE '%pg_sleep(600)%' AND pid <> pg_backend_pid()`,
    )
    // As the statement timeout does.
    await eventually(async () => {
      await cancel.all([])
      expect(isOver).toBe(true)
    })
    for (const each of await slow)
      expect(each).toMatchObject({ reason: { status: 503, code: 'search_too_long' } })
  })
})
