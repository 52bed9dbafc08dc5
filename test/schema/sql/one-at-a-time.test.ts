import { expect, test } from 'vitest'
import { oneAtATime } from '../../../schema/sql/one-at-a-time.ts'
import { deferred, type Deferred } from '../../support/deferred.ts'

test('calls during a run share the next one, which begins when it has ended, even with an error', async () => {
  const runs: Deferred<number>[] = []
  const call = oneAtATime(() => {
    const run = deferred<number>()
    runs.push(run)
    return run.promise
  })
  const first = call()
  const [second, third] = [call(), call()]
  expect(runs).toHaveLength(1)
  runs[0]?.reject(new Error('no'))
  await expect(first).rejects.toThrow('no')
  await Promise.resolve()
  expect(runs).toHaveLength(2)
  const fourth = call()
  runs[1]?.resolve(2)
  expect(await Promise.all([second, third])).toEqual([2, 2])
  runs[2]?.resolve(3)
  expect(await fourth).toBe(3)
  const fifth = call()
  expect(runs).toHaveLength(4)
  runs[3]?.resolve(4)
  expect(await fifth).toBe(4)
})
