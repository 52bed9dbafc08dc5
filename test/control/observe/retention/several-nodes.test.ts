/** Retention of several nodes on one database. */
import { describe, expect, test } from 'vitest'
import { Retention } from '../../../../control/observe/retention/retention.ts'
import { execute } from '../../../../schema/sql/query.ts'
import { hasPostgres } from '../../../support/postgres.ts'
import { sharedDatabase } from '../../../support/shared-database.ts'
import { readValue, runSql } from '../../../support/stored.ts'
import { eventually } from '../../../support/waiting.ts'

const day = 86_400_000
const now = 100 * day

const record = (n: number, startedAt: number) => ({
  call_uuid: `uuid-${n}`,
  call_id: `${n}@caller`,
  direction: 'inbound' as const,
  caller_id_number: '1',
  caller_id_name: null,
  destination_number: '2',
  start_stamp: startedAt,
  answer_stamp: null,
  end_stamp: startedAt,
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

describe.runIf(hasPostgres)('retention of several nodes', () => {
  test('they delete what is old together, a batch by one node at a time, and nothing that is younger', async () => {
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
    const nodes = stores.map(
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
    // A server that many tests use may refuse a connection: the node then tries again after a second.
    await eventually(async () => {
      at += 2_000
      await Promise.all(nodes.map((node) => node.step()))
      expect(await left()).toEqual([50, 0])
    })
    await Promise.all(nodes.map((node) => node.step()))
    expect(await left()).toEqual([50, 0])
    expect(logged.filter((line) => (line as string[])[0] === 'warn')).toEqual([])
  })
})
