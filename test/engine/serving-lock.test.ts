import { join } from 'node:path'
import { expect, test } from 'vitest'
import { lockForServing } from '../../engine/serving-lock.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

const folder = temporaryFolder()

test('a database is served by one process at a time', () => {
  const path = join(folder, 'a.db')
  const first = lockForServing(path)
  expect(() => lockForServing(path)).toThrow(
    `cannot use database ${path}: another tollgate process is serving it`,
  )
  first.release()
  lockForServing(path).release()
})

test('databases in memory do not exclude each other', () => {
  const first = lockForServing(':memory:')
  lockForServing(':memory:').release()
  first.release()
})
