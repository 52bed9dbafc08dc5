/**
 * Several instances on one PostgreSQL: an edit costs each of them the rows that it has changed,
 * however many there are.
 */
import { describe, expect, onTestFinished, test } from 'vitest'
import { Ocs } from '../../engine/charging/ocs.ts'
import type { Engine } from '../../engine/engine.ts'
import { followForCharging, followForEngine } from '../../engine/follow-changes.ts'
import { ExtensionDirectory } from '../../engine/registrar/extension-directory.ts'
import { loadRouting } from '../../engine/routing/routing-store.ts'
import { ServerChanges } from '../../schema/changes/server-changes.ts'
import { ServerNotices } from '../../schema/changes/server-notices.ts'
import { SLICE } from '../../schema/sql/query.ts'
import type { SqlValue, Statements } from '../../schema/sql/statements.ts'
import { Rounds } from '../../schema/rounds.ts'
import { EndingTimers } from '../support/ending-timers.ts'
import { hasPostgres } from '../support/postgres.ts'
import { sharedDatabase } from '../support/shared-database.ts'
import { runSql } from '../support/stored.ts'
import { eventually } from '../support/waiting.ts'
import { routingOver } from './routing/samples.ts'

const MANY = 3 * SLICE
const series = `generate_series(1, ${MANY}) AS n`

const many = [
  `INSERT INTO tenant (id, slug, name, created_at) VALUES (1, 'acme', 'Acme', 1)`,
  `INSERT INTO tenant_domain (domain, tenant_id) VALUES ('acme.example', 1)`,
  `INSERT INTO customer (name, tenant_id, created_at, updated_at)
   SELECT 'c' || n, 1, 1, 1 FROM ${series}`,
  `INSERT INTO wallet (customer_id, currency, updated_at) SELECT id, 'USD', 1 FROM customer`,
  `INSERT INTO extension
     (tenant_id, domain, extension, display_name, ha1_md5, ha1_sha256, created_at, updated_at)
   SELECT 1, 'acme.example', 'x' || n, 'x', '', '', 1, 1 FROM ${series}`,
  `INSERT INTO ai_agent (tenant_id, name, extension, sip_uri, created_at, updated_at)
   SELECT 1, 'a' || n, '7' || n, 'sip:a@203.0.113.9', 1, 1 FROM ${series}`,
  `INSERT INTO inbound_route (tenant_id, name, prefix, target_type, target, priority, created_at)
   SELECT 1, 'r' || n, '49' || n, 'extension', 'x1', 1, 1 FROM ${series}`,
]

describe.runIf(hasPostgres)('an edit on another instance', () => {
  async function instance() {
    const { url, open } = await sharedDatabase()
    const other = await open()
    for (const sql of many) await runSql(other, sql)
    const opened = await open()
    const read = { rows: 0 }
    const prepare = (sql: string) => {
      const statement = opened.statements.prepare(sql)
      const all = async (values: readonly SqlValue[]) => {
        const rows = await statement.all(values)
        read.rows += rows.length
        return rows
      }
      return { ...statement, all }
    }
    const statements = new Proxy<Statements>(opened.statements, {
      get: (target, name): unknown => (name === 'prepare' ? prepare : Reflect.get(target, name)),
    })
    const store = { ...opened, statements }
    const timers = new EndingTimers()
    onTestFinished(() => timers.end())
    const given = { schedule: timers.schedule, log: () => undefined }
    const notices = new ServerNotices({ ...given, url })
    onTestFinished(() => notices.stop())
    await notices.start()
    const changes = await ServerChanges.open({ ...given, notices, random: () => 0 })
    onTestFinished(() => changes.stop())
    const now = (): number => 1
    const { every } = new Rounds({ ...given, steadyNow: now })
    const clock = { now, wallNow: now, every }
    const journal = undefined as never
    const ocs = new Ocs({ ...given, ...clock, store, journal, unknownCaller: 'deny' })
    const { routing } = routingOver({}, { load: (changed) => loadRouting(store, changed) })
    const directory = new ExtensionDirectory(store)
    const registrar = {
      reload: (ids?: readonly number[]) => (ids ? directory.changed(ids) : directory.load()),
      reloadTenants: (ids?: readonly number[]) => directory.reloadTenants(ids),
    }
    followForCharging(changes, ocs)
    const dispatcher = { reload: () => Promise.resolve() }
    followForEngine(changes, { routing, registrar, dispatcher } as unknown as Engine)
    await changes.start()
    await Promise.all([ocs.reloadCustomers(), routing.reload(), directory.load()])
    return { other, ocs, routing, directory, read }
  }

  test('makes an instance read the rows that it has changed, and not the tables', async () => {
    const { other, ocs, routing, directory, read } = await instance()
    expect(read.rows).toBeGreaterThan(4 * MANY)
    read.rows = 0
    await runSql(other, 'UPDATE customer SET credit_limit_micros = 7000000 WHERE id = 5')
    await runSql(other, `UPDATE extension SET display_name = 'new' WHERE id = 6`)
    await runSql(other, `UPDATE ai_agent SET extension = '800' WHERE id = 7`)
    await runSql(other, `UPDATE inbound_route SET prefix = '33' WHERE id = 8`)
    await eventually(() => {
      expect(ocs.balanceOf(5)?.creditLimitMicros).toBe(7_000_000)
      expect(directory.find('acme.example', 'x6')).toMatchObject({ displayName: 'new' })
      expect(routing.dialledAgent('800', 1)).toMatchObject({ kind: 'agent' })
      // The customer, the extension for phones and for payers, the agent, the route.
      expect(read.rows).toBeGreaterThanOrEqual(5)
    })
    expect(routing.dialledAgent('77', 1)).toBeUndefined()
    expect(read.rows).toBeLessThan(12)
  })
})
