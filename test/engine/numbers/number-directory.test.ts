import { expect, test } from 'vitest'
import { NumberDirectory } from '../../../engine/numbers/number-directory.ts'
import type { CalledNumber } from '../../../engine/routing/number-decision.ts'

const BASE = 49_300_000_000

/** `count` rows of ten numbers each, of which the first `singles` have only their first one. */
function stored(count: number, singles: number): Map<number, CalledNumber> {
  const rows = new Map<number, CalledNumber>()
  for (let id = 1; id <= count; id += 1) {
    const first = BASE + id * 10
    const last = id <= singles ? first : first + 9
    rows.set(id, row(id, `+${first}`, `+${last}`))
  }
  return rows
}

const row = (id: number, first: string, last: string): CalledNumber => ({
  ...{ id, first, last, tenantId: 3, customerId: null, displayName: '', attestation: null },
  ...{ isActive: true, target: null },
})

async function opened(rows: ReadonlyMap<number, CalledNumber>) {
  const directory = new NumberDirectory({
    async *load(ids) {
      const wanted = ids === undefined ? [...rows.values()] : ids.map((id) => rows.get(id))
      yield wanted.flatMap((each) => (each === undefined ? [] : [{ ...each }]))
    },
    idsOf: () => Promise.resolve([]),
  })
  await directory.reload()
  return directory
}

test.each([0, 5_000])(
  'an import of 5,000 rows among 60,000 does not hold the loop, with %d single numbers',
  async (singles) => {
    const rows = stored(60_000, singles)
    const directory = await opened(rows)
    const ids = Array.from({ length: 5_000 }, (_, index) => index + 1)
    const before = performance.now()
    await directory.reload({ of: 'number', ids })
    expect(directory.find(`+${BASE + 25_005}`)?.id).toBe(singles === 0 ? 2_500 : undefined)
    expect(performance.now() - before).toBeLessThan(400)
  },
)

test('blocks that come, move, shrink and go are found as they are, in any order', async () => {
  const rows = stored(20, 3)
  const directory = await opened(rows)
  const idAt = (offset: number) => directory.find(`+${BASE + offset}`)?.id
  expect([idAt(10), idAt(15), idAt(105), idAt(209)]).toEqual([1, undefined, 10, 20])
  rows.set(21, row(21, `+${BASE}`, `+${BASE + 4}`))
  rows.set(10, row(10, `+${BASE + 300}`, `+${BASE + 309}`))
  rows.set(20, row(20, `+${BASE + 200}`, `+${BASE + 200}`))
  rows.delete(5)
  await directory.reload({ of: 'number', ids: [21, 10, 20, 5] })
  expect([4, 105, 305, 200, 209, 55].map(idAt)).toEqual([
    21,
    undefined,
    10,
    20,
    undefined,
    undefined,
  ])
  // Twice before a look-up, and back again.
  rows.set(10, row(10, `+${BASE + 100}`, `+${BASE + 109}`))
  await directory.reload({ of: 'number', ids: [10] })
  rows.delete(10)
  await directory.reload({ of: 'number', ids: [10] })
  rows.set(10, row(10, `+${BASE + 101}`, `+${BASE + 109}`))
  await directory.reload({ of: 'number', ids: [10] })
  expect([100, 101, 305, 199].map(idAt)).toEqual([undefined, 10, undefined, 19])
  expect(directory.size).toBe(20)
})
