import Sqlite from 'better-sqlite3'
import { expect, test } from 'vitest'
import { migrate } from '../../schema/migrate.ts'
import { migrations } from '../../schema/migrations/index.ts'
import { relax } from '../../schema/rebuild.ts'

const index = migrations.findIndex(({ name }) => name === 'names-of-tenants')
const before = migrations.slice(0, index)
const after = migrations.slice(0, index + 1)

/** One row at least in every table that is made anew, and in those that refer to them. */
const rows = `
INSERT INTO tenant (id, slug, name, created_at) VALUES (1, 'acme', 'Acme', 0), (2, 'other', 'Other', 0);
INSERT INTO tenant_domain VALUES ('acme.example', 1);
INSERT INTO rate_plan (id, tenant_id, name, created_at) VALUES (3, NULL, 'default', 0), (9, 1, 'gold', 0);
INSERT INTO rate (id, rate_plan_id, prefix, rate_per_minute_micros, first_rate_per_minute_micros)
  VALUES (1, 3, '49', 1, 1), (2, 9, '1', 2, 2);
INSERT INTO customer (id, tenant_id, name, email, rate_plan_id, created_at, updated_at)
  VALUES (4, 1, 'anna', 'a@acme.example', 9, 1, 1), (5, NULL, 'bob', NULL, 3, 1, 1);
INSERT INTO customer_number VALUES ('4930', 4), ('4940', 5);
INSERT INTO wallet (id, customer_id, currency, balance_micros, updated_at) VALUES (1, 4, 'USD', 70, 0);
INSERT INTO ledger_entry (wallet_id, kind, amount_micros, balance_after_micros, ref, actor, created_at)
  VALUES (1, 'topup', 70, 70, 'x', 'seed', 0);
INSERT INTO dispatcher_set (id, set_id, endpoint_name, tenant_id, algorithm, created_at, updated_at)
  VALUES (6, 7, 'pbx', 1, 8, 0, 0);
INSERT INTO dispatcher_node (id, dispatcher_set_id, host) VALUES (1, 6, '10.0.0.1');
INSERT INTO carrier (id, name, tenant_id, customer_id, created_at, updated_at, rate_plan_id)
  VALUES (8, 'loop', 1, 4, 0, 0, 9);
INSERT INTO carrier_gateway (id, carrier_id, host) VALUES (1, 8, '192.0.2.1');
INSERT INTO outbound_route (id, name, tenant_id, carrier_id, prefix, created_at) VALUES (2, 'out', 1, 8, '', 0);
INSERT INTO inbound_route (id, name, tenant_id, carrier_id, target_type, target, created_at)
  VALUES (3, 'in', 1, 8, 'set', '7', 0);
INSERT INTO extension (id, tenant_id, domain, extension, display_name, customer_id, ha1_md5, ha1_sha256, created_at, updated_at)
  VALUES (1, 1, 'acme.example', '101', 'Phone', 4, 'a', 'b', 0, 0);
INSERT INTO ai_agent (id, tenant_id, name, extension, sip_uri, created_at, updated_at)
  VALUES (2, 1, 'bot', '700', 'sip:a@b', 0, 0);
INSERT INTO user (id, username, password_hash, role, tenant_id, created_at, updated_at)
  VALUES (5, 'anna', 'h', 'admin', NULL, 0, 0);
`

const tables = (sqlite: Sqlite.Database): string[] =>
  sqlite
    .prepare<[], string>(
      "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'",
    )
    .pluck()
    .all()
    .filter((name) => name !== 'schema_migration')

const contents = (sqlite: Sqlite.Database) =>
  Object.fromEntries(
    tables(sqlite).map((name) => [name, sqlite.prepare(`SELECT * FROM "${name}"`).all()]),
  )

const attached = (sqlite: Sqlite.Database): string[] =>
  sqlite
    .prepare<[], string>(
      "SELECT name FROM sqlite_schema WHERE type IN ('index', 'trigger') AND sql IS NOT NULL",
    )
    .pluck()
    .all()

