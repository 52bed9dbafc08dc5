import { describe, expect, test } from 'vitest'
import { onOneInstance } from '../../../schema/sql/query.ts'
import { deferred } from '../../support/deferred.ts'
import { hasPostgres } from '../../support/postgres.ts'
import { sharedDatabase } from '../../support/shared-database.ts'

describe.runIf(hasPostgres)('on several instances', () => {
  test('work that another instance is at is left to it, and other work is not', async () => {
    const { open } = await sharedDatabase()
    const [here, there] = [await open(), await open()]
    const [begun, end] = [deferred(), deferred()]
    const first = onOneInstance(here, 'retention', async () => {
      begun.resolve()
      await end.promise
    })
    await begun.promise
    const work = async () => 'mine'
    expect(await onOneInstance(there, 'retention', work)).toEqual({ kind: 'elsewhere' })
    expect(await onOneInstance(there, 'webhooks', work)).toEqual({ kind: 'done', result: 'mine' })
    end.resolve()
    await first
    expect(await onOneInstance(there, 'retention', work)).toEqual({ kind: 'done', result: 'mine' })
  })

  test('work that failed is free for the others', async () => {
    const { open } = await sharedDatabase()
    const [here, there] = [await open(), await open()]
    const failed = onOneInstance(here, 'retention', () => Promise.reject(new Error('no')))
    await expect(failed).rejects.toThrow('no')
    expect(await onOneInstance(there, 'retention', async () => 1)).toEqual({
      kind: 'done',
      result: 1,
    })
  })
})
