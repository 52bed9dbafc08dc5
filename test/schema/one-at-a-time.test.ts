import fc from 'fast-check'
import { expect, test } from 'vitest'
import { OneAtATime } from '../../schema/one-at-a-time.ts'
import { all, execute, transaction } from '../../schema/sql/query.ts'
import { emptyStore } from '../support/empty-store.ts'
import { ManualTime } from '../support/manual-time.ts'

const settled = () => new Promise((resolve) => setImmediate(resolve))

/** A value that others write, and a memory of it whose loads take a while. */
function world() {
  const time = new ManualTime(0)
  const seen = { stored: 0, memory: 0, running: 0, atOnce: 0, loads: 0, broken: false }
  const reloads = new OneAtATime(async () => {
    seen.loads += 1
    seen.running += 1
    seen.atOnce = Math.max(seen.atOnce, seen.running)
    const read = seen.stored
    await new Promise<void>((resolve) => void time.schedule(resolve, 10))
    seen.running -= 1
    if (seen.broken) throw new Error('no database')
    seen.memory = read
  })
  const pass = async (ms: number): Promise<void> => {
    for (let left = ms; left > 0; left -= 1) {
      await settled()
      time.advance(1)
    }
    await settled()
  }
  return { seen, reloads, pass }
}

test('whenever it is asked, an answer comes after a load that began after the question', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(fc.nat(25), { maxLength: 40 }), async (gaps) => {
      const { seen, reloads, pass } = world()
      const stale: number[] = []
      const asked: Promise<unknown>[] = []
      for (const gap of gaps) {
        seen.stored += 1
        const own = seen.stored
        asked.push(reloads.request().then(() => seen.memory < own && stale.push(own)))
        if (gap > 15)
          asked.push(reloads.between(() => Promise.resolve(expect(seen.running).toBe(0))))
        else await pass(gap)
      }
      await pass(10 * (gaps.length + 2))
      await Promise.all(asked)
      expect([stale, Math.max(1, seen.atOnce), seen.running]).toEqual([[], 1, 0])
    }),
    { numRuns: 25 },
  )
})

test('a load reads what is committed, even when it is asked for inside a transaction', async () => {
  const store = emptyStore()
  let names: string[] = []
  const reloads = new OneAtATime(async () => {
    const rows = await all(store, store.db.selectFrom('rate_plan').select('name'))
    names = rows.map(({ name }) => name)
  })
  const add = (name: string) =>
    execute(
      store,
      store.db
        .insertInto('rate_plan')
        .values({ name, currency: 'EUR', decimals: 2, created_at: 0 }),
    )
  await add('committed')
  let reload: Promise<void> | undefined
  const rolledBack = transaction(store, async () => {
    await add('rolled back')
    reload = reloads.request()
    throw new Error('no')
  })
  await expect(rolledBack).rejects.toThrow('no')
  await reload
  expect(names).toEqual(['committed'])
  store.close()
})
