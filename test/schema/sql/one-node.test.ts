import { describe, expect, test } from 'vitest'
import { onOneNode } from '../../../schema/sql/query.ts'
import { deferred } from '../../support/deferred.ts'
import { hasPostgres } from '../../support/postgres.ts'
import { sharedDatabase } from '../../support/shared-database.ts'

describe.runIf(hasPostgres)('on several nodes', () => {
  test('work that another node is at is left to it, and other work is not', async () => {
    const { open } = await sharedDatabase()
    const [here, there] = [await open(), await open()]
    const [begun, end] = [deferred(), deferred()]
    const first = onOneNode(here, 'retention', async () => {
      begun.resolve()
      await end.promise
    })
    await begun.promise
    const work = async () => 'mine'
    expect(await onOneNode(there, 'retention', work)).toEqual({ kind: 'elsewhere' })
    expect(await onOneNode(there, 'webhooks', work)).toEqual({ kind: 'done', result: 'mine' })
    end.resolve()
    await first
    expect(await onOneNode(there, 'retention', work)).toEqual({ kind: 'done', result: 'mine' })
  })

  test('work that failed is free for the others', async () => {
    const { open } = await sharedDatabase()
    const [here, there] = [await open(), await open()]
    const failed = onOneNode(here, 'retention', () => Promise.reject(new Error('no')))
    await expect(failed).rejects.toThrow('no')
    expect(await onOneNode(there, 'retention', async () => 1)).toEqual({ kind: 'done', result: 1 })
  })
})
