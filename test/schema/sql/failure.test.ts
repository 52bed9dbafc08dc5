/** The same fault is told in the same words, whichever database found it. */
import { describe, expect, test } from 'vitest'
import { DatabaseUnavailable, failureOf } from '../../../schema/sql/failure.ts'
import { eachDatabase } from '../../support/shared-database.ts'

const tenant = (values: string): string =>
  `INSERT INTO tenant (id, slug, name, created_at, is_active) VALUES ${values}`
const customer = (name: string, tenantId: string): string =>
  `INSERT INTO customer (name, tenant_id, created_at, updated_at) VALUES ('${name}', ${tenantId}, 0, 0)`
const set = (name: string): string =>
  `INSERT INTO dispatcher_set (id, set_id, endpoint_name, algorithm, created_at, updated_at)
   VALUES (1, 1, '${name}', 8, 0, 0)`
const node = "INSERT INTO dispatcher_node (dispatcher_set_id, host) VALUES (1, 'a')"

const faults = [
  {
    before: [tenant("(1, 'a', 'A', 0, 1)")],
    sql: tenant("(2, 'a', 'A', 0, 1)"),
    failure: { kind: 'unique', unique: { columns: ['tenant.slug'] } },
  },
  {
    before: [tenant("(1, 'a', 'A', 0, 1)")],
    sql: tenant("(1, 'b', 'A', 0, 1)"),
    failure: { kind: 'unique', unique: { columns: ['tenant.id'] } },
  },
  {
    before: [customer('same', 'NULL')],
    sql: customer('same', 'NULL'),
    failure: { kind: 'unique', unique: { index: 'customer_name' } },
  },
  {
    before: [set('pbx'), node],
    sql: node,
    failure: {
      kind: 'unique',
      unique: {
        columns: [
          'dispatcher_node.dispatcher_set_id',
          'dispatcher_node.host',
          'dispatcher_node.internal_port',
          'dispatcher_node.transport',
        ],
      },
    },
  },
  { before: [], sql: customer('a', '7'), failure: { kind: 'reference' } },
  {
    before: [tenant("(1, 'a', 'A', 0, 1)"), customer('a', '1')],
    sql: 'DELETE FROM tenant WHERE id = 1',
    failure: { kind: 'reference' },
  },
  { before: [], sql: tenant("(1, 'a', 'A', 0, 2)"), failure: { kind: 'check' } },
  { before: [], sql: tenant("(1, NULL, 'A', 0, 1)"), failure: { kind: 'check' } },
]

describe.each(eachDatabase)('on $database', ({ open }) => {
  test('faults are named', async () => {
    const { statements } = await open()
    for (const { before, sql, failure } of faults) {
      // Rolls back what it did.
      const all = statements.transaction(async () => {
        for (const each of [...before, sql]) await statements.prepare(each).run([])
      })
      const error: unknown = await all.catch((thrown: unknown) => thrown)
      expect([sql, failureOf(error)]).toEqual([sql, failure])
    }
  })
})

test.each([
  ['SQLITE_BUSY_SNAPSHOT', 'locked'],
  ['SQLITE_FULL', 'unwritable'],
  ['SQLITE_READONLY_DBMOVED', 'unwritable'],
  ['53100', 'unwritable'],
  ['25006', 'unwritable'],
  ['40001', 'conflict'],
  ['57P01', 'unavailable'],
])('%s is %s', (code, kind) => {
  expect(failureOf(Object.assign(new Error('no'), { code }))).toEqual({ kind })
})

test('an error of the program says nothing of the database', () => {
  expect(failureOf(new TypeError('no'))).toBeUndefined()
  expect(failureOf(new DatabaseUnavailable('no'))).toEqual({ kind: 'unavailable' })
})
