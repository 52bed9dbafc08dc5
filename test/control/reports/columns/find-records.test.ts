/** Searches in call records: the same answers whatever part of the records is in blocks. */
import { describe, expect, test } from 'vitest'
import type { CallSources } from '../../../../control/reports/call-filters.ts'
import { buildBlocks } from '../../../../control/reports/columns/block-builder.ts'
import {
  findRecords,
  type FindRequest,
  type FoundRecords,
} from '../../../../control/reports/columns/find-records.ts'
import { matchingIds } from '../../../../control/reports/columns/record-stream.ts'
import { rollUp } from '../../../../control/reports/roll-up.ts'
import { execute } from '../../../../schema/sql/query.ts'
import { meanwhile } from '../../../support/meanwhile.ts'
import {
  addCustomers,
  foundOneByOne,
  randomSearch,
  searchedRecord,
} from '../../../support/searched-calls.ts'
import { seededRandom } from '../../../support/seeded-random.ts'
import { eachDatabase } from '../../../support/shared-database.ts'
import {
  aRecord,
  DAY,
  firstDay,
  placeOf,
  resultOf,
  rollUpAt,
  storeRecords,
} from '../../../support/summed-calls.ts'

const build = (place: CallSources, now = firstDay, retainedFrom?: number): Promise<number> =>
  resultOf(buildBlocks(place, { now, retainedFrom, size: 40 }))

const search = (place: CallSources, asked: FindRequest): Promise<FoundRecords> =>
  resultOf(findRecords(place, asked))

async function streamed(place: CallSources, { scope, sort }: FindRequest) {
  const ids: number[] = []
  for await (const some of matchingIds(place, scope, sort.isDescending)) ids.push(...(some ?? []))
  return ids
}

const all: FindRequest = {
  scope: { tenantId: null, from: firstDay, before: firstDay + 5 * DAY },
  sort: { by: 'start', isDescending: false },
  offset: 0,
  limit: 1_000,
  withTotals: true,
}

