/** Imports in their thread, on a file and on a server. */
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import type { ImportWork } from '../../../control/resources/import-table.ts'
import { openRateImports, type RateImportsDeps } from '../../../control/resources/rate-imports.ts'
import { FileChanges } from '../../../schema/changes/file-changes.ts'
import { migrate } from '../../../schema/migrations/migrate.ts'
import { openDatabase } from '../../../schema/sqlite/open.ts'
import type { Store } from '../../../schema/storage/store.ts'
import { all, execute, first, insert } from '../../../schema/sql/query.ts'
import { ManualTime } from '../../support/manual-time.ts'
import { hasPostgres } from '../../support/postgres.ts'
import { sharedDatabase } from '../../support/shared-database.ts'
import { temporaryFolder } from '../../support/temporary-folder.ts'
import { threadFile } from '../../support/thread-file.ts'

const file = await threadFile(
  new URL('../../../control/resources/rate-import-worker.ts', import.meta.url),
)

function onFile() {
  const path = join(temporaryFolder(), 'a.db')
  const store = openDatabase(path)
  onTestFinished(() => store.close())
  migrate(store.sqlite, 0)
  return { store, path }
}

function importsOf(
  deps: Pick<RateImportsDeps, 'store' | 'databaseUrl' | 'changes'> &
    Partial<Pick<RateImportsDeps, 'schedule'>>,
) {
  const imports = openRateImports({
    schedule: () => () => undefined,
    ...deps,
    file,
    log: () => undefined,
  })
  onTestFinished(() => imports.stop())
  return imports
}

const planOf = (store: Store, name = 'retail') =>
  insert(
    store,
    store.db
      .insertInto('rate_plan')
      .values({ name, currency: 'EUR', decimals: 4, tenant_id: null, created_at: 0 })
      .returning('id'),
  )

const ratesIn = async (store: Store): Promise<number> => {
  const query = store.db.selectFrom('rate').select((row) => row.fn.countAll<number>().as('n'))
  return (await first(store, query))?.n ?? 0
}

const workOf = (table: string, isDryRun = false): ImportWork => ({
  kind: 'rates',
  table: new TextEncoder().encode(table),
  plan: { rate_plan: 'retail' },
  order: { mode: 'merge', isDryRun, allowsDefault: false },
  scope: { tenantId: null, actor: 'test', now: 0 },
})

const databases = [
  { database: 'SQLite', open: async () => ({ ...onFile(), url: undefined }) },
  ...(hasPostgres
    ? [
        {
          database: 'PostgreSQL',
          async open() {
            const { url, open } = await sharedDatabase()
            return { store: await open(), url }
          },
        },
      ]
    : []),
]

test.each(databases)(
  'a thread imports what is valid into $database, and answers as this one would',
  async ({ open }) => {
    const { store, url } = await open()
    const planId = await planOf(store)
    const imports = importsOf({ store, databaseUrl: url })
    const good = 'prefix,rate_per_minute\n49,0.10\n44,0.20\n'
    const report = { imported: 2, created: 2, updated: 0, removed: 0 }
    expect(await imports.run(workOf(good, true))).toMatchObject({ report })
    expect(await ratesIn(store)).toBe(0)
    expect(await imports.run(workOf(good))).toEqual({
      kind: 'rates',
      report,
      changed: {
        plans: [planId],
        prefixes: [
          { planId, prefix: '49' },
          { planId, prefix: '44' },
        ],
      },
    })
    expect(await ratesIn(store)).toBe(2)
    await expect(imports.run(workOf('prefix,rate_per_minute\n1,cheap\n'))).rejects.toMatchObject({
      name: 'ApiError',
      status: 400,
      code: 'validation_failed',
      details: [{ path: 'lines.2.rate_per_minute' }],
    })
    const other = { ...workOf(good), plan: { rate_plan: 'none' } }
    await expect(imports.run(other)).rejects.toMatchObject({ status: 400 })
    expect(await ratesIn(store)).toBe(2)
  },
)

const numbersOf = (table: string, isDryRun = false): ImportWork => ({
  kind: 'numbers',
  table: new TextEncoder().encode(table),
  isDryRun,
  may: { targets: true, fees: true },
  scope: { tenantId: null, actor: 'test', now: 5 },
})

