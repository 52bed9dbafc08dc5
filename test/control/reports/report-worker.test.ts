/** The thread of reports, on both databases. */
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { Reports } from '../../../control/reports/reports.ts'
import { ReportThread } from '../../../control/reports/report-thread.ts'
import type { ReportDatabase } from '../../../control/reports/report-worker.ts'
import { migrate } from '../../../schema/migrate.ts'
import { openDatabase } from '../../../schema/open.ts'
import { DatabaseUnavailable } from '../../../schema/sql/failure.ts'
import { execute } from '../../../schema/sql/query.ts'
import { hasPostgres } from '../../support/postgres.ts'
import { sharedDatabase } from '../../support/shared-database.ts'
import { temporaryFolder } from '../../support/temporary-folder.ts'
import { threadFile } from '../../support/thread-file.ts'

const file = await threadFile(new URL('../../../control/reports/report-worker.ts', import.meta.url))

function reader(place: ReportDatabase) {
  const thread = new ReportThread(file, place, () => undefined)
  onTestFinished(() => thread.stop())
  return async (): Promise<string[]> => {
    let text = ''
    const filter = { tenantId: null, from: 0, before: 10_000, disposition: undefined }
    for await (const bytes of thread.open({ filter, format: 'ndjson', page: undefined }))
      text += new TextDecoder().decode(bytes)
    return text.trim().split('\n')
  }
}

const record = (n: number) => ({
  call_uuid: `uuid-${n}`,
  call_id: `${n}@caller`,
  direction: 'inbound' as const,
  caller_id_number: '1',
  caller_id_name: null,
  destination_number: '2',
  start_stamp: n,
  answer_stamp: null,
  end_stamp: n,
  post_dial_delay_ms: null,
  duration: 0,
  billsec: 0,
  disposition: 'FAILED' as const,
  sip_code: 503,
  hangup_cause: 'NONE',
  hangup_by: 'system' as const,
  attempts: '[]',
  cost_micros: 0,
  source_address: '192.0.2.1',
})

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
