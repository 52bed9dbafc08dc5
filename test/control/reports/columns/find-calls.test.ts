/** Calls by their numbers and Call-IDs: the same answers whatever part of the records is in blocks. */
import { describe, expect, test } from 'vitest'
import type { CallSources } from '../../../../control/reports/call-filters.ts'
import { buildBlocks } from '../../../../control/reports/columns/block-builder.ts'
import { findCalls } from '../../../../control/reports/columns/find-calls.ts'
import { spellingsOf } from '../../../../control/search/texts.ts'
import { withoutPlus } from '../../../../schema/rules/numbers.ts'
import { all, execute } from '../../../../schema/sql/query.ts'
import { seededRandom } from '../../../support/seeded-random.ts'
import { eachDatabase } from '../../../support/shared-database.ts'
import {
  aRecord,
  firstDay,
  placeOf,
  resultOf,
  storeRecords,
  type StoredRecord,
} from '../../../support/summed-calls.ts'

const build = (place: CallSources): Promise<number> =>
  resultOf(buildBlocks(place, { now: firstDay, retainedFrom: undefined, size: 40 }))

const find = (place: CallSources, text: string, tenantId: number | null = null, limit = 5) =>
  resultOf(findCalls(place, { text, numbers: spellingsOf(text), tenantId, limit }))

const numbers = ['4930100', '+4930100', '49301', '+49301001', '1900', 'anna', '*100', '#21*']
const longNumbers = ['493010012345678901', '+493010012345678902']
const callIds = ['call-1', 'call-12', 'call-2@sbc', '493010', '4930100', 'xyz', 'Call-12']

const texts = [
  ...numbers,
  ...longNumbers,
  ...callIds,
  ...['493', '+493', '00493', '004930100', '49 30 100', 'call-', 'call', '190', '*10', 'nothing'],
]

/** After blocks were made, and with some records beside them. */
const searched = [2, 5]

type Stored = StoredRecord & { readonly id: number; readonly start_stamp: number }

/** One by one. */
function expected(
  records: readonly Stored[],
  text: string,
  tenantId: number | null,
  limit: number,
) {
  const spellings = spellingsOf(text)
  const own = records
    .filter((record) => tenantId === null || record.tenant_id === tenantId)
    .toSorted((one, other) => other.start_stamp - one.start_stamp || other.id - one.id)
  const both = (record: Stored) => [record.caller_id_number, record.destination_number]
  const isWhole = (record: Stored) =>
    (text.length >= 6 && record.call_id === text) ||
    both(record).some((number) => spellings.includes(number))
  const begins = (record: Stored) =>
    (text.length >= 6 && record.call_id.startsWith(text)) ||
    both(record).some((number) =>
      spellings.some((each) => withoutPlus(number).startsWith(withoutPlus(each))),
    )
  const idsOf = (some: readonly Stored[]) => some.slice(0, limit).map(({ id }) => id)
  return {
    whole: idsOf(own.filter(isWhole)),
    beginning: idsOf(own.filter((record) => !isWhole(record) && begins(record))),
  }
}