test.each(databases)(
  'a thread imports numbers into $database, and answers as this one would',
  async ({ open }) => {
    const { store, url } = await open()
    const named = { tenant_id: null, created_at: 0, updated_at: 0 }
    const add = (name: string) =>
      insert(
        store,
        store.db
          .insertInto('customer')
          .values({ ...named, name })
          .returning('id'),
      )
    // An absent customer is another one than one of this name.
    const [acme, empty] = [await add('Acme'), await add('null')]
    const imports = importsOf({ store, databaseUrl: url })
    const numbers = async () => {
      const query = store.db
        .selectFrom('phone_number')
        .select(['number', 'last_number', 'customer_id', 'display_name'])
      return all(store, query.orderBy('number'))
    }
    const good = 'number,last_number,customer\n+4930100,,Acme\n+4930200,+4930299,\n+4930300,,null\n'
    const report = { imported: 3, created: 3, updated: 0 }
    expect(await imports.run(numbersOf(good, true))).toMatchObject({ report })
    expect(await numbers()).toEqual([])
    const done = await imports.run(numbersOf(good))
    const ids = await all(store, store.db.selectFrom('phone_number').select('id').orderBy('id'))
    const changed = { ids: ids.map(({ id }) => id), customerIds: [acme, empty] }
    expect(done).toEqual({ kind: 'numbers', report, changed })
    const rows = [
      { number: '+4930100', last_number: '4930100', customer_id: acme, display_name: null },
      { number: '+4930200', last_number: '4930299', customer_id: null, display_name: null },
      { number: '+4930300', last_number: '4930300', customer_id: empty, display_name: null },
    ]
    expect(await numbers()).toEqual(rows)
    for (const [wrong, status, detail] of [
      ['number\n+4930400\n4930x\n', 400, 'lines.3.number'],
      ['number,customer\n+4930400,none\n', 400, 'lines.2.customer'],
      ['number\n+4930250\n', 409, 'lines.2.number'],
    ] as const)
      await expect(imports.run(numbersOf(wrong))).rejects.toMatchObject({
        name: 'ApiError',
        status,
        details: [{ path: detail }],
      })
    expect(await numbers()).toEqual(rows)
  },
)

test.each(databases)(
  'a thread imports and changes thousands of numbers in $database',
  async ({ open }) => {
    const { store, url } = await open()
    const imports = importsOf({ store, databaseUrl: url })
    const count = 3_000
    const table = (name: string) =>
      Array.from({ length: count }, (_, n) => `+49${300_000 + n},${name}\n`).join('')
    const run = (name: string) => imports.run(numbersOf(`number,display_name\n${table(name)}`))
    const made = { imported: count, created: count, updated: 0 }
    expect(await run('first')).toMatchObject({ report: made })
    const before = await all(store, store.db.selectFrom('phone_number').selectAll().orderBy('id'))
    expect(await run('second')).toMatchObject({ report: { ...made, created: 0, updated: count } })
    const after = await all(store, store.db.selectFrom('phone_number').selectAll().orderBy('id'))
    expect(after).toEqual(before.map((row) => ({ ...row, display_name: 'second' })))
  },
)

test('of one tenant four tables are in memory, and each tenant has its turn', async () => {
  const { store } = onFile()
  await planOf(store)
  const imports = importsOf({ store })
  const work = workOf('prefix,rate_per_minute\n49,0.10\n')
  const order: string[] = []
  const of = (tenantId: number, name: string) =>
    imports
      .run({ ...work, table: work.table.slice(), scope: { ...work.scope, tenantId } })
      .catch(({ code }: { readonly code: string }) => {
        if (code === 'too_many_imports') throw new Error(code)
      })
      .finally(() => order.push(name))
  const [first, second, third, fourth] = ['a', 'b', 'c', 'd'].map((name) => of(1, name))
  await expect(of(1, 'e')).rejects.toThrow('too_many_imports')
  await Promise.all([first, second, third, fourth, of(2, 'other')])
  expect(order).toEqual(['e', 'a', 'b', 'other', 'c', 'd'])
})

test('what the thread commits is not taken for the commit of another program, which is not missed', async () => {
  const { store, path } = onFile()
  await planOf(store)
  const time = new ManualTime(0)
  const { schedule, every } = time
  const changes = new FileChanges(store, { schedule, every, log: () => undefined })
  let reloads = 0
  changes.follow({ topics: ['rate'], reload: async () => void (reloads += 1) })
  await changes.start()
  const imports = importsOf({ store, changes })
  await imports.run(workOf('prefix,rate_per_minute\n49,0.10\n'))
  time.advance(1_000)
  expect(reloads).toBe(0)
  const other = openDatabase(path)
  onTestFinished(() => other.close())
  await execute(other, other.db.updateTable('rate_plan').set({ decimals: 2 }))
  await imports.run(workOf('prefix,rate_per_minute\n44,0.10\n'))
  expect(reloads).toBe(1)
  await execute(other, other.db.updateTable('rate_plan').set({ decimals: 3 }))
  time.advance(1_000)
  await Promise.resolve()
  expect(reloads).toBe(2)
})

test('an import in the moment in which the idle thread stops has a thread of its own', async () => {
  const { store } = onFile()
  await planOf(store)
  const time = new ManualTime(0)
  const imports = importsOf({ store, schedule: time.schedule })
  await imports.run(workOf('prefix,rate_per_minute\n49,0.10\n'))
  time.advance(60_000)
  const second = await imports.run(workOf('prefix,rate_per_minute\n44,0.10\n'))
  expect(second.report).toMatchObject({ imported: 1 })
  expect(await ratesIn(store)).toBe(2)
})

test('an import whose thread is stopped is rolled back, and is told to come again', async () => {
  const { store } = onFile()
  await planOf(store)
  const imports = importsOf({ store })
  const running = imports.run(workOf('prefix,rate_per_minute\n49,0.10\n'))
  const refused = running.catch((error: unknown) => error)
  await Promise.resolve()
  await imports.stop()
  expect(await refused).toMatchObject({
    status: 503,
    code: 'import_interrupted',
    headers: { 'Retry-After': '5' },
  })
  expect(await ratesIn(store)).toBe(0)
})
