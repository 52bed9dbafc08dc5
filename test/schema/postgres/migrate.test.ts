import Sqlite from 'better-sqlite3'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { migrate } from '../../../schema/migrations/migrate.ts'
import * as costs from '../../../schema/migrations/costs.ts'
import { sumTables } from '../../../schema/migrations/first/calls.ts'
import { blockTables } from '../../../schema/migrations/record-columns.ts'
import { PostgresStatements } from '../../../schema/sql/postgres-statements.ts'
import { freshDatabase, hasPostgres } from '../../support/postgres.ts'

describe.runIf(hasPostgres)('a migrated database', () => {
  const sqlite = new Sqlite(':memory:')
  let statements: PostgresStatements
  let drop: () => Promise<void>
  beforeAll(async () => {
    migrate(sqlite, 0)
    // A file of its own with SQLite.
    sqlite.exec(sumTables + costs.sumTables + blockTables)
    const database = await freshDatabase()
    drop = database.drop
    statements = new PostgresStatements(database)
  })
  afterAll(async () => {
    await statements.close()
    await drop()
  })

  const here = (sql: string) => sqlite.prepare(sql).raw().all()
  const there = (sql: string) => statements.prepare(sql).arrays([])
  const tables =
    "FROM sqlite_schema AS t WHERE t.type IN ('table', 'view') AND t.name NOT LIKE 'sqlite_%'"

  test('has the tables and columns of SQLite, with their types, defaults and obligations', async () => {
    const types = { INTEGER: 'bigint', REAL: 'double precision', BLOB: 'bytea', TEXT: 'text' }
    const columns = here(
      `SELECT t.name, c.name, c.type, c."notnull" OR c.pk > 0, c.dflt_value
       ${tables.replace(' WHERE', ', pragma_table_info(t.name) AS c WHERE')} ORDER BY 1, 2`,
    ).map((row) =>
      [...(row as string[])].map((value) => types[value as keyof typeof types] ?? value),
    )
    const found = await there(
      `SELECT table_name, column_name, data_type, is_nullable = 'NO',
              regexp_replace(column_default, '::[a-z]+$', '')
         FROM information_schema.columns WHERE table_schema = 'public'
        ORDER BY table_name COLLATE "C", column_name COLLATE "C"`,
    )
    // On the server a ban gets the number of the transaction that stores it: other instances read
    // what is new to them.
    const bans = found.filter((row) => String(row).startsWith('source_ban,version,'))
    expect(bans).toEqual([
      ['source_ban', 'version', 'bigint', 1, expect.stringContaining('pg_current_xact_id()')],
    ])
    expect(found.filter((row) => !bans.includes(row))).toEqual(
      columns.filter((row) => !String(row).startsWith('source_ban,version,')),
    )
  })

  test('orders texts by their bytes', async () => {
    expect(
      await there(
        `SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = 'public'
         AND data_type = 'text' AND collation_name IS DISTINCT FROM 'C' AND table_name <> 'schema_migration'`,
      ),
    ).toEqual([])
  })

  test('has its foreign keys', async () => {
    const keys = here(
      `SELECT t.name, k."from", k."table", k."to", k.on_delete
       ${tables.replace(' WHERE', ', pragma_foreign_key_list(t.name) AS k WHERE')} ORDER BY 1, 2`,
    )
    const found = await there(
      `SELECT r.relname, a.attname, f.relname, b.attname,
              CASE confdeltype WHEN 'a' THEN 'NO ACTION' WHEN 'c' THEN 'CASCADE'
                              WHEN 'n' THEN 'SET NULL' END
         FROM pg_constraint k JOIN pg_class r ON r.oid = conrelid JOIN pg_class f ON f.oid = confrelid
         JOIN pg_attribute a ON a.attrelid = conrelid AND a.attnum = conkey[1]
         JOIN pg_attribute b ON b.attrelid = confrelid AND b.attnum = confkey[1]
        WHERE contype = 'f' ORDER BY r.relname COLLATE "C", a.attname COLLATE "C"`,
    )
    expect(found.map((row) => (row as unknown[]).map(String))).toEqual(keys)
  })

  test('has its primary keys, unique constraints and indexes, with expressions and conditions', async () => {
    const shape = ([table, definition]: readonly unknown[]): string =>
      `${String(table)}: ${plain(String(definition))}`
    const named = here(
      "SELECT tbl_name, sql FROM sqlite_schema WHERE type = 'index' AND sql IS NOT NULL",
    ).map((row) => shape(row as unknown[]))
    const implied = here(
      `SELECT t.name, 'CREATE UNIQUE INDEX _ ON _ (' ||
              (SELECT group_concat(name, ', ' ORDER BY seqno) FROM pragma_index_info(i.name)) || ')'
       ${tables.replace(' WHERE', ', pragma_index_list(t.name) AS i WHERE')} AND i.origin <> 'c'`,
    ).map((row) => shape(row as unknown[]))
    // Their index is the table itself.
    const numbered = here(
      `SELECT t.name, 'CREATE UNIQUE INDEX _ ON _ (' || c.name || ')'
       ${tables.replace(' WHERE', ', pragma_table_info(t.name) AS c WHERE')}
       AND c.pk = 1 AND c.type = 'INTEGER' AND t.sql LIKE '%' || c.name || ' INTEGER PRIMARY KEY%'`,
    ).map((row) => shape(row as unknown[]))
    const found = await there(
      "SELECT tablename, indexdef FROM pg_indexes WHERE schemaname = 'public'",
    )
    expect(found.map((row) => shape(row as unknown[])).toSorted()).toEqual(
      [...named, ...implied, ...numbered].toSorted(),
    )
  })

  test('keeps ledger and audit entries as they are', async () => {
    await statements.execute(
      `INSERT INTO audit_entry (at, actor, address, action, target, outcome, status, correlation_id)
       VALUES (1, 'a', 'a', 'a', 'a', 'success', 0, 'a'), (5, 'a', 'a', 'a', 'a', 'success', 0, 'a')`,
    )
    const refusal = 'audit entries are append-only'
    await expect(statements.execute("UPDATE audit_entry SET actor = 'b'")).rejects.toThrow(refusal)
    await expect(statements.execute('DELETE FROM audit_entry')).rejects.toThrow(refusal)
    await statements.execute("INSERT INTO setting VALUES ('audit_kept_since', '5')")
    const old = statements.prepare('DELETE FROM audit_entry WHERE at < 5')
    expect(await old.run([])).toBe(1)
  })
})

/** The parts of an index in one spelling: PostgreSQL writes out types, casts and parentheses. */
const plain = (definition: string): string =>
  definition
    .replaceAll(/::(?:text|bigint|integer)\b/g, '')
    .replaceAll(/\s+/g, ' ')
    .replace(/INDEX \S+ ON \S+ (?:USING btree )?/, 'INDEX ')
    .replaceAll('COALESCE', 'coalesce')
    .replace("'-1'", '-1')
    .replace(/, \((-?\d+)\)\)/, ', $1)')
    .replace(/WHERE \((.*)\)$/, 'WHERE $1')
    .toLowerCase()
