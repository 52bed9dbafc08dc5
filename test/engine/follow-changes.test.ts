/** Several nodes on one PostgreSQL: an edit costs each of them the rows that it has changed, however many there are. */
import { describe, expect, onTestFinished, test } from 'vitest'
import { Ocs } from '../../engine/charging/ocs.ts'
import { ExtensionDirectory } from '../../engine/registrar/extension-directory.ts'
import { loadRouting } from '../../engine/routing/routing-store.ts'
import { followForCharging, followForEngine } from '../../engine/follow-changes.ts'
import { ServerChanges } from '../../schema/changes/changes.ts'
import { openStore } from '../../schema/postgres/open.ts'
import { ServerNotices } from '../../schema/postgres/notices.ts'
import { SLICE } from '../../schema/sql/query.ts'
import type { SqlValue, Statements } from '../../schema/sql/statements.ts'
import type { Engine } from '../../engine/engine.ts'
import { freshDatabase, hasPostgres } from '../support/postgres.ts'
import { runSql } from '../support/stored.ts'
import { eventually } from '../support/waiting.ts'
import { routingOver } from './routing/samples.ts'

const MANY = 3 * SLICE

const read = { rows: 0, most: 0 }

const counting = (statements: Statements): Statements =>
  new Proxy(statements, {
    get: (target, name) => {
      if (name !== 'prepare') return Reflect.get(target, name) as unknown
      return (sql: string) => {
        const statement = target.prepare(sql)
        const all = async (values: readonly SqlValue[]): Promise<unknown[]> => {
          const rows = await statement.all(values)
          read.rows += rows.length
          read.most = Math.max(read.most, rows.length)
          return rows
        }
        return { ...statement, all }
      }
    },
  })

const many = [
  `INSERT INTO tenant (id, slug, name, created_at) VALUES (1, 'acme', 'Acme', 1)`,
  `INSERT INTO tenant_domain (domain, tenant_id) VALUES ('acme.example', 1)`,
  `INSERT INTO customer (name, tenant_id, created_at, updated_at)
   SELECT 'c' || n, 1, 1, 1 FROM generate_series(1, ${MANY}) AS n`,
  `INSERT INTO customer_number (number, customer_id)
   SELECT '+4930' || id, id FROM customer`,
  `INSERT INTO wallet (customer_id, currency, updated_at) SELECT id, 'USD', 1 FROM customer`,
  `INSERT INTO extension
     (tenant_id, domain, extension, display_name, ha1_md5, ha1_sha256, created_at, updated_at)
   SELECT 1, 'acme.example', 'x' || n, 'x', '', '', 1, 1 FROM generate_series(1, ${MANY}) AS n`,
  `INSERT INTO ai_agent (tenant_id, name, extension, sip_uri, created_at, updated_at)
   SELECT 1, 'a' || n, '7' || n, 'sip:a@203.0.113.9', 1, 1 FROM generate_series(1, ${MANY}) AS n`,
  `INSERT INTO inbound_route (tenant_id, name, prefix, target_type, target, priority, created_at)
   SELECT 1, 'r' || n, '49' || n, 'extension', 'x1', 1, 1 FROM generate_series(1, ${MANY}) AS n`,
  `INSERT INTO rate_plan (name, currency, created_at) VALUES ('many', 'USD', 0), ('one', 'USD', 0)`,
  `INSERT INTO rate (rate_plan_id, prefix, rate_per_minute_micros, first_rate_per_minute_micros)
   SELECT rate_plan.id, n, 1, 1 FROM rate_plan, generate_series(1, ${MANY}) AS n
    WHERE name = 'many' OR n = 1`,
]

describe.runIf(hasPostgres)('an edit', () => {
  async function node() {
    const { url, drop } = await freshDatabase()
    onTestFinished(drop)
    const schedule = (work: () => void, waitMs: number): (() => void) => {
      const timer = setTimeout(work, waitMs)
      return () => clearTimeout(timer)
    }
    const log = (): void => undefined
    const secretKey = Buffer.alloc(32, 1).toString('base64')
    const opened = await openStore(url, { secretKey, keyFile: '/none', now: 0, connections: 3 })
    onTestFinished(() => opened.close())
    for (const sql of many) await runSql(opened, sql)
    const store = { ...opened, statements: counting(opened.statements) }
    const notices = new ServerNotices({ url, schedule, log })
    onTestFinished(() => notices.stop())
    await notices.start()
    const changes = await ServerChanges.open({ notices, schedule, random: () => 0, log })
    onTestFinished(() => changes.stop())
    const now = (): number => 1
    const ocs = new Ocs({
      store,
      now,
      wallNow: now,
      schedule,
      log,
      unknownCaller: 'deny',
      journal: undefined as never,
    })
    const { routing } = routingOver(
      {},
      {
        load: (changed) => loadRouting(store, changed),
      },
    )
    const directory = new ExtensionDirectory(store)
    const registrar = {
      reload: (ids?: readonly number[]) => (ids ? directory.changed(ids) : directory.load()),
      reloadTenants: (ids?: readonly number[]) => directory.reloadTenants(ids),
    }
    followForCharging(changes, ocs)
    followForEngine(changes, {
      routing,
      registrar,
      dispatcher: { reload: () => Promise.resolve() },
    } as unknown as Engine)
    await Promise.all([ocs.reloadCustomers(), routing.reload(), directory.load()])
    const sliceOf = read.most
    await changes.start()
    await eventually(() => expect(ocs.balanceOf(MANY)).toBeDefined())
    return { opened, ocs, routing, directory, sliceOf }
  }

  test('makes other nodes read the rows that it has changed, and not the tables', async () => {
    const { opened, ocs, routing, directory, sliceOf } = await node()
    // A start reads them in slices.
    expect(sliceOf).toBe(SLICE)
    read.rows = 0
    await runSql(opened, 'UPDATE customer SET credit_limit_micros = 7000000 WHERE id = 5')
    await runSql(opened, `UPDATE extension SET display_name = 'new' WHERE id = 6`)
    await runSql(opened, `UPDATE ai_agent SET extension = '800' WHERE id = 7`)
    await runSql(opened, `UPDATE inbound_route SET prefix = '33' WHERE id = 8`)
    await eventually(() => expect(ocs.balanceOf(5)?.creditLimitMicros).toBe(7_000_000))
    await eventually(() =>
      expect(directory.find('acme.example', 'x6')).toMatchObject({ displayName: 'new' }),
    )
    await eventually(() => expect(routing.dialledAgent('800', 1)).toMatchObject({ kind: 'agent' }))
    expect(routing.dialledAgent('77', 1)).toBeUndefined()
    await runSql(opened, `UPDATE rate_plan SET decimals = 2 WHERE name = 'one'`)
    // The customer and its number, the extension for phones and for payers, the agent, the route, the rate.
    await eventually(() => expect(read.rows).toBeGreaterThanOrEqual(7))
    expect(read.rows).toBeLessThan(12)
  })
})
