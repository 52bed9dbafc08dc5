/** Where statements run: in the reading thread of their database, or here. */
import { expect, test } from 'vitest'
import {
  all,
  execute,
  first,
  prepare,
  readApart,
  type Reader,
  setReadingThread,
  transaction,
} from '../../../schema/sql/query.ts'
import { emptyStore } from '../../support/empty-store.ts'

function opened() {
  const store = emptyStore(0)
  const apart: { readonly sql: string; readonly reader: Reader }[] = []
  const { statements } = store
  const here = statements.prepare.bind(statements)
  setReadingThread(statements, {
    prepare(sql, reader) {
      apart.push({ sql, reader })
      return here(sql)
    },
  })
  const plans = store.db.selectFrom('rate_plan').select('name')
  return { store, apart, plans }
}

test('what readApart surrounds is read by the thread, for that reader, and nothing else is', async () => {
  const { store, apart, plans } = opened()
  await all(store, plans)
  expect(apart).toEqual([])
  await readApart(store, 7, async () => {
    await all(store, plans)
    await readApart(store, 8, () => first(store, plans))
    await prepare(store, (db) => db.selectFrom('rate').select('id')).all({})
  })
  expect(apart).toEqual([
    { sql: plans.compile().sql, reader: 7 },
    { sql: plans.compile().sql, reader: 7 },
    { sql: 'select "id" from "rate"', reader: 7 },
  ])
  await all(store, plans)
  expect(apart).toHaveLength(3)
})

test('a transaction reads what it has written: its statements never run in the thread', async () => {
  const { store, apart, plans } = opened()
  const insert = store.db.insertInto('rate_plan').values({ name: 'new', created_at: 0 })
  const names = await transaction(store, async () => {
    await execute(store, insert)
    return readApart(store, null, () => all(store, plans))
  })
  expect([names, apart]).toEqual([[{ name: 'new' }], []])
  const again = await readApart(store, null, () => transaction(store, () => all(store, plans)))
  expect([again, apart]).toEqual([[{ name: 'new' }], []])
})
