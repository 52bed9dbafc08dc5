/** Summaries of calls, out of kept sums and of records. */
import { describe, expect, test, vi } from 'vitest'
import type { CallFilters, CallSources } from '../../../control/reports/call-filters.ts'
import { buildBlocks } from '../../../control/reports/columns/block-builder.ts'
import { summarize, totalOf } from '../../../control/reports/summarize.ts'
import { openControl } from '../../support/control.ts'
import { seededRandom } from '../../support/seeded-random.ts'
import { eachDatabase, localDatabase } from '../../support/shared-database.ts'
import {
  aRecord,
  counted,
  DAY,
  firstDay,
  placeOf,
  randomRecord,
  randomRequest,
  resultOf,
  rollUpAt,
  storeRecords,
  summarizeAt,
} from '../../support/summed-calls.ts'

const built = { now: firstDay, retainedFrom: undefined }

describe.each(eachDatabase)('summaries on $database', ({ open }) => {
  test('a summary is what the records come to, one by one, whatever part of them the sums have', async () => {
    const place = placeOf(await open())
    const random = seededRandom(33)
    const records = Array.from({ length: 600 }, () => randomRecord(random))
    let kept = 0
    for (let stored = 0; stored < records.length; stored += 60) {
      await storeRecords(place, records.slice(stored, stored + 60))
      if (random() < 0.6) await rollUpAt(place)
      if (random() < 0.6) await resultOf(buildBlocks(place, { ...built, size: 40 }))
      for (let question = 0; question < 25; question += 1) {
        const asked = randomRequest(random)
        const expected = counted(records.slice(0, stored + 60), asked)
        const found = await summarizeAt(place, asked)
        if (found.source === 'sums') kept += 1
        const listed = found.groups.map(
          ({ group, name: _, call_uuids: __, asr_percent: ___, ...figures }) =>
            [group ?? '', figures] as const,
        )
        // More minutes than are listed: those that are must be right.
        const wanted = [...expected].filter(
          ([name]) => expected.size <= 200 || listed.some(([group]) => group === name),
        )
        const calls = [...expected.values()].reduce((sum, group) => sum + group.calls, 0)
        const { complete, other_calls: others, totals } = found
        expect({ asked, complete, others, groups: Object.fromEntries(listed) }).toEqual({
          asked,
          complete: true,
          others: 0,
          groups: Object.fromEntries(wanted),
        })
        expect(totals).toMatchObject({ groups: expected.size, calls })
        const byBlocks = await summarizeAt(place, { ...asked, match: {} })
        expect({ asked, ...byBlocks }).toEqual({ asked, ...found, source: 'records' })
      }
    }
    expect(kept).toBeGreaterThan(60)
  })

  test('evidence is the dearest call, the first and the last', async () => {
    const place = placeOf(await open())
    const records = [5, 700, 30].map((cost_micros) => aRecord({ cost_micros, currency: 'USD' }))
    await storeRecords(place, records)
    await rollUpAt(place)
    const [first, dearest, last] = records.map(({ call_uuid: uuid }) => uuid)
    const [group] = (await summarizeAt(place, { groupBy: 'caller' })).groups
    expect(group?.call_uuids).toEqual([dearest, first, last])
  })

  test('the order is by cost, by calls, or by the worst ratio of answers', async () => {
    const place = placeOf(await open())
    const of = (carrier: string, count: number, columns: object) =>
      Array.from({ length: count }, () => aRecord({ carrier, ...columns }))
    await storeRecords(place, [
      ...of('many', 3, { disposition: 'ANSWERED' }),
      ...of('dear', 1, { disposition: 'ANSWERED', cost_micros: 9, currency: 'USD' }),
      ...of('bad', 2, { disposition: 'FAILED' }),
    ])
    const first = async (orderBy: 'cost' | 'count' | 'asr') =>
      (await summarizeAt(place, { groupBy: 'carrier', orderBy, limit: 1 })).groups[0]?.group
    expect(await first('cost')).toBe('dear')
    expect(await first('count')).toBe('many')
    expect(await first('asr')).toBe('bad')
  })
})

