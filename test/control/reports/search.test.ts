/** How far a search of call records looks. */
import { describe, expect, test } from 'vitest'
import { type SearchResult, search, type SearchRequest } from '../../../control/reports/search.ts'
import { eachDatabase } from '../../support/shared-database.ts'
import { aRecord, firstDay, placeOf, rollUpAt, storeRecords } from '../../support/summed-calls.ts'

describe.each(eachDatabase)('a search on $database', ({ open }) => {
  test('through many records gives way to everything else, says where it stopped, and goes on there', async () => {
    const place = placeOf(await open())
    const count = 10_600
    const records = Array.from({ length: count }, (_, n) =>
      aRecord({
        start_stamp: firstDay + Math.floor(n / 3),
        caller_id_number: n % 1_000 === 7 ? 'wanted' : 'other',
        cost_micros: n,
      }),
    )
    for (let from = 0; from < count; from += 530)
      await storeRecords(place, records.slice(from, from + 530))
    const look = async (given: Partial<SearchRequest>): Promise<SearchResult> => {
      const work = search(
        place,
        {
          tenantId: null,
          from: firstDay,
          before: firstDay + 100_000,
          filters: {},
          number: 'wanted',
          order: 'newest',
          limit: 20,
          ...given,
        },
        1,
      )
      let step = await work.next()
      while (step.done !== true) step = await work.next()
      return step.value
    }
    const wanted = records.flatMap((_, n) => (n % 1_000 === 7 ? [n + 1] : [])).toReversed()
    for (const order of ['newest', 'cost'] as const) {
      const first = await look({ order })
      expect(first.stoppedAt).toBeDefined()
      const rest = await look({ order, after: first.stoppedAt })
      expect(rest.stoppedAt).toBeUndefined()
      expect([...first.ids, ...rest.ids]).toEqual(wanted)
    }
    // The sums know when there were calls of a caller: no other records are looked through.
    await storeRecords(place, [
      aRecord({ start_stamp: firstDay + 10, caller_id_number: 'once' }),
      aRecord({ start_stamp: firstDay + 20, caller_id_number: 'once' }),
    ])
    const once = { number: undefined, filters: { members: { caller: 'once' } } }
    expect((await look(once)).stoppedAt).toBeDefined()
    await rollUpAt(place)
    expect(await look(once)).toEqual({ ids: [count + 2, count + 1] })
    const nowhere = { startStamp: 1, id: 1 }
    expect(await look({ ...once, after: nowhere })).toEqual({ ids: [] })
    const few = await look({ limit: 3 })
    expect(few.ids).toEqual(wanted.slice(0, 3))
    expect((await look({ limit: 3, after: few.stoppedAt })).ids).toEqual(wanted.slice(3, 6))
  })
})
