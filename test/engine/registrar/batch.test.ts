import { expect, test } from 'vitest'
import { Batch } from '../../../engine/registrar/registrar.ts'
import { ManualTime } from '../../support/manual-time.ts'

function batches() {
  const time = new ManualTime(0)
  const done: (readonly string[])[] = []
  const batch = new Batch<string>({
    schedule: time.schedule,
    waitMs: 50,
    maxItems: 3,
    work: (items) => void done.push(items),
  })
  return { time, done, batch }
}

test('what comes in within 50 ms of the first is done together, in order', () => {
  const { time, done, batch } = batches()
  batch.add('a')
  time.advance(49)
  batch.add('b')
  expect(done).toEqual([])
  time.advance(1)
  expect(done).toEqual([['a', 'b']])
  batch.add('c')
  time.advance(50)
  expect(done).toEqual([['a', 'b'], ['c']])
})

test('a full one does not wait, and nothing is done twice', () => {
  const { time, done, batch } = batches()
  for (const item of ['a', 'b', 'c', 'd']) batch.add(item)
  expect(done).toEqual([['a', 'b', 'c']])
  batch.flush()
  batch.flush()
  time.advance(100)
  expect(done).toEqual([['a', 'b', 'c'], ['d']])
})