describe('a summary that would read records for more than a second', () => {
  const COUNT = 10_500
  /** One call each second; the oldest twenty through a carrier of their own. */
  async function openBusy() {
    const place = placeOf(localDatabase())
    const records = Array.from({ length: COUNT }, (_, n) =>
      aRecord({ start_stamp: firstDay + n * 1_000, carrier: n < 20 ? 'rare' : 'usual' }),
    )
    for (let from = 0; from < COUNT; from += 500)
      await storeRecords(place, records.slice(from, from + 500))
    let ms = 0
    const late: CallSources = { ...place, steadyNow: () => (ms += 2_000) }
    const ask = async (filters: CallFilters, leastWindows = 1) => {
      const whole = { tenantId: null, from: firstDay, before: firstDay + 2 * DAY }
      const asked = { ...whole, groupBy: 'minute' as const, orderBy: 'count' as const, limit: 1 }
      const found = await resultOf(summarize(late, { ...asked, filters }, { leastWindows }))
      const { from, isComplete } = found
      return { from, isComplete, calls: totalOf(found).figures.calls }
    }
    return { place, ask }
  }

  test('leaves out the oldest, and says from when on it is complete', async () => {
    const { ask } = await openBusy()
    const from = firstDay + 500 * 1_000
    expect(await ask({ direction: 'inbound' })).toEqual({ from, isComplete: false, calls: 10_000 })
  })

  test('reads the times alone at which there were such calls', async () => {
    const { place, ask } = await openBusy()
    await rollUpAt(place)
    const rare = { from: firstDay, isComplete: true, calls: 20 }
    expect(await ask({ members: { carrier: 'rare' } })).toEqual(rare)
    expect(await ask({ members: { carrier: 'rare', caller: '4930100' } })).toEqual(rare)
    expect(await ask({ members: { carrier: 'rare', node: 'gone' } })).toMatchObject({ calls: 0 })
    // A record that the sums do not have yet is read, whatever they say.
    await storeRecords(place, [aRecord({ start_stamp: firstDay + DAY, carrier: 'rare' })])
    expect((await ask({ members: { carrier: 'rare' } }, 2)).calls).toBe(21)
  })
})

describe('a summary of many days', () => {
  const DAYS = 100
  const asked = {
    tenantId: null,
    from: firstDay,
    before: firstDay + DAYS * DAY,
    filters: {},
    groupBy: 'carrier',
    orderBy: 'count',
    limit: 10,
  } as const

  /** A call each day. */
  async function openLong() {
    const place = placeOf(localDatabase())
    const records = Array.from({ length: DAYS }, (_, day) =>
      aRecord({ start_stamp: firstDay + day * DAY, carrier: 'telco' }),
    )
    await storeRecords(place, records)
    await rollUpAt(place)
    const prepared = vi.spyOn(place.sums.statements, 'prepare')
    const readSums = (): number =>
      prepared.mock.calls.filter(([text]) => text.includes('from "call_sum" where')).length
    return { place, readSums }
  }

  test.each([1, 3])(
    'to which calls are added between its turns, %i times, has each call once',
    async (times) => {
      const { place } = await openLong()
      const work = summarize(place, asked)
      let turns = 0
      let step = await work.next()
      for (; step.done !== true; step = await work.next()) {
        turns += 1
        if (turns % 8 !== 3 || turns > 8 * times) continue
        await storeRecords(place, [aRecord({ start_stamp: firstDay, carrier: 'telco' })])
        await rollUpAt(place)
      }
      expect(totalOf(step.value).figures.calls).toBe(DAYS + times)
      expect(step.value).toMatchObject({ isFromTotals: true, isComplete: true })
    },
  )

  test('to whose sums is added all the time is read from the records', async () => {
    const { place } = await openLong()
    const work = summarize(place, asked)
    let step = await work.next()
    let added = 0
    // As many turns as all attempts have.
    for (; step.done !== true; step = await work.next()) {
      if (added >= 28) continue
      added += 1
      await storeRecords(place, [aRecord({ start_stamp: firstDay, carrier: 'telco' })])
      await rollUpAt(place)
    }
    expect(totalOf(step.value).figures.calls).toBe(DAYS + added)
    expect(step.value).toMatchObject({ isFromTotals: false, isComplete: true })
  })
})

