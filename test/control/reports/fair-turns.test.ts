import { expect, test } from 'vitest'
import { FairTurns } from '../../../control/reports/report-thread.ts'
import { turnOfEventLoop } from '../../support/waiting.ts'

/** Work that ends when it is told to, and in which order it began. */
function opened(places: number) {
  const turns = new FairTurns(places)
  const begun: string[] = []
  const ends = new Map<string, () => void>()
  const run = (reader: number | null, name: string) =>
    turns.run(reader, async () => {
      begun.push(name)
      await new Promise<void>((resolve) => ends.set(name, resolve))
    })
  const end = async (name: string): Promise<void> => {
    await turnOfEventLoop()
    ends.get(name)?.()
    await turnOfEventLoop()
  }
  return { begun, run, end }
}

test('who asks once waits for one question of a reader that asks a hundred times', async () => {
  const { begun, run, end } = opened(1)
  void run(1, 'many 1')
  for (let each = 2; each <= 4; each += 1) void run(1, `many ${each}`)
  void run(2, 'one')
  void run(null, 'platform')
  await end('many 1')
  await end('many 2')
  await end('one')
  await end('platform')
  await end('many 3')
  expect(begun).toEqual(['many 1', 'many 2', 'one', 'platform', 'many 3', 'many 4'])
})

test('so many work at the same time, and a place that is free is taken at once', async () => {
  const { begun, run, end } = opened(2)
  for (const name of ['a', 'b', 'c']) void run(1, name)
  await end('none')
  expect(begun).toEqual(['a', 'b'])
  await end('a')
  await end('b')
  await end('c')
  void run(1, 'd')
  void run(1, 'e')
  await end('none')
  expect(begun).toEqual(['a', 'b', 'c', 'd', 'e'])
})

test('a reader that waits for a hundred questions is refused, others are not', async () => {
  const { run, begun, end } = opened(1)
  for (let each = 0; each <= 100; each += 1) void run(1, `many ${each}`)
  await expect(run(1, 'too many')).rejects.toMatchObject({ status: 503, code: 'too_many_searches' })
  void run(2, 'other')
  await end('many 0')
  await end('many 1')
  expect(begun).toEqual(['many 0', 'many 1', 'other'])
})
