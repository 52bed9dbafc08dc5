import { expect, test } from 'vitest'
import { openToolRig, storeRecord } from '../../../support/tools-rig.ts'
import { runSql } from '../../../support/stored.ts'

const uuid = '44444444-4444-4444-8444-444444444444'
const day = 86_400_000

type Explained = {
  money: object | null
  source_address: string
  unusual: string[]
  compared_with: number
}

/** Twenty usual calls of customer 1, one a day. */
async function opened(count = 20) {
  const rig = await openToolRig()
  await runSql(rig.store, 'DELETE FROM cdr')
  rig.tick(30 * day)
  for (let index = 1; index <= count; index += 1)
    await storeRecord(rig, 1, `usual ${index}`, { start_stamp: rig.now() - (index * day) / 2 })
  const explain = async (token = rig.root) => {
    const answer = await rig.tool('explain_call', { call_uuid: uuid }, token)
    return answer.data<Explained>()
  }
  return { ...rig, explain }
}

test('a call that was refused for money says what it needed and what there was', async () => {
  const rig = await opened()
  await storeRecord(rig, 1, uuid, {
    disposition: 'FAILED',
    sip_code: 402,
    denial_code: 'insufficient_funds',
    billsec: 0,
    answer_stamp: null,
    cost_micros: 0,
    required_micros: 600_000,
    available_micros: -50_000,
  })
  expect(await rig.explain()).toMatchObject({
    outcome: 'refused_by_platform',
    money: { required: '0.60', available: '-0.05', currency: 'USD' },
    source_address: '10.1.1.1',
    unusual: [],
    compared_with: 20,
  })
})

test('a call that is like the others of its customer has nothing unusual', async () => {
  const rig = await opened()
  await storeRecord(rig, 1, uuid, {})
  expect(await rig.explain()).toMatchObject({ money: null, unusual: [] })
})

test('a new source, caller and prefix and a price far above the mean are unusual', async () => {
  const rig = await opened()
  const strange = {
    source_address: '203.0.113.9',
    caller_id_number: '4930999',
    rate_prefix: '881',
    cost_micros: 4_200_000,
  }
  await storeRecord(rig, 1, uuid, strange)
  const of = "of the customer's last 20 calls in 14 days"
  expect((await rig.explain()).unusual).toEqual([
    `None ${of} came from 203.0.113.9.`,
    `None ${of} had this caller.`,
    `None ${of} went to prefix 881.`,
    `It cost 4.20; the mean ${of} is 0.10.`,
  ])
  // A foreign tenant does not find it, and a new customer has nothing to be compared with.
  const other = await rig.key({ tenant_scope: 'tenant', tenant_slug: 'other' })
  expect((await rig.tool('explain_call', { call_uuid: uuid }, other)).status).toBe(404)
  const few = await opened(9)
  await storeRecord(few, 1, uuid, strange)
  expect(await few.explain()).toMatchObject({ unusual: [], compared_with: 9 })
})
