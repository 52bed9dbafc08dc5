import { afterAll, afterEach, beforeEach, describe, expect, test } from 'vitest'
import { moveToServer } from '../../../schema/postgres/move.ts'
import type { LocalStore } from '../../../schema/storage/store.ts'
import { PostgresStatements } from '../../../schema/sql/postgres-statements.ts'
import { emptyStore } from '../../support/empty-store.ts'
import { freshDatabase, hasPostgres } from '../../support/postgres.ts'

/** 2026-01-05T10:00:00Z, and the midnight before. */
const now = 1_767_607_200_000
const midnight = now - 10 * 3_600_000

describe.runIf(hasPostgres)('a database is moved to a server', () => {
  let source: LocalStore
  let target: PostgresStatements
  const drops: (() => Promise<void>)[] = []
  const progress: string[] = []

  beforeEach(async () => {
    progress.length = 0
    source = emptyStore()
    source.sqlite.exec(`
      INSERT INTO tenant (id, slug, name, created_at) VALUES (3, 'acme', 'Acme é', 5);
      INSERT INTO tenant_domain (domain, tenant_id) VALUES ('acme.example', 3);
      INSERT INTO customer (id, tenant_id, name, created_at, updated_at) VALUES (1, 3, 'a', 0, 0), (2, NULL, 'b', 0, 0);
      INSERT INTO wallet (id, customer_id, currency, balance_micros, updated_at)
        VALUES (5, 1, 'USD', 9000000000000000000, 0), (6, 2, 'USD', 9000000000000000000, 0);
      INSERT INTO ledger_entry (id, wallet_id, kind, amount_micros, balance_after_micros, ref, actor, created_at)
        VALUES (40, 5, 'topup', 1000, 9000000000000000000, 'r', 'test', 0);
      INSERT INTO audit_entry (at, actor, address, action, target, outcome, status, correlation_id)
        VALUES (1, 'a', 'a', 'a', 'a', 'success', 0, 'a');
      INSERT INTO webhook_event (id, message_id, type, body, created_at) VALUES (70, 'm', 't', '{}', 0);
      DELETE FROM webhook_event;`)
    const cdr = source.sqlite.prepare(
      `INSERT INTO cdr (call_uuid, call_id, direction, caller_id_number, destination_number, start_stamp, end_stamp,
         duration, billsec, disposition, sip_code, hangup_cause, hangup_by, attempts, cost_micros, mos_score, source_address)
       VALUES (?, ?, 'inbound', '1', '2', 0, 1, 1, 1, 'ANSWERED', 200, 'x', 'caller', '[]', 7, 4.25, ?)`,
    )
    for (let call = 0; call < 2_500; call += 1) cdr.run(`uuid-${call}`, 'c'.repeat(900), '\\x "')
    cdr.run('uuid-nul', 'with \0 inside', 'a')
    const key = source.sqlite.prepare(
      `INSERT INTO application_key (uuid, kind, name, key_prefix, key_hash, scopes, created_at)
       VALUES ('u', 'sbc', 'k', 'p', ?, '[]', 0)`,
    )
    key.run(Buffer.alloc(32, 0xfe))
    const database = await freshDatabase()
    drops.push(database.drop)
    target = new PostgresStatements(database)
  })
  afterEach(async () => {
    source.close()
    await target.close()
  })
  afterAll(async () => {
    for (const drop of drops) await drop()
  })

  const move = () =>
    moveToServer(source.sqlite, target, 'there', now, (line) => progress.push(line))
  const there = (sql: string) => target.prepare(sql).arrays([])

  test('with every row and every sum', async () => {
    const report = await move()
    expect(report.alteredTexts).toBe(1)
    expect(report.tables).toContainEqual({ table: 'cdr', rows: 2_501 })
    expect(report.sums).toContainEqual({
      column: 'wallet.balance_micros',
      micros: 18_000_000_000_000_000_000n,
    })
    expect(report.sums).toContainEqual({ column: 'cdr.cost_micros', micros: 17_507n })
    expect(progress).toContain('cdr: 2501 rows')
    for (const [table, order] of [
      ['setting', 'name'],
      ['tenant', 'id'],
      ['customer', 'id'],
      ['application_key', 'id'],
      ['audit_entry', 'id'],
    ] as const) {
      const columns = source.sqlite
        .prepare<[string], string>('SELECT name FROM pragma_table_info(?)')
        .pluck()
        .all(table)
      const rows = `SELECT ${columns.join(', ')} FROM ${table} ORDER BY ${order}`
      expect(await there(rows)).toEqual(source.sqlite.prepare(rows).raw().all())
    }
    expect(await there("SELECT call_id, mos_score FROM cdr WHERE call_uuid = 'uuid-nul'")).toEqual([
      ['with \uFFFD inside', 4.25],
    ])
  })

  test('with what its wallets have spent today', async () => {
    const debit = source.sqlite.prepare(
      `INSERT INTO ledger_entry (wallet_id, kind, amount_micros, balance_after_micros, ref, actor, created_at)
       VALUES (5, ?, ?, 0, ?, 'ocs', ?)`,
    )
    debit.run('debit', -500, 'yesterday', midnight - 1)
    debit.run('debit', -20, 'midnight', midnight)
    debit.run('debit', -3, 'now', now)
    debit.run('adjust', -7, 'no call', now)
    await move()
    expect(await there('SELECT id, spent_micros, spent_on FROM wallet ORDER BY id')).toEqual([
      [5, 23, midnight],
      [6, 0, midnight],
    ])
  })

  test('new rows get numbers that none had before', async () => {
    await move()
    const add = (table: string, columns: string, values: string) =>
      there(`INSERT INTO ${table} (${columns}) VALUES (${values}) RETURNING id`)
    expect(await add('tenant', 'slug, name, created_at', "'b', 'B', 0")).toEqual([[4]])
    expect(
      await add('webhook_event', 'message_id, type, body, created_at', "'m', 't', '', 0"),
    ).toEqual([[71]])
    expect(
      await add(
        '"user"',
        'username, password_hash, role, created_at, updated_at',
        "'a', 'b', 'admin', 0, 0",
      ),
    ).toEqual([[1]])
  })

  test('never into one that has rows, such as the second time', async () => {
    await move()
    await expect(move()).rejects.toThrow('cannot move to there: it is not empty')
    expect(await there('SELECT count(*) FROM cdr')).toEqual([[2_501]])
  })

  test('not at all when a sum is another one', async () => {
    await target.execute(
      `CREATE FUNCTION lose() RETURNS trigger LANGUAGE plpgsql AS
         $$ BEGIN NEW.cost_micros = NEW.cost_micros - 1; RETURN NEW; END $$;
       CREATE TRIGGER lose BEFORE INSERT ON cdr FOR EACH ROW WHEN (NEW.call_uuid = 'uuid-9') EXECUTE FUNCTION lose()`,
    )
    await expect(move()).rejects.toThrow(
      'nothing was moved to there: the sum of cdr.cost_micros is 17506 there, 17507 here',
    )
    expect(await there('SELECT count(*) FROM cdr')).toEqual([[0]])
  })
})