test('a tenant sees its own calls alone, in the sums and in the records', async () => {
  const control = await openControl()
  const [acme, other] = [await control.tenant('acme'), await control.tenant('other')]
  const token = await control.key({ tenant_scope: 'tenant', tenant_slug: 'acme' })
  await storeRecords(control, [
    aRecord({ tenant_id: acme, carrier: 'telco' }),
    aRecord({ tenant_id: other, carrier: 'telco' }),
    aRecord({ tenant_id: null, carrier: 'telco' }),
  ])
  const ask = async (query: string, as = token) =>
    control.request(`/api/v1/reports/calls?${query}`, { token: as })
  const period = 'start_date=2026-11-01&end_date=2026-11-02'
  for (const source of ['records', 'sums']) {
    for (const by of ['tenant', 'carrier', 'minute', 'caller', 'customer']) {
      const found = (await ask(`${period}&group_by=${by}`)).data<object>()
      expect({ source, by, found }).toMatchObject({ found: { totals: { calls: 1, groups: 1 } } })
    }
    expect((await ask(`${period}&group_by=carrier&tenant=other`)).status).not.toBe(200)
    await control.deps.reports.rollUp({ now: firstDay, retainedFrom: undefined })
  }
  const root = await control.key()
  const all = (await ask(`${period}&group_by=tenant`, root)).data()
  expect(all).toMatchObject({
    totals: { calls: 3 },
    groups: expect.arrayContaining([
      expect.objectContaining({ group: String(acme), name: 'acme', calls: 1 }),
      expect.objectContaining({ group: null, name: null, calls: 1 }),
    ]) as unknown,
  })
})

const counts = (calls: Readonly<Record<string, number>>) => new Map(Object.entries(calls))

test('calls are counted with all filters that a list of them has', async () => {
  const control = await openControl()
  const acme = await control.tenant('acme')
  const token = await control.key({ tenant_scope: 'tenant', tenant_slug: 'acme' })
  const loss = { cost_micros: 5, currency: 'USD', carrier_cost_micros: 9, carrier_currency: 'USD' }
  await storeRecords(control, [
    aRecord({ carrier: 'one', sip_code: 486, caller_id_number: '+4930100' }),
    aRecord({ carrier: 'two', duration: 70, node: 'sip:10.0.0.1:5060;transport=udp' }),
    aRecord({ carrier: 'two', disposition: 'BUSY', caller_id_number: '4930177' }),
    aRecord({ carrier: 'three', ...loss, tenant_id: acme, tags: '{"crm":"42"}' }),
  ])
  const root = await control.key()
  const groups = async (query: string, as?: string) => {
    const path = `/api/v1/reports/calls?start_date=2026-11-01&end_date=2026-11-02&${query}`
    const { status, body } = await control.request(path, { token: as ?? root })
    expect({ query, status }).toEqual({ query, status: 200 })
    const { data } = body as { data: { groups: { group: string; calls: number }[] } }
    return new Map(data.groups.map(({ group, calls }) => [group, calls]))
  }
  const by = 'group_by=carrier'
  expect(await groups(`${by}&code=486,487`)).toEqual(counts({ one: 1 }))
  expect(await groups(`${by}&duration_from=60`)).toEqual(counts({ two: 1 }))
  expect(await groups(`${by}&carrier=one,two`)).toEqual(counts({ one: 1, two: 2 }))
  expect(await groups(`${by}&carrier=two&disposition=BUSY,FAILED`)).toEqual(counts({ two: 2 }))
  expect(await groups(`${by}&carrier=two&disposition=BUSY`)).toEqual(counts({ two: 1 }))
  expect(await groups(`${by}&caller=49301*`)).toEqual(counts({ one: 1, two: 2, three: 1 }))
  expect(await groups(`${by}&caller=4930100`)).toEqual(counts({ one: 1, two: 1, three: 1 }))
  expect(await groups(`${by}&number=%2B4930177`)).toEqual(counts({ two: 1 }))
  expect(await groups(`${by}&node=10.0.0.1,10.0.0.2`)).toEqual(counts({ two: 1 }))
  expect(await groups(`${by}&loss=true`)).toEqual(counts({ three: 1 }))
  expect(await groups(`${by}&tag=crm:42`)).toEqual(counts({ three: 1 }))
  expect((await groups('group_by=caller&caller=49301*')).get('+4930100')).toBe(1)
  // Neither the calls of others, nor what the carrier of the platform takes.
  expect(await groups(`${by}&caller=49301*`, token)).toEqual(counts({ three: 1 }))
  expect(await groups(`${by}&loss=true`, token)).toEqual(counts({}))
  const { status } = await control.request(
    '/api/v1/reports/calls?start_date=2026-11-01&end_date=2026-11-02&group_by=carrier&code=999',
    { token: root },
  )
  expect(status).toBe(400)
})