describe.each(eachDatabase)('searches on $database', ({ open }) => {
  test('an answer is what the records are, one by one, whatever part of them is in blocks', async () => {
    const place = placeOf(await open())
    await addCustomers(place)
    const random = seededRandom(7)
    const records = Array.from({ length: 480 }, () => searchedRecord(random))
    let built = 0
    for (let stored = 0; stored < records.length; stored += 80) {
      await storeRecords(place, records.slice(stored, stored + 80))
      if (random() < 0.7) built += await build(place)
      const known = records.slice(0, stored + 80)
      for (let question = 0; question < 60; question += 1) {
        const asked = randomSearch(random)
        const wanted = foundOneByOne(known, asked)
        const found = await search(place, asked)
        const ids = found.rows.map(({ id }) => id)
        const first = wanted.ids.slice(0, asked.limit)
        const hasMore = wanted.ids.length > asked.limit
        expect({ asked, ids, totals: found.totals, hasMore: found.hasMore }).toEqual({
          asked,
          ids: first,
          totals: wanted.totals,
          hasMore,
        })
        if (question % 6 > 0) continue
        const byStart = { ...asked, sort: { ...asked.sort, by: 'start' as const } }
        expect(await streamed(place, byStart)).toEqual(foundOneByOne(known, byStart).ids)
      }
    }
    expect(built).toBeGreaterThan(5)
  })

  test('an answer is the same when it comes from many blocks', async () => {
    const place = placeOf(await open())
    await addCustomers(place)
    const random = seededRandom(23)
    const records = Array.from({ length: 400 }, () => searchedRecord(random))
    await storeRecords(place, records)
    for (let round = 0; round < 2; round += 1)
      await resultOf(buildBlocks(place, { now: firstDay, retainedFrom: undefined, size: 10 }))
    for (let question = 0; question < 120; question += 1) {
      const asked = randomSearch(random)
      const wanted = foundOneByOne(records, asked)
      const { rows, totals } = await search(place, asked)
      const ids = rows.map(({ id }) => id)
      const first = wanted.ids.slice(0, asked.limit)
      expect({ asked, ids, totals }).toEqual({ asked, ids: first, totals: wanted.totals })
    }
  })

  test('what no record of a block has is no value: such records come last, by whatever they are ordered', async () => {
    const place = placeOf(await open())
    const some = { mos_score: 3.5, post_dial_delay_ms: 120 }
    const prices = { cost_micros: 90, currency: 'USD', carrier_currency: 'USD' }
    const records = Array.from({ length: 120 }, (_, n) =>
      n >= 40 && n < 80
        ? aRecord({ ...some, ...prices, carrier_cost_micros: n, duration: n })
        : aRecord({ start_stamp: firstDay + n }),
    )
    await storeRecords(place, records)
    expect(await build(place)).toBe(3)
    for (const by of ['mos', 'pdd', 'margin', 'cost'] as const)
      for (const isDescending of [true, false]) {
        const asked = { ...all, sort: { by, isDescending } }
        const { rows, totals } = await search(place, asked)
        const wanted = foundOneByOne(records, asked)
        expect({ asked, ids: rows.map(({ id }) => id), totals }).toEqual({ asked, ...wanted })
      }
  })

  test('pages one after another have each record once, also when others come between them', async () => {
    const place = placeOf(await open())
    const random = seededRandom(11)
    const records = Array.from({ length: 200 }, () => searchedRecord(random))
    for (const by of ['start', 'mos', 'cost', 'margin'] as const)
      for (const isDescending of [true, false]) {
        await execute(place.store, place.store.db.deleteFrom('cdr'))
        await execute(place.sums, place.sums.db.deleteFrom('record_block'))
        const stored = records.map((record, index) => ({ ...record, id: index + 1 }))
        await storeRecords(place, stored)
        await build(place)
        const asked = { ...all, sort: { by, isDescending }, limit: 30, withTotals: false }
        const wanted = foundOneByOne(records, asked).ids
        const ids: number[] = []
        let after: FindRequest['after']
        for (let page = 1; ; page += 1) {
          const found = await search(place, { ...asked, after })
          ids.push(...found.rows.map(({ id }) => id).filter((id) => id <= records.length))
          after = found.rows.at(-1)
          if (!found.hasMore) break
          await storeRecords(place, [{ ...searchedRecord(random), id: records.length + page }])
        }
        expect(ids).toEqual(wanted)
      }
  })

  test('a cost that has changed is found at once, and by the block once it is made again', async () => {
    const place = placeOf(await open())
    await storeRecords(
      place,
      Array.from({ length: 120 }, () => aRecord({ cost_micros: 5, currency: 'USD' })),
    )
    await rollUpAt(place)
    expect(await build(place)).toBe(3)
    const { db } = place.store
    await execute(place.store, db.updateTable('cdr').set({ cost_micros: 905 }).where('id', '=', 50))
    const change = { cdr_id: 50, cost_micros: 900, currency: 'USD' }
    await execute(place.store, db.insertInto('cdr_cost_change').values(change))
    const asked = { ...all, scope: { ...all.scope, match: { cost: [900, undefined] as const } } }
    const found = { totals: { calls: 1, cost: { USD: '0.000905' } }, rows: [{ id: 50 }] }
    expect(await search(place, asked)).toMatchObject(found)
    await rollUpAt(place)
    expect(await search(place, asked)).toMatchObject(found)
    // The roll-up has made the one block again.
    expect(await build(place)).toBe(0)
    expect(await search(place, asked)).toMatchObject(found)
  })

  test('a cost that is taken into the sums during a search is the new one', async () => {
    const place = placeOf(await open())
    const costs = { cost_micros: 5, currency: 'USD' }
    await storeRecords(
      place,
      Array.from({ length: 120 }, () => aRecord(costs)),
    )
    await rollUpAt(place)
    await build(place)
    const { db } = place.store
    await execute(place.store, db.updateTable('cdr').set({ cost_micros: 905 }).where('id', '=', 50))
    const change = { cdr_id: 50, cost_micros: 900, currency: 'USD' }
    await execute(place.store, db.insertInto('cdr_cost_change').values(change))
    const stale = place.sums.statements.prepare('SELECT 1 FROM record_block WHERE is_stale = 1')
    const during = meanwhile(place, 'call_sum_state', async () => {
      const work = rollUp(place, { now: firstDay, retainedFrom: undefined })
      while ((await stale.get([])) === undefined) await work.next()
    })
    expect((await search(during, all)).totals?.cost).toEqual({ USD: '0.0015' })
  })

  test('deleted records are counted until their block is looked through', async () => {
    const place = placeOf(await open())
    const records = Array.from({ length: 100 }, (_, n) => aRecord({ start_stamp: firstDay + n }))
    await storeRecords(place, records)
    await build(place)
    const { db } = place.store
    await execute(place.store, db.deleteFrom('cdr').where('id', '<=', 20))
    // Retention deletes the oldest first.
    expect((await search(place, all)).totals?.calls).toBe(80)
    await execute(place.store, db.deleteFrom('cdr').where('id', '=', 30))
    expect(await build(place, firstDay + DAY)).toBe(1)
    expect((await search(place, all)).totals?.calls).toBe(79)
    await execute(place.store, db.deleteFrom('cdr').where('id', '<=', 60))
    await build(place, firstDay + DAY, firstDay + 60)
    const blocks = await place.sums.statements.prepare('SELECT * FROM record_block').all([])
    expect(blocks).toHaveLength(1)
    expect((await search(place, all)).totals?.calls).toBe(40)
  })
})

