import { expect, test } from 'vitest'
import {
  type UnusualCalls,
  unusualCalls,
  type UnusualRequest,
} from '../../../../control/reports/unusual-calls.ts'
import type { CallSources } from '../../../../control/reports/call-filters.ts'
import { seededRandom } from '../../../support/seeded-random.ts'
import { eachDatabase, localDatabase } from '../../../support/shared-database.ts'
import {
  aRecord,
  DAY,
  firstDay,
  placeOf,
  rollUpAt,
  type StoredRecord,
  storeRecords,
} from '../../../support/summed-calls.ts'

const CUSTOMERS = 60
const now = firstDay + 20.6 * DAY
const kinds = ['spend', 'destination', 'wallet', 'rate', 'unknown_callers', 'trunk']

async function findIn(place: CallSources, asked: Partial<UnusualRequest> = {}) {
  const request = { tenantId: null, from: now - DAY, before: now, kinds, ...asked }
  const work = unusualCalls(place, request)
  let turns = 0
  let step = await work.next()
  for (; step.done !== true; step = await work.next()) turns += 1
  return { turns, found: step.value }
}

async function storeAll(place: CallSources, records: readonly StoredRecord[]): Promise<void> {
  for (let from = 0; from < records.length; from += 500)
    await storeRecords(place, records.slice(from, from + 500))
}

const paid = (columns: Partial<StoredRecord>) =>
  aRecord({ disposition: 'ANSWERED', customer_id: 1, tenant_id: 1, currency: 'USD', ...columns })

const refused = (columns: Partial<StoredRecord>) =>
  aRecord({ customer_id: 1, tenant_id: 1, denial_code: 'no_rate', ...columns })

/** Twenty quiet days, and in the last hours all that is unusual. */
function incident(): readonly StoredRecord[] {
  const random = seededRandom(264)
  const records: StoredRecord[] = []
  for (let ago = 20; ago >= 0; ago -= 1)
    for (let call = 0; call < 30; call += 1) {
      const start_stamp = now - Math.floor((ago + random()) * DAY)
      const customer_id = 1 + (call % 2)
      const cost_micros = 100_000 + Math.floor(random() * 100_000)
      const own = { start_stamp, customer_id, tenant_id: customer_id, carrier: 'telco' }
      records.push(paid({ ...own, rate_prefix: '49', cost_micros }))
      if (call === 0) records.push(refused({ ...own, carrier: null }))
    }
  for (let call = 0; call < 40; call += 1) {
    const start_stamp = now - 7_200_000 + call * 1_000
    const own = { start_stamp, carrier: 'telco' }
    records.push(refused({ ...own, carrier: null, denial_code: 'insufficient_funds' }))
    records.push(refused({ ...own, carrier: null, customer_id: null, denial_code: 'no_payer' }))
    records.push(aRecord(own), aRecord(own))
    if (call < 12) records.push(paid({ ...own, rate_prefix: '881', cost_micros: 1_500_000 }))
    if (call < 12)
      records.push(
        paid({ ...own, customer_id: 2, tenant_id: 2, rate_prefix: '49', cost_micros: 900_000 }),
      )
  }
  return records
}

const outline = ({ money, refusals, carriers }: UnusualCalls) => ({
  money: money.map(
    ({ kind, severity, customerId, prefix, costMicros, what, firstAt, samples }) => ({
      about: [kind, severity, customerId, prefix, costMicros],
      what,
      firstAt,
      uuids: samples.map(({ call_uuid: uuid }) => uuid),
    }),
  ),
  refusals: refusals.map(({ kind, code, customerId, calls }) => [kind, code, customerId, calls]),
  carriers: carriers.map(({ carrier, calls }) => [carrier, calls]),
})

test.each(eachDatabase)(
  'findings on $database are the same whether the sums have none of the calls, some, or all',
  async ({ open }) => {
    const store = await open()
    const place = placeOf(store)
    const records = incident()
    await storeAll(place, records.slice(0, 200))
    const half = placeOf(store)
    await rollUpAt(half)
    await storeAll(place, records.slice(200))
    const sought: readonly Partial<UnusualRequest>[] = [
      {},
      { tenantId: 1 },
      { from: now - 6 * DAY },
      { from: now - 3 * 3_600_000 },
      { kinds: ['destination'] },
      { from: now - 9 * DAY, before: now - 2 * DAY },
    ]
    const found = await Promise.all(
      sought.map(async (asked) => outline((await findIn(place, asked)).found)),
    )
    const [all, own, , , narrow, quiet] = found
    expect(all).toMatchObject({
      money: [
        { about: ['destination', 'critical', 1, '881', 18_000_000], firstAt: now - 7_200_000 },
        { about: ['destination', 'high', 2, '49', 13_062_998] },
      ],
      refusals: expect.arrayContaining([
        ['wallet', 'insufficient_funds', 1, 40],
        ['unknown_callers', 'no_payer', null, 40],
      ]) as unknown,
      carriers: [['telco', expect.any(Number)]],
    })
    expect(own?.money).toEqual(all?.money.slice(0, 1))
    expect(narrow).toEqual({ money: all?.money, refusals: [], carriers: [] })
    expect(quiet).toEqual({ money: [], refusals: [], carriers: [] })
    for (const sums of [half, place]) {
      await rollUpAt(place)
      for (const [index, asked] of sought.entries())
        expect([asked, outline((await findIn(sums, asked)).found)]).toEqual([asked, found[index]])
    }
  },
)

test('however many customers have an incident, the fifty worst are looked at, with a pause after each', async () => {
  const place = placeOf(localDatabase())
  const records: StoredRecord[] = []
  for (let customer = 1; customer <= CUSTOMERS; customer += 1)
    for (let call = 0; call < (customer === CUSTOMERS ? 5 : 4); call += 1) {
      const own = { customer_id: customer, start_stamp: now - 60_000 }
      records.push(refused({ ...own, denial_code: 'insufficient_funds' }))
    }
  await storeAll(place, records)
  const { found, turns } = await findIn(place)
  expect(found.refusals).toHaveLength(50)
  expect(found.refusals[0]?.customerId).toBe(CUSTOMERS)
  expect(turns).toBeGreaterThanOrEqual(50)
})
