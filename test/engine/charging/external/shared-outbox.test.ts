/** CDRs for an external OCS on PostgreSQL: several processes deliver from one outbox. */
import { afterEach, describe, expect, test } from 'vitest'
import { ExternalCharging } from '../../../../engine/charging/external/external-charging.ts'
import { MemoryFile } from '../../../../schema/journal-file.ts'
import { CallJournal } from '../../../../schema/journal/journal.ts'
import { endedCall } from '../../../support/books.ts'
import { FakeOcs } from '../../../support/fake-ocs.ts'
import { hasPostgres } from '../../../support/postgres.ts'
import { sharedDatabase } from '../../../support/shared-database.ts'
import { eventually } from '../../../support/waiting.ts'

const schedule = (work: () => void, delayMs: number): (() => void) => {
  const timer = setTimeout(work, delayMs)
  return () => clearTimeout(timer)
}

describe.runIf(hasPostgres)('an outbox that several processes share', () => {
  const open: ExternalCharging[] = []
  afterEach(async () => {
    for (const charging of open.splice(0)) await charging.stop()
  })

  test('each CDR is delivered by one of them, and its cost is in its record', async () => {
    const ocs = new FakeOcs(() => ({ kind: 'answer', status: 200, body: { cost: '0.50' } }))
    await ocs.start()
    const database = await sharedDatabase()
    const log: string[] = []
    for (let index = 0; index < 3; index += 1) {
      const store = await database.open()
      const journal = new CallJournal(new MemoryFile(), {
        ...{ storage: store.storage, schedule, log: () => undefined },
      })
      const charging = new ExternalCharging({
        ...{ store, journal, url: ocs.url, token: undefined, timeoutMs: 5_000, schedule },
        ...{ failMode: 'closed', now: Date.now, wallNow: Date.now, random: () => 0.5 },
        log: (level, message) => void log.push(`${level} ${message}`),
      })
      await charging.start()
      open.push(charging)
    }
    await Promise.all(
      Array.from({ length: 60 }, async (_, index) =>
        open[index % 3]?.report(endedCall(`call-${index}`, 7)),
      ),
    )
    const store = await database.open()
    const costs = store.db
      .selectFrom('cdr')
      .select('cost_micros')
      .where('cost_micros', '=', 500_000)
    const { sql, parameters } = costs.compile()
    await eventually(async () =>
      expect(await store.statements.prepare(sql).all(parameters as readonly number[])).toHaveLength(
        60,
      ),
    )
    expect(new Set(ocs.seen.map(({ body }) => body.call_uuid))).toEqual(
      new Set(Array.from({ length: 60 }, (_, index) => `call-${index}`)),
    )
    expect(log).toEqual([])
    await ocs.stop()
  })
})