function filled(): Sqlite.Database {
  const sqlite = new Sqlite(':memory:')
  sqlite.pragma('foreign_keys = ON')
  migrate(sqlite, 0, before)
  sqlite.exec(rows)
  return sqlite
}

test('a filled database of the old schema keeps every row, index and trigger, and what refers to them', () => {
  const sqlite = filled()
  const old = { rows: contents(sqlite), attached: attached(sqlite) }
  migrate(sqlite, 1, after)
  expect(contents(sqlite)).toEqual(old.rows)
  expect(attached(sqlite)).toEqual(expect.arrayContaining(old.attached))
  expect(tables(sqlite).toSorted()).toEqual(Object.keys(old.rows).toSorted())
  expect(sqlite.pragma('foreign_key_check')).toEqual([])
  expect(sqlite.pragma('foreign_keys', { simple: true })).toBe(1)
  expect(() => sqlite.exec('DELETE FROM customer WHERE id = 4')).toThrow('FOREIGN KEY')
  sqlite.exec('DELETE FROM rate_plan WHERE id = 3 AND 0; DELETE FROM dispatcher_set WHERE id = 6')
  expect(sqlite.prepare('SELECT count(*) FROM dispatcher_node').pluck().get()).toBe(0)
})

test('afterwards a name is unique in its tenant and among what is of the platform', () => {
  const sqlite = filled()
  migrate(sqlite, 1, after)
  const insert = sqlite.prepare(
    "INSERT INTO rate_plan (tenant_id, name, created_at) VALUES (?, 'gold', 0)",
  )
  for (const tenant of [null, 2]) insert.run(tenant)
  for (const tenant of [null, 1, 2]) expect(() => insert.run(tenant)).toThrow('UNIQUE')
})

test('a migration that would leave a reference to nothing changes nothing', () => {
  const sqlite = filled()
  sqlite.pragma('foreign_keys = OFF')
  sqlite.exec('DELETE FROM tenant_domain')
  sqlite.pragma('foreign_keys = ON')
  expect(() => migrate(sqlite, 1, after)).toThrow(
    'a row of extension refers to a missing row of tenant_domain',
  )
  expect(sqlite.pragma('user_version', { simple: true })).toBe(index)
  expect(sqlite.pragma('foreign_keys', { simple: true })).toBe(1)
  expect(sqlite.prepare('SELECT count(*) FROM rate').pluck().get()).toBe(2)
})

test('a table without the constraint is not touched', () => {
  const sqlite = filled()
  const wrong = { table: 'rate', part: 'name TEXT NOT NULL UNIQUE', replacement: '' }
  expect(() => relax(sqlite, wrong)).toThrow('the table rate does not contain')
})

test('a filled database gives no id again afterwards, not those of tenants that were removed before either', () => {
  const sqlite = new Sqlite(':memory:')
  sqlite.pragma('foreign_keys = ON')
  const last = migrations.findIndex(({ name }) => name === 'never-again')
  migrate(sqlite, 0, migrations.slice(0, last))
  sqlite.exec(rows)
  sqlite.exec(
    "INSERT INTO audit_entry (at, actor, tenant_id, address, action, target, outcome, status, correlation_id) VALUES (0, 'a', 9, '', '', '', 'success', 200, '')",
  )
  const old = { rows: contents(sqlite), attached: attached(sqlite) }
  migrate(sqlite, 1, migrations.slice(0, last + 1))
  expect(contents(sqlite)).toMatchObject(old.rows)
  expect(attached(sqlite)).toEqual(expect.arrayContaining(old.attached))
  expect(sqlite.pragma('foreign_key_check')).toEqual([])
  const add = (values: string) => sqlite.prepare(`INSERT INTO ${values} RETURNING id`).pluck().get()
  const tenant = "tenant (slug, name, created_at) VALUES ('new', 'New', 0)"
  expect(add(tenant)).toBe(10)
  sqlite.exec('DELETE FROM tenant WHERE id = 10')
  expect(add(tenant)).toBe(11)
  expect(add("carrier (name, created_at, updated_at) VALUES ('next', 0, 0)")).toBe(9)
})
