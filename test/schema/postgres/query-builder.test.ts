import { describe, expect, test } from 'vitest'
import { all } from '../../../schema/sql/query.ts'
import { eachDatabase } from '../../support/shared-database.ts'

describe.each(eachDatabase)('lists on $database', ({ open }) => {
  test('no value is in an empty list, and every value is not in it', async () => {
    const store = await open()
    const settings = store.db.selectFrom('setting').select('name')
    const every = await all(store, settings)
    expect(every.length).toBeGreaterThan(0)
    expect(await all(store, settings.where('name', 'in', []))).toEqual([])
    expect(await all(store, settings.where('name', 'not in', []))).toEqual(every)
    const nested = settings.where(({ exists, selectFrom }) =>
      exists(selectFrom('tenant').select('id').where('id', 'in', [])),
    )
    expect(await all(store, nested)).toEqual([])
  })
})
