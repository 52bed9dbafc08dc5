import { expect, test } from 'vitest'
import { type Param, prepare } from '../../../schema/sql/query.ts'
import { freshStore } from '../../support/books.ts'

test('a compiled statement takes its values by name, wherever and however often they stand', async () => {
  const store = freshStore()
  const insert = prepare(store, (db, param: Param<{ name: string; at: number }>) =>
    db
      .insertInto('tenant')
      .values({ name: param('name'), slug: param('name'), created_at: param('at') }),
  )
  expect(await insert.run({ at: 7, name: 'acme' })).toBe(1)
  const find = prepare(store, (db, param: Param<{ slug: string }>) =>
    db
      .selectFrom('tenant')
      .select(['name', 'created_at', 'is_active'])
      .where('slug', '=', param('slug')),
  )
  expect(await find.get({ slug: 'acme' })).toEqual({ name: 'acme', created_at: 7, is_active: 1 })
  expect(await find.get({ slug: 'beta' })).toBeUndefined()
  expect(await find.all({ slug: 'acme' })).toHaveLength(1)
})

test('constants of a compiled query keep their places between the parameters', async () => {
  const store = freshStore()
  const answer = prepare(store, (db, param: Param<{ a: number; b: number }>) =>
    db.selectNoFrom((eb) => [
      eb.val(param('b')).as('b'),
      eb.val('constant').as('c'),
      eb.val(param('a')).as('a'),
    ]),
  )
  expect(await answer.get({ a: 1, b: 2 })).toEqual({ a: 1, b: 2, c: 'constant' })
})
