/** Sums of call records by group, with any filters: the same whatever part of them is in blocks. */
import { describe, expect, test } from 'vitest'
import type { CallSources } from '../../../../control/reports/call-filters.ts'
import { buildBlocks } from '../../../../control/reports/columns/block-builder.ts'
import { summarize, totalOf } from '../../../../control/reports/summarize.ts'
import { isFound, randomSearch, searchedRecord } from '../../../support/searched-calls.ts'
import { seededRandom } from '../../../support/seeded-random.ts'
import { eachDatabase, localDatabase } from '../../../support/shared-database.ts'
import {
  aRecord,
  counted,
  DAY,
  firstDay,
  placeOf,
  randomRequest,
  resultOf,
  rollUpAt,
  storeRecords,
  type StoredRecord,
  summarizeAt,
} from '../../../support/summed-calls.ts'

const built = { now: firstDay, retainedFrom: undefined }

/** Caller and price are asked in another way by the two of them. */
function randomQuestion(random: () => number) {
  const asked = randomRequest(random)
  const { caller: _, ...members } = asked.filters.members ?? {}
  const { match = {} } = randomSearch(random).scope
  const { cost, margin, ...rest } = match
  return {
    ...asked,
    filters: { ...asked.filters, members },
    match: asked.tenantId === null ? { ...rest, cost, margin } : rest,
  }
}

describe.each(eachDatabase)('groups on $database', ({ open }) => {
  test('a group is what its records come to, one by one, by any filters', async () => {
    const place = placeOf(await open())
    const random = seededRandom(5)
    const records = Array.from({ length: 400 }, () => searchedRecord(random))
    for (let stored = 0; stored < records.length; stored += 100) {
      await storeRecords(place, records.slice(stored, stored + 100))
      if (random() < 0.7) await resultOf(buildBlocks(place, { ...built, size: 40 }))
      for (let question = 0; question < 60; question += 1) {
        const asked = randomQuestion(random)
        const isMeant = (record: StoredRecord) => isFound(record, { scope: asked })
        const expected = counted(records.slice(0, stored + 100).filter(isMeant), asked)
        const found = await summarizeAt(place, asked)
        const listed = found.groups.map(
          ({ group, name: _, call_uuids: __, asr_percent: ___, ...figures }) =>
            [group ?? '', figures] as const,
        )
        const wanted = [...expected].filter(
          ([name]) => expected.size <= 200 || listed.some(([group]) => group === name),
        )
        const { complete, totals } = found
        expect({ asked, complete, groups: Object.fromEntries(listed) }).toEqual({
          asked,
          complete: true,
          groups: Object.fromEntries(wanted),
        })
        expect(totals.groups).toBe(expected.size)
      }
    }
  })

  test('calls of a block without a customer, a tenant or a delay have none', async () => {
    const place = placeOf(await open())
    const records = Array.from({ length: 80 }, (_, n) =>
      n < 40 ? aRecord() : aRecord({ customer_id: 1, tenant_id: 1, post_dial_delay_ms: 200 }),
    )
    await storeRecords(place, records)
    expect(await resultOf(buildBlocks(place, { ...built, size: 40 }))).toBe(2)
    const code = [503]
    for (const groupBy of ['customer', 'tenant', 'carrier'] as const) {
      const { groups } = await summarizeAt(place, { groupBy, match: { code } })
      const found = groups.map(({ group, calls, mean_pdd_ms: pdd }) => [group ?? '', calls, pdd])
      expect({ groupBy, found }).toEqual({
        groupBy,
        found:
          groupBy === 'carrier'
            ? [['', 80, 200]]
            : expect.arrayContaining([
                ['', 40, null],
                ['1', 40, 200],
              ]),
      })
    }
  })
})

describe('a summary of many records', () => {
  const asked = {
    tenantId: null,
    from: firstDay,
    before: firstDay + 5 * DAY,
    filters: {},
    orderBy: 'count',
    limit: 10,
  } as const

  async function openMany() {
    const place = placeOf(localDatabase())
    const records = Array.from({ length: 200 }, (_, n) =>
      aRecord({ caller_id_number: `+49${n}`, start_stamp: firstDay + n }),
    )
    await storeRecords(place, records)
    await resultOf(buildBlocks(place, { ...built, size: 40 }))
    return place
  }

  test('reads blocks where the daily totals do not have its groups, or have too many', async () => {
    const place = await openMany()
    await rollUpAt(place)
    const sources = async (leastInBlocks: number) => {
      const answers: boolean[] = []
      for (const groupBy of ['caller', 'carrier'] as const) {
        const day = { ...asked, before: firstDay + DAY, groupBy }
        const work = summarize(place, day, { leastInBlocks })
        answers.push((await resultOf(work)).isFromTotals)
      }
      return answers
    }
    expect(await sources(1_000)).toEqual([true, true])
    expect(await sources(100)).toEqual([false, true])
  })

  test('says that it is not complete when time is up', async () => {
    const place = await openMany()
    let ms = 0
    const slow: CallSources = { ...place, steadyNow: () => (ms += 20_000) }
    const work = summarize(slow, { ...asked, groupBy: 'caller', match: {} })
    const found = await resultOf(work)
    expect(found.isComplete).toBe(false)
    expect(totalOf(found).figures.calls).toBe(200)
  })
})
