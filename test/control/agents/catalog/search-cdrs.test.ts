import { expect, test } from 'vitest'
import { openToolRig, storeRecord } from '../../../support/tools-rig.ts'
import { runSql } from '../../../support/stored.ts'

type Found = { records: { call_uuid: string }[]; cursor: string | null }

test('search_cdrs shows every record once, newest first, over as many answers as it takes', async () => {
  const rig = await openToolRig()
  await runSql(rig.store, 'DELETE FROM cdr')
  // Several begin in the same millisecond.
  for (let index = 0; index < 1_203; index += 1)
    await storeRecord(rig, null, `call ${index}`, {
      start_stamp: rig.now() - 1_000_000 + Math.floor(index / 3),
      caller_id_number: index % 100 === 7 ? 'wanted' : 'other',
    })
  const search = async (given: object) => {
    const seen: string[] = []
    for (let cursor: string | null | undefined; cursor !== null;) {
      const answer = await rig.tool('search_cdrs', {
        ...given,
        ...(cursor !== undefined && { cursor }),
      })
      const found = answer.data<Found>()
      seen.push(...found.records.map(({ call_uuid }) => call_uuid))
      cursor = found.cursor
    }
    return seen
  }
  const expected = Array.from({ length: 1_203 }, (_, index) => `call ${1_202 - index}`)
  expect(await search({ limit: 200 })).toEqual(expected)
  expect(await search({ limit: 5, number: 'want' })).toEqual(
    expected.filter((_, index) => (1_202 - index) % 100 === 7),
  )
  expect(await search({ disposition: 'BUSY' })).toEqual([])
  expect(await search({ end_date: '2020-01-01T00:00:00Z' })).toEqual([])
})

test('each filter finds the calls that have it, and all of them together those that have all', async () => {
  const rig = await openToolRig()
  await runSql(rig.store, 'DELETE FROM cdr')
  const wanted = {
    customer_id: 1,
    tenant_id: 1,
    caller_id_number: '49301',
    carrier: 'telco',
    destination_number: '+1900555',
    node: 'sip:10.0.0.1:5060;transport=udp',
    denial_code: 'no_rate',
    cost_micros: 250_000,
    currency: 'USD',
  }
  const plain = {
    customer_id: null,
    caller_id_number: '7',
    destination_number: '8',
    node: null,
    cost_micros: 0,
    currency: null,
  }
  await storeRecord(rig, 1, 'wanted', wanted)
  await storeRecord(rig, 2, 'other', plain)
  const filters = {
    customer: 'acme customer',
    tenant: 'acme',
    caller: '+49301',
    callee_prefix: '1900',
    denial_code: 'no_rate',
    node: '10.0.0.1',
    carrier: 'telco',
    min_cost: '0.25',
  }
  const found = async (given: object) =>
    (await rig.tool('search_cdrs', given)).data<Found>().records.map(({ call_uuid }) => call_uuid)
  for (const filter of [
    ...Object.entries(filters).map((one) => Object.fromEntries([one])),
    filters,
  ])
    expect([filter, await found(filter)]).toEqual([filter, ['wanted']])
  expect(await found({ ...filters, min_cost: '0.26' })).toEqual([])
})

test('fifty calls in brief are less than 8 kB', async () => {
  const rig = await openToolRig()
  for (let index = 0; index < 50; index += 1)
    await storeRecord(rig, null, `44444444-4444-4444-8444-4444444444${index + 10}`, {
      caller_id_number: '+493012345678',
      destination_number: '+4915112345678',
      denial_code: index % 2 === 0 ? 'insufficient_funds' : null,
    })
  const answer = await rig.tool('search_cdrs', { format: 'brief', limit: 50 })
  expect(answer.data<Found>().records).toHaveLength(50)
  expect(Buffer.byteLength(answer.text)).toBeLessThan(8_000)
  expect(answer.data<Found>().records.at(-1)).toEqual({
    call_uuid: '44444444-4444-4444-8444-444444444410',
    call: '2025-12-31T23:59:00Z +493012345678>+4915112345678 insufficient_funds 58s 0.10 USD',
  })
})
