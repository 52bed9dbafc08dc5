/** Statements that read, in the real thread, on both databases. */
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { ReportThread, StatementThread } from '../../../control/reports/report-thread.ts'
import type { ReportDatabase } from '../../../control/reports/report-worker.ts'
import { migrate } from '../../../schema/migrate.ts'
import { openDatabase, type Store } from '../../../schema/open.ts'
import { hasPostgres } from '../../support/postgres.ts'
import { sharedDatabase } from '../../support/shared-database.ts'
import { runScript, runSql } from '../../support/stored.ts'
import { temporaryFolder } from '../../support/temporary-folder.ts'
import { threadFile } from '../../support/thread-file.ts'
import { eventually } from '../../support/waiting.ts'

const file = await threadFile(new URL('../../../control/reports/report-worker.ts', import.meta.url))

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