describe.each(eachDatabase.filter(({ database }) => database !== 'SQLite'))(
  'several writers on $database',
  ({ open }) => {
    test('a record whose id comes late is found before and after its block is made again', async () => {
      const place = placeOf(await open())
      const records = Array.from({ length: 90 }, (_, n) => ({ ...aRecord(), id: n + 1 }))
      await storeRecords(
        place,
        records.filter(({ id }) => id !== 33),
      )
      expect(await build(place)).toBe(2)
      expect((await search(place, all)).totals?.calls).toBe(89)
      await storeRecords(
        place,
        records.filter(({ id }) => id === 33),
      )
      expect((await search(place, all)).totals?.calls).toBe(90)
      expect(await build(place, firstDay + 1_000)).toBe(1)
      expect((await search(place, all)).totals?.calls).toBe(90)
    })

    test('a record whose id comes late is found once by a search and an export during which its block is made again', async () => {
      for (const isExport of [false, true]) {
        const place = placeOf(await open())
        const records = Array.from({ length: 90 }, (_, n) => ({ ...aRecord(), id: n + 1 }))
        const late = records.filter(({ id }) => id === 2 || id === 33 || id === 34)
        const early = records.filter((each) => !late.includes(each))
        await storeRecords(place, early)
        expect(await build(place)).toBe(2)
        await storeRecords(place, late)
        let built = 0
        const during = meanwhile(place, 'record_column', async () => {
          built += await build(place, firstDay + 1_000)
        })
        const ids = isExport
          ? await streamed(during, all)
          : (await search(during, all)).rows.map(({ id }) => id)
        expect(ids).toEqual(records.map(({ id }) => id))
        expect(built).toBe(1)
      }
    })
  },
)

describe.each(eachDatabase)('without columns on $database', ({ open }) => {
  test('totals are those of the daily sums where these have the filter, and the answer says what it lacks', async () => {
    const place = placeOf(await open())
    await addCustomers(place)
    const random = seededRandom(3)
    const records = Array.from({ length: 300 }, () => searchedRecord(random))
    await storeRecords(place, records)
    await rollUpAt(place)
    const some = records.find(({ carrier, node, customer_id: id }) => carrier && node && id)
    const { carrier, node, customer_id: customer, caller_id_number: caller } = some ?? {}
    const inSums: readonly FindRequest['scope']['match'][] = [
      undefined,
      { customer_id: [Number(customer)] },
      { carrier: [String(carrier)] },
      { node: [String(node)] },
      { caller: String(caller) },
      { called: '4*' },
    ]
    const inRecords = [{ code: [200, 503] }, { carrier: ['telco', 'backup'] }, { called: '49301' }]
    for (const tenantId of [null, 1])
      for (const isDescending of [true, false])
        for (const match of [...inSums, ...inRecords]) {
          const scope = { ...all.scope, tenantId, match }
          const sort = { by: 'start', isDescending } as const
          const asked = { ...all, scope, sort, limit: 20 }
          const whole = await search(place, asked)
          const early = await resultOf(findRecords(place, asked, { manyOthers: 100 }))
          const isOfSums = !inRecords.some((each) => each === match)
          expect({ match, ...early }).toEqual({
            match,
            ...whole,
            ...(isOfSums && {
              totals: { ...whole.totals, carrier_cost: {}, margin: {} },
              isComplete: false,
              missing: { records: 'none', totals: 'carrier_costs', without_columns: 300 },
            }),
          })
        }
  })
})

test('a search ends after ten seconds with what it has, and says so', async () => {
  const { open } = eachDatabase[0] ?? {}
  const store = await open?.()
  if (store === undefined) throw new Error('no database')
  let now = 0
  const place = { ...placeOf(store), steadyNow: () => (now += 20_000) }
  for (let stored = 0; stored < 3_000; stored += 500)
    await storeRecords(
      place,
      Array.from({ length: 500 }, () => aRecord()),
    )
  const { isComplete, missing, totals } = await search(place, all)
  expect(isComplete).toBe(false)
  expect(missing).toEqual({ records: 'some', totals: 'some', without_columns: 3_000 })
  expect(totals?.calls).toBeLessThan(3_000)
})
