import fc from 'fast-check'
import { expect, test } from 'vitest'
import {
  type AlgorithmCode,
  firstShares,
  prepareOrder,
} from '../../../engine/dispatcher/algorithms.ts'
import { seededRandom } from '../../support/seeded-random.ts'

const entries = fc.array(
  fc.record({ weight: fc.integer({ min: 1, max: 5 }), priority: fc.integer({ min: 1, max: 2 }) }),
  { minLength: 1, maxLength: 4 },
)
const CALLS = 6_000

test.each<AlgorithmCode>([0, 4, 6, 8, 9])(
  'algorithm %i sends each node the part of first calls that is told of it, full nodes left out',
  (code) => {
    fc.assert(
      fc.property(entries, fc.nat(), (given, choice) => {
        const all = given.map((entry, index) => ({
          ...entry,
          item: index,
          identity: `node ${index}`,
        }))
        const full = given.length > 1 ? choice % (given.length + 1) : given.length
        const order = prepareOrder(code, all)
        const random = seededRandom(choice)
        const firsts = new Map<number, number>()
        for (let turn = 0; turn < CALLS; turn += 1) {
          const first = order({ turn, callId: `call ${turn}`, random }).find(
            (item) => item !== full,
          )
          if (first !== undefined) firsts.set(first, (firsts.get(first) ?? 0) + 1 / CALLS)
        }
        const told = firstShares(
          code,
          all.filter(({ item }) => item !== full),
        )
        for (const { item } of all)
          expect(firsts.get(item) ?? 0).toBeCloseTo(told.get(item) ?? 0, 1)
      }),
      { numRuns: 20 },
    )
  },
)
