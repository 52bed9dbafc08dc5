/** What stands in a database of version 4 stays true after the migrations to the newest version. */
import Sqlite from 'better-sqlite3'
import { describe, expect, onTestFinished, test } from 'vitest'
import { migrations } from '../../../schema/migrations/index.ts'
import { migrate, migratePostgres } from '../../../schema/migrations/migrate.ts'
import { rangeColumns, rangeOf } from '../../../schema/rules/number-ranges.ts'
import { PostgresStatements } from '../../../schema/sql/postgres-statements.ts'
import { freshDatabase, hasPostgres } from '../../support/postgres.ts'

const oldest = migrations.filter(({ version }) => version <= 4)

async function onServer() {
  const database = await freshDatabase('empty')
  const statements = new PostgresStatements(database)
  onTestFinished(async () => {
    await statements.close()
    await database.drop()
  })
  return {
    run: async (known?: typeof migrations) => {
      await migratePostgres(statements, 'shared', 5, known)
    },
    execute: (sql: string) => statements.execute(sql),
    read: async (sql: string): Promise<unknown[]> => statements.prepare(sql).arrays([]),
  }
}

async function inMemory() {
  const sqlite = new Sqlite(':memory:')
  sqlite.pragma('foreign_keys = ON')
  onTestFinished(() => void sqlite.close())
  return {
    run: async (known?: typeof migrations) => {
      migrate(sqlite, 5, known)
    },
    execute: async (sql: string) => void sqlite.exec(sql),
    read: async (sql: string): Promise<unknown[]> => sqlite.prepare(sql).raw().all(),
  }
}

/** As `customers.numbers` took them, and as other programs wrote them. */
const spellings = [
  ...['+4930100', '4930200', '+49 (30) 300-1', '49.30.400', '0049301', '123', '*100#', '#31#'],
  ...[
    'desk',
    'Desk',
    'front-desk',
    'front.desk',
    'a (b)',
    '+door',
    '1-2_3',
    '++1',
    '1+2',
    '10.0.0.1',
  ],
  ...['12345678901234567890', '0'],
]

describe.each([
  { database: 'SQLite', open: inMemory },
  ...(hasPostgres ? [{ database: 'PostgreSQL', open: onServer }] : []),
])('from version 4 on $database', ({ open }) => {
  test('the numbers of customers are rows, found by the key by which calls ask for them', async () => {
    const { run, execute, read } = await open()
    await run(oldest)
    await execute(`
      INSERT INTO tenant (id, slug, name, created_at) VALUES (3, 'acme', 'Acme', 5);
      INSERT INTO customer (id, tenant_id, name, created_at, updated_at)
        VALUES (1, NULL, 'a', 7, 8), (2, 3, 'b', 9, 9);`)
    for (const [index, number] of spellings.entries())
      await execute(
        `INSERT INTO customer_number (number, customer_id) VALUES ('${number}', ${(index % 2) + 1})`,
      )
    await run()
    const columns = 'first_number, last_number, digits, tenant_id, customer_id, created_at'
    const rows = await read(`SELECT number, ${columns} FROM phone_number ORDER BY number`)
    const expected = spellings.map((number, index) => {
      const { first_number, last_number, digits } = rangeColumns(rangeOf(number))
      const owner = index % 2 === 0 ? [null, 1, 7] : [3, 2, 9]
      return [number, first_number, last_number, digits, ...owner]
    })
    const inOrder = (one: unknown[], other: unknown[]) =>
      String(one[0]) < String(other[0]) ? -1 : 1
    expect(rows).toEqual(expected.toSorted(inOrder))
    const views = await read('SELECT number, customer_id FROM customer_number ORDER BY number')
    expect(views).toEqual(rows.map((row) => [(row as unknown[])[0], (row as unknown[])[5]]))
  })

  test('two spellings of one number of a customer are one row', async () => {
    const { run, execute, read } = await open()
    await run(oldest)
    await execute(`
      INSERT INTO customer (id, tenant_id, name, created_at, updated_at) VALUES (1, NULL, 'a', 7, 8);
      INSERT INTO customer_number (number, customer_id)
        VALUES ('4930100', 1), ('+4930100', 1), ('desk', 1), ('+desk', 1), ('4930101', 1);`)
    await run()
    expect(await read('SELECT number FROM customer_number ORDER BY number')).toEqual([
      ['+4930100'],
      ['+desk'],
      ['4930101'],
    ])
  })

  test('each carrier shows the caller as before, and no rule of a new version holds for it', async () => {
    const { run, execute, read } = await open()
    await run(oldest)
    await execute(`
      INSERT INTO carrier (id, name, caller_id_mode, caller_id_value, created_at, updated_at) VALUES
        (1, 'passes', 'pass', NULL, 0, 0), (2, 'fixed', 'fixed', '4930100', 0, 0),
        (3, 'asserts', 'pai', NULL, 0, 0), (4, 'kept', 'pass', '4930200', 0, 0);
      INSERT INTO carrier_gateway (id, carrier_id, host) VALUES (1, 2, '192.0.2.1');`)
    await run()
    const modes = 'SELECT caller_id_mode, caller_id_value FROM carrier ORDER BY id'
    expect(await read(modes)).toEqual([
      ['pass', null],
      ['fixed', '4930100'],
      ['pai', null],
      ['pass', '4930200'],
    ])
    const rules =
      'SELECT DISTINCT caller_identity, header_rules, stir_sign, stir_verify, hunting FROM carrier'
    expect(await read(rules)).toEqual([[null, '[]', 0, 'off', null]])
    expect(await read('SELECT carrier_id FROM carrier_gateway')).toEqual([[2]])
    await execute("UPDATE carrier SET caller_id_mode = 'policy' WHERE id = 1")
    await expect(
      execute("UPDATE carrier SET caller_id_mode = 'other' WHERE id = 2"),
    ).rejects.toThrow(/check/i)
  })
})
