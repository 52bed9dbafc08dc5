import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { CallRecord } from '../../../schema/call-record.ts'
import { startOfTime } from '../../support/control.ts'
import { openReportRig, uuidOf } from '../../support/report-rig.ts'

/** The n-th stored call (1, 2 …) is the one with this difference; `uuids` are those of an answer. */
async function openWith(...calls: readonly Partial<CallRecord>[]) {
  const rig = await openReportRig()
  for (const [n, call] of calls.entries()) await rig.store({ startedAt: startOfTime + n, ...call })
  const find = async (query: string) => {
    const { body } = await rig.get(`${rig.day}&${query}`)
    const { records, ...totals } = body as {
      records: { call_uuid: string }[]
      total_calls: number
      total_billsec: number
    }
    return { uuids: records.map(({ call_uuid }) => call_uuid), ...totals }
  }
  return { ...rig, find }
}

test.each([
  ['number=15550002222', { callerNumber: '15550002222' }],
  ['number=%2B442079460000', { calledNumber: '442079460000' }],
  ['caller=15550002222', { callerNumber: '15550002222' }],
  ['caller=%2B15550002222', { callerNumber: '15550002222' }],
  ['caller=15550002222', { callerNumber: '+15550002222' }],
  ['called=442079460000', { calledNumber: '442079460000' }],
  ['called=%2B442079460000', { calledNumber: '+442079460000' }],
  ['customer_id=7', { customerId: 7 }],
  ['carrier=north', { carrier: 'north' }],
  ['node=10.0.0.2', { node: 'sip:10.0.0.2:5070;transport=udp' }],
  ['node=10.0.0.2:5070', { node: 'sip:10.0.0.2:5070;transport=udp' }],
  ['node=sip:10.0.0.2:5070', { node: 'sip:10.0.0.2:5070;transport=udp' }],
  ['node=SIP:10.0.0.2:5070;transport=udp', { node: 'sip:10.0.0.2:5070;transport=udp' }],
  ['cause=user_busy', { hangupCause: 'USER_BUSY' }],
  ['cause=insufficient_funds', { denialCode: 'insufficient_funds' }],
  ['call_id=a84b4c76e66710', { callId: 'a84b4c76e66710' }],
  [`call_uuid=${uuidOf(2)}`, {}],
  ['caller=15550002222&cause=USER_BUSY', { callerNumber: '15550002222', hangupCause: 'USER_BUSY' }],
])('the query %s finds the call %o and no other, with its totals', async (query, call) => {
  const { find } = await openWith(
    {},
    { billsec: 5, ...call },
    { node: 'sip:10.0.0.22:5070', billsec: 3 },
  )
  expect(await find(query)).toEqual({ uuids: [uuidOf(2)], total_calls: 1, total_billsec: 5 })
})

test('a call that a node has reported is found by its own name for it, in its own spelling', async () => {
  const { find } = await openWith({ callUuid: 'PBX-7/1234' }, { callUuid: 'A'.repeat(8) }, {})
  expect((await find('call_uuid=PBX-7/1234')).uuids).toEqual(['PBX-7/1234'])
  expect((await find('call_uuid=AAAAAAAA')).uuids).toEqual(['AAAAAAAA'])
  expect((await find(`call_uuid=${uuidOf(3).toUpperCase()}`)).uuids).toEqual([uuidOf(3)])
})

test('a tenant finds its own calls only, whatever it asks for', async () => {
  const { request, key, tenant, store, day } = await openReportRig()
  await store({ tenantId: await tenant('acme', ['acme.example']), callId: 'shared' })
  await store({ tenantId: await tenant('beta', ['beta.example']), callId: 'shared' })
  const token = await key({ kind: 'pbx', tenant_scope: 'tenant', tenant_slug: 'acme' })
  const found = await request(`/api/v1/reports/cdrs?${day}&call_id=shared`, { token })
  expect(found.body).toMatchObject({ total_calls: 1, records: [{ call_uuid: uuidOf(1) }] })
})

test('format=csv wins over Accept, with the filter and the order', async () => {
  const { get, day, store } = await openReportRig()
  for (let call = 0; call < 4; call++)
    await store({ startedAt: startOfTime + call, carrier: call % 2 === 0 ? 'north' : 'south' })
  const { text, headers } = await get(`${day}&carrier=north&order=newest&format=csv`, {
    Accept: 'application/json',
  })
  expect(headers.get('content-type')).toContain('text/csv')
  const lines = text.trim().split('\r\n').slice(1)
  expect(lines.map((line) => line.slice(0, 36))).toEqual([uuidOf(3), uuidOf(1)])
})

test('for any filter and order, pages show what a filter over all records shows, without gap or overlap', async () => {
  const { fill, store, get, day } = await openReportRig()
  // More than one window of what is looked at in turn.
  await fill(2_500)
  for (let call = 0; call < 30; call++)
    await store({ startedAt: startOfTime + call * 80, carrier: 'north', billsec: call })
  const northern = Array.from({ length: 30 }, (_, call) => uuidOf(2_501 + call))
  await fc.assert(
    fc.asyncProperty(
      fc.boolean(),
      fc.integer({ min: 1, max: 40 }),
      async (isNewestFirst, limit) => {
        const order = isNewestFirst ? 'newest' : 'oldest'
        const found: string[] = []
        for (let page = 1; page <= Math.ceil(31 / limit); page++) {
          const { body } = await get(
            `${day}&carrier=north&order=${order}&limit=${limit}&page=${page}`,
          )
          expect(body).toMatchObject({ total_calls: 30, total_billsec: 435 })
          const { records } = body as { records: { call_uuid: string }[] }
          found.push(...records.map(({ call_uuid }) => call_uuid))
        }
        expect(found).toEqual(isNewestFirst ? northern.toReversed() : northern)
      },
    ),
    { numRuns: 10 },
  )
})
