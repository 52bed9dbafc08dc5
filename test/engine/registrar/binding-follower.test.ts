import { expect, test } from 'vitest'
import { BindingFollower } from '../../../engine/registrar/registrations.ts'
import { ManualTime } from '../../support/manual-time.ts'

const turn = (): Promise<void> => new Promise((resolve) => void setImmediate(resolve))

function following() {
  const time = new ManualTime(1_000)
  const reads: (readonly number[])[] = []
  const taken: number[] = []
  let tell: (payload: string) => void = () => undefined
  let gap = (): void => undefined
  const database = { isAway: false }
  const follower = new BindingFollower({
    node: 'a',
    bindings: {
      loadOf: async (ids) => {
        reads.push(ids)
        if (database.isAway) throw new Error('away')
        return []
      },
      async *extensionIds() {
        yield [7, 8]
      },
      isWriting: () => false,
    },
    known: () => [8, 9],
    take: (ids) => void taken.push(...ids),
    now: time.now,
    schedule: time.schedule,
    log: () => undefined,
  })
  follower.listen({
    on: (_, handler) => {
      tell = handler
      return () => undefined
    },
    onGap: (handler) => {
      gap = handler
      return () => undefined
    },
  })
  const pass = async (ms: number): Promise<void> => {
    time.advance(ms)
    await turn()
  }
  return {
    time,
    reads,
    taken,
    database,
    pass,
    tell: (id: number) => tell(`b ${id}`),
    gap: () => gap(),
  }
}

test('registrations that are told one after the other are read together, twenty times a second at most', async () => {
  const { reads, pass, tell } = following()
  for (let id = 0; id < 100; id += 1) {
    tell(id)
    await pass(10)
  }
  await pass(50)
  expect(reads.length).toBeLessThanOrEqual(21)
  expect(reads.flat()).toHaveLength(100)
})

test('what cannot be read is read half a second later, and what was missed is read whole', async () => {
  const { reads, taken, database, pass, tell, gap } = following()
  database.isAway = true
  tell(7)
  await pass(0)
  expect([reads, taken]).toEqual([[[7]], []])
  database.isAway = false
  await pass(499)
  expect(taken).toEqual([])
  gap()
  await pass(1)
  expect(taken.toSorted((one, other) => one - other)).toEqual([7, 8, 9])
})
