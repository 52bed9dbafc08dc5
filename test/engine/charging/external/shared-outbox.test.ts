/** CDRs for an external OCS on PostgreSQL: several processes deliver from one outbox. */
import { afterEach, describe, expect, test } from 'vitest'
import { ExternalCharging } from '../../../../engine/charging/external/external-charging.ts'
import { MemoryFile } from '../../../../schema/journal/journal-file.ts'
import type { Store } from '../../../../schema/open.ts'
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
  const openNode = (store: Store, { url }: FakeOcs, node: string, log: string[]) => {
    const journal = new CallJournal(new MemoryFile(), {
      storage: store.storage,
      schedule,
      log: () => undefined,
    })
    const charging = new ExternalCharging({
      store,
      journal,
      node,
      url,
      token: undefined,
      timeoutMs: 5_000,
      schedule,
      failMode: 'closed',
      now: Date.now,
      wallNow: Date.now,
      random: () => 0.5,
      log: (level, message) => void log.push(`${level} ${message}`),
    })
    open.push(charging)
    return charging
  }
  afterEach(async () => {
    for (const charging of open.splice(0)) await charging.stop()
  })

  test('each CDR is delivered by one of them, and its cost is in its record', async () => {
    const ocs = new FakeOcs(() => ({ kind: 'answer', status: 200, body: { cost: '0.50' } }))
    await ocs.start()
    const database = await sharedDatabase()
    const log: string[] = []
    const nodes: ExternalCharging[] = []
    for (const name of ['one', 'two', 'three'])
      nodes.push(openNode(await database.open(), ocs, name, log))
    for (const node of nodes) await node.start()
    const uuids = Array.from({ length: 60 }, (_, index) => `call-${index}`)
    await Promise.all(
      uuids.map((uuid, index) => nodes[index % nodes.length]?.report(endedCall(uuid, 7))),
    )
    const { statements } = await database.open()
    const charged = statements.prepare('SELECT call_uuid FROM cdr WHERE cost_micros = 500000')
    await eventually(async () => expect(await charged.all([])).toHaveLength(uuids.length))
    expect(ocs.seen.map(({ body }) => String(body.call_uuid)).toSorted()).toEqual(uuids.toSorted())
    expect(log).toEqual([])
    await ocs.stop()
  })

  test('what a node was sending when it was killed, it sends again at its start; another node waits a minute', async () => {
    const ocs = new FakeOcs(() => ({ kind: 'answer', status: 200, body: { cost: '0.50' } }))
    await ocs.start()
    const database = await sharedDatabase()
    const { statements } = await database.open()
    const report = (callUuid: string, node: string) =>
      statements
        .prepare(
          `INSERT INTO cdr_outbox (call_uuid, body, next_attempt_at, claimed_by, claimed_until)
           VALUES ($1, $2, 0, $3, $4)`,
        )
        .run([callUuid, JSON.stringify({ call_uuid: callUuid }), node, Date.now() + 60_000])
    await report('of-this-node', 'one')
    await report('of-another-node', 'two')
    await report('of-a-node-that-is-gone', 'three')
    await statements
      .prepare('UPDATE cdr_outbox SET claimed_until = $1 WHERE claimed_by = $2')
      .run([Date.now(), 'three'])
    await openNode(await database.open(), ocs, 'one', []).start()
    const waiting = () =>
      statements.prepare<{ call_uuid: string }>('SELECT call_uuid FROM cdr_outbox').all([])
    await eventually(async () =>
      expect(await waiting()).toEqual([{ call_uuid: 'of-another-node' }]),
    )
    expect(new Set(ocs.seen.map(({ body }) => body.call_uuid))).toEqual(
      new Set(['of-this-node', 'of-a-node-that-is-gone']),
    )
    await ocs.stop()
  })
})
