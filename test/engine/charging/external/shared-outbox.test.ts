/** CDRs for an external OCS on PostgreSQL: several processes deliver from one outbox. */
import { describe, expect, onTestFinished, test } from 'vitest'
import { ExternalCharging } from '../../../../engine/charging/external/external-charging.ts'
import { MemoryFile } from '../../../../schema/journal/memory-file.ts'
import { CallJournal } from '../../../../schema/journal/call-journal.ts'
import { transaction } from '../../../../schema/sql/query.ts'
import { endedCall } from '../../../support/books.ts'
import { deferred } from '../../../support/deferred.ts'
import { EndingTimers } from '../../../support/ending-timers.ts'
import { FakeOcs } from '../../../support/fake-ocs.ts'
import { hasPostgres } from '../../../support/postgres.ts'
import { sharedDatabase } from '../../../support/shared-database.ts'
import { eventually } from '../../../support/waiting.ts'

describe.runIf(hasPostgres)('an outbox that several processes share', () => {
  async function opened() {
    const ocs = new FakeOcs(() => ({ kind: 'answer', status: 200, body: { cost: '0.50' } }))
    await ocs.start()
    onTestFinished(() => ocs.stop())
    const database = await sharedDatabase()
    const { schedule } = new EndingTimers()
    const log: string[] = []
    const start = async (instance: string): Promise<ExternalCharging> => {
      const store = await database.open()
      const shared = { schedule, log: (level: string, message: string) => log.push(level, message) }
      const charging = new ExternalCharging({
        ...shared,
        store,
        journal: new CallJournal(new MemoryFile(), { ...shared, storage: store.storage }),
        instance,
        url: ocs.url,
        token: undefined,
        timeoutMs: 5_000,
        failMode: 'closed',
        now: Date.now,
        wallNow: Date.now,
        random: () => 0.5,
      })
      onTestFinished(async () => void (await charging.stop()))
      await charging.start()
      return charging
    }
    const store = await database.open()
    const { statements } = store
    const report = (callUuid: string, instance: string | null) =>
      statements
        .prepare(
          `INSERT INTO cdr_outbox (call_uuid, body, next_attempt_at, claimed_by, claimed_until)
           VALUES ($1, $2, 0, $3, $4)`,
        )
        .run([
          callUuid,
          JSON.stringify({ call_uuid: callUuid }),
          instance,
          instance === null ? null : Date.now() + 60_000,
        ])
    return { ocs, store, statements, log, start, report }
  }

  test('each CDR is delivered by one of them, and its cost is in its record', async () => {
    const { ocs, statements, log, start } = await opened()
    const instances = [await start('one'), await start('two'), await start('three')]
    const uuids = Array.from({ length: 60 }, (_, index) => `call-${index}`)
    await Promise.all(
      uuids.map(async (uuid, index) =>
        instances[index % instances.length]?.report(endedCall(uuid, 7)),
      ),
    )
    const charged = statements.prepare('SELECT call_uuid FROM cdr WHERE cost_micros = 500000')
    await eventually(async () => expect(await charged.all([])).toHaveLength(uuids.length))
    expect(ocs.seen.map(({ body }) => String(body.call_uuid)).toSorted()).toEqual(uuids.toSorted())
    expect(log).toEqual([])
  })

  test('what an instance was sending when it was killed, it sends again at its start; another instance waits a minute', async () => {
    const { ocs, statements, start, report } = await opened()
    await report('of-this-node', 'one')
    await report('of-another-node', 'two')
    await report('of-a-node-that-is-gone', 'three')
    await statements
      .prepare('UPDATE cdr_outbox SET claimed_until = $1 WHERE claimed_by = $2')
      .run([Date.now(), 'three'])
    await start('one')
    const waiting = () =>
      statements.prepare<{ call_uuid: string }>('SELECT call_uuid FROM cdr_outbox').all([])
    await eventually(async () =>
      expect(await waiting()).toEqual([{ call_uuid: 'of-another-node' }]),
    )
    expect(new Set(ocs.seen.map(({ body }) => body.call_uuid))).toEqual(
      new Set(['of-this-node', 'of-a-node-that-is-gone']),
    )
  })

  test('nothing is sent before the claims of the last run are released', async () => {
    const { ocs, store, statements, start, report } = await opened()
    await report('of-this-node', 'one')
    await report('of-nobody', null)
    const [isLocked, mayGoOn] = [deferred(), deferred()]
    const holding = transaction(store, async () => {
      await statements.prepare("SELECT FROM cdr_outbox WHERE claimed_by = 'one' FOR UPDATE").all([])
      isLocked.resolve()
      await mayGoOn.promise
    })
    await isLocked.promise
    await start('one')
    await new Promise((resolve) => setTimeout(resolve, 200))
    expect(ocs.seen).toEqual([])
    mayGoOn.resolve()
    await holding
    await eventually(() => expect(ocs.seen).toHaveLength(2))
  })
})