describe.each(eachDatabase)('calls on $database', ({ open }) => {
  test('a call is found by either number and by its Call-ID, whole or by its beginning, whatever part of the records is in blocks', async () => {
    const place = placeOf(await open())
    const random = seededRandom(5)
    const one = <T>(values: readonly T[]): T => values[Math.floor(random() * values.length)] as T
    const records: Stored[] = []
    for (let round = 0; round < 6; round += 1) {
      const some = Array.from({ length: 70 }, (_, n): Stored => {
        const start = firstDay + Math.floor(random() * 1_000)
        return {
          ...aRecord({
            caller_id_number: one(random() < 0.2 ? numbers : ['5550001', '5550002']),
            destination_number: one(random() < 0.2 ? [...numbers, ...longNumbers] : ['5550003']),
            call_id: random() < 0.2 ? one(callIds) : `other-${round}-${n}`,
            tenant_id: one([null, 1, 2]),
          }),
          id: records.length + n + 1,
          start_stamp: start,
        }
      })
      records.push(...some)
      await storeRecords(place, some)
      if (round % 2 === 0) await build(place)
      if (!searched.includes(round)) continue
      for (const text of texts)
        for (const [tenantId, limit] of [
          [null, 5],
          [null, 100],
          [1, 3],
        ] as const) {
          const found = await find(place, text, tenantId, limit)
          const wanted = expected(records, text, tenantId, limit)
          const isFull = wanted.whole.length === limit
          // Nobody looks at these then.
          expect({ text, ...found, ...(isFull && { beginning: [] }) }).toEqual({
            text,
            ...wanted,
            ...(isFull && { beginning: [] }),
          })
        }
    }
  })

  test('an old call is found by its whole Call-ID, however many newer ones begin so', async () => {
    const place = placeOf(await open())
    for (let stored = 0; stored < 3_100; stored += 500)
      await storeRecords(
        place,
        Array.from({ length: 500 }, (_, n) =>
          aRecord({ call_id: `1-4711@pbx-${stored + n}`, start_stamp: firstDay + stored + n }),
        ),
      )
    const large = { now: firstDay, retainedFrom: undefined, size: 1_000 }
    expect(await resultOf(buildBlocks(place, large))).toBe(3)
    for (const number of [0, 7, 1_234, 2_999, 3_400])
      expect((await find(place, `1-4711@pbx-${number}`)).whole).toEqual([number + 1])
  })

  test('an old call is found while others keep the thread busy, within five seconds', async () => {
    const place = placeOf(await open())
    const number = (n: number) => aRecord({ caller_id_number: `493010${100 + n}` })
    await storeRecords(
      place,
      Array.from({ length: 500 }, (_, n) => ({ ...number(n), start_stamp: firstDay + n })),
    )
    const small = { now: firstDay, retainedFrom: undefined, size: 5 }
    for (let round = 0; round < 5; round += 1)
      expect(await resultOf(buildBlocks(place, small))).toBe(20)
    const search = { text: '493010100', numbers: ['493010100'], tenantId: null, limit: 5 }
    for (const [busyMs, whole] of [
      [900, [1]],
      [6_000, []],
    ] as const) {
      let now = 0
      const work = findCalls({ ...place, steadyNow: () => now }, search)
      let step = await work.next()
      for (; step.done !== true; step = await work.next()) now += busyMs
      expect(step.value.whole).toEqual(whole)
    }
  })

  test('blocks of an earlier version are searched, and made again with what they lack', async () => {
    const place = placeOf(await open())
    await storeRecords(
      place,
      Array.from({ length: 100 }, (_, n) =>
        aRecord({ call_id: `a84b4c76e${n}`, caller_id_number: `4930${n + 100}` }),
      ),
    )
    expect(await build(place)).toBe(2)
    const { sums } = place
    const blocks = sums.db.selectFrom('record_block').select(['first_id', 'head'])
    for (const { first_id: id, head } of await all(sums, blocks)) {
      const { call_id_start: _, ...columns } = (JSON.parse(head) as { columns: object })
        .columns as Record<string, unknown>
      const older = JSON.stringify({ ...(JSON.parse(head) as object), columns })
      await execute(
        sums,
        sums.db.updateTable('record_block').set({ head: older }).where('first_id', '=', id),
      )
    }
    await execute(sums, sums.db.deleteFrom('record_column').where('name', '=', 'call_id_start'))
    // As the next start of the program sees them.
    const store = { ...place.store }
    const later = { ...place, store, sums: place.sums === place.store ? store : { ...sums } }
    const ids = async (text: string) => {
      const { whole, beginning } = await find(later, text)
      return [whole.length, beginning.length]
    }
    expect(await ids('4930117')).toEqual([1, 0])
    expect(await ids('a84b4c76e17')).toEqual([1, 0])
    // The last twenty are in no block.
    expect(await ids('a84b4c76')).toEqual([0, 5])
    expect(await ids('a84b4c76e3')).toEqual([1, 0])
    expect(await build(later)).toBe(2)
    expect(await ids('a84b4c76e3')).toEqual([1, 5])
    expect(await build(later)).toBe(0)
  })
})
