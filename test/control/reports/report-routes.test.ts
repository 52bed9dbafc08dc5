import fc from 'fast-check'
import { expect, test } from 'vitest'
import { addRefusedCalls } from '../../../schema/records/refused-calls.ts'
import type { CallRecord } from '../../../schema/contracts/call-record.ts'
import { startOfTime, openControl } from '../../support/control.ts'
import { openReportRig, reportPath, uuidOf } from '../../support/report-rig.ts'
import { eventually } from '../../support/waiting.ts'
import type { ReportRequest } from '../../../control/reports/report-chunks.ts'
import { openReports } from '../../../control/reports/reports.ts'

const hour = 3_600_000

test('a report has exactly the fields of SPECIFICATION.md §2.4 and §12.3', async () => {
  const { store, get } = await openReportRig()
  await store()
  const { status, body } = await get()
  expect(status).toBe(200)
  expect(body).toEqual({
    total_calls: 1,
    total_billsec: 11,
    totals: {
      calls: 1,
      answered: 1,
      billsec: 11,
      asr_percent: 100,
      acd_seconds: 11,
      cost: { USD: '0.11' },
      carrier_cost: {},
      margin: {},
    },
    complete: true,
    records: [
      {
        call_uuid: uuidOf(1),
        caller_id_number: '15550001111',
        destination_number: '18005551212',
        start_stamp: '2026-01-01T01:00:00.000Z',
        billsec: 11,
        disposition: 'ANSWERED',
        mos_score: null,
        cost: 0.11,
        cost_exact: '0.11',
        currency: 'USD',
        answer_stamp: '2026-01-01T01:00:02.000Z',
        end_stamp: '2026-01-01T01:00:12.500Z',
        duration: 13,
        post_dial_delay_ms: 150,
        sip_code: 200,
        hangup_cause: 'NORMAL_CLEARING',
        hangup_by: 'caller',
        denial_code: null,
        direction: 'inbound',
        set_id: 1,
        node: 'sip:10.0.0.1:5060;transport=udp',
        instance: null,
        carrier: 'trunk',
        attempts: [
          {
            destination: 'sip:10.0.0.1:5060;transport=udp',
            status: 200,
            reason: 'OK',
            start_stamp: '2026-01-01T01:00:00.000Z',
            end_stamp: '2026-01-01T01:00:02.000Z',
          },
        ],
        jitter_ms: null,
        packet_loss_pct: null,
        customer_id: null,
        tenant_slug: null,
        call_id: 'c1@caller',
        recovered: false,
        unauthorized_by_ocs: false,
        mos_source: null,
        media_quality: null,
        recording: null,
        recording_error: null,
        denial_text: null,
        tags: null,
        verification: null,
        verstat: null,
        attestation: null,
        carrier_cost: null,
        carrier_cost_exact: null,
        carrier_currency: null,
        carrier_prefix: null,
        margin: null,
        margin_exact: null,
        customer_name: null,
        rate_prefix: '1',
        rate: null,
        rate_first: null,
        connect_fee: null,
        first_increment: null,
        increment: null,
        number_dialled: null,
        number_sent: null,
        caller_sent: null,
      },
    ],
  })
})

test('a report holds the calls that began in the period, its end outside, in their order', async () => {
  const { store, get } = await openReportRig()
  for (const startedAt of [-1, 24 * hour, 5 * hour, 0, 2 * hour])
    await store({ startedAt: startOfTime + startedAt })
  const { body } = await get()
  expect(body).toMatchObject({
    total_calls: 3,
    records: [0, 2, 5].map((at) => ({
      start_stamp: new Date(startOfTime + at * hour).toISOString(),
    })),
  })
})

test('without paging at most 10,000 records are shown, and the answer says so', async () => {
  const { app, fill, get, token, day } = await openReportRig()
  await fill(10_003)
  // Not held against the documentation, which takes a second for so many.
  const headers = { Authorization: `Bearer ${token}` }
  const whole = await app.request(`${reportPath}?${day}`, { headers })
  const body = (await whole.json()) as { records: unknown[] }
  expect(body).toMatchObject({ total_calls: 10_003, total_billsec: 110_033, truncated: true })
  expect(body.records).toHaveLength(10_000)
  const last = await get(`${day}&limit=200&page=51`)
  expect(last.body).toMatchObject({
    records: [10_000, 10_001, 10_002].map((call) => ({
      start_stamp: new Date(startOfTime + call).toISOString(),
    })),
    meta: { page: 51, limit: 200, total: 10_003 },
  })
  const behind = await get(`${day}&limit=200&page=52`)
  expect(behind.body).toMatchObject({ total_calls: 10_003, records: [] })
})

test('a tenant sees only its own calls, in every format', async () => {
  const { store, request, key, tenant, day } = await openReportRig()
  const acme = await tenant('acme', ['acme.example'])
  const beta = await tenant('beta', ['beta.example'])
  await store({ tenantId: acme })
  await store({ tenantId: beta })
  await store()
  const token = await key({ kind: 'pbx', tenant_scope: 'tenant', tenant_slug: 'acme' })
  const own = await request(`${reportPath}?${day}`, { token })
  expect(own.body).toMatchObject({ total_calls: 1, records: [{ tenant_slug: 'acme' }] })
  const lines = await request(`${reportPath}?${day}`, {
    token,
    headers: { Accept: 'application/x-ndjson' },
  })
  expect(lines.text.trim().split('\n')).toHaveLength(1)
})

test('as NDJSON a report of any length has one record a line', async () => {
  const { store, get, day } = await openReportRig()
  for (let call = 0; call < 1_234; call++) await store({ startedAt: startOfTime + call })
  const { text, headers } = await get(day, { Accept: 'application/x-ndjson' })
  expect(headers.get('content-type')).toBe('application/x-ndjson')
  const records = text
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as { call_uuid: string })
  expect(new Set(records.map((record) => record.call_uuid)).size).toBe(1_234)
})

test.each([
  ['text/csv;q=0.5, application/json', 'application/json'],
  ['application/json;q=0.1, text/csv; q=0.9', 'text/csv'],
  ['application/x-ndjson;q=0, */*', 'application/json'],
  ['text/csv, application/x-ndjson', 'text/csv'],
  ['TEXT/CSV', 'text/csv'],
  ['image/png', 'application/json'],
])('who accepts %s gets %s', async (accept, type) => {
  const { get, day } = await openReportRig()
  expect((await get(day, { Accept: accept })).headers.get('content-type')).toContain(type)
})

test('the plus of a zone may come unescaped', async () => {
  const { store, get } = await openReportRig()
  await store()
  const found = await get(
    'start_date=2026-01-01T03:00:00+02:00&end_date=2026-01-01T02:30:00%2B01:00',
  )
  expect(found.body).toMatchObject({ total_calls: 1 })
  expect((await get('start_date=2026-01-01T03:00:00 &end_date=2026-01-02T00:00:00Z')).status).toBe(
    400,
  )
})

test('a caller of nothing but tabs holds up no report', async () => {
  const { store, get, day } = await openReportRig()
  // Looked for from each of them anew, it would take longer than a test may.
  await store({ callerNumber: `x${'\t'.repeat(400_000)}y`, calledNumber: '200' })
  const { text } = await get(day, { Accept: 'text/csv' })
  expect(text).toContain('y,200,')
})

test('who asks for one report too many is told to come again', async () => {
  const { app, get, store, token, day } = await openReportRig()
  for (let call = 0; call < 2_000; call++) await store({ startedAt: startOfTime + call })
  const headers = { Authorization: `Bearer ${token}`, Accept: 'application/x-ndjson' }
  const begin = async () => app.request(`${reportPath}?${day}`, { headers })
  const under = await Promise.all(Array.from({ length: 16 }, begin))
  const refused = await get()
  expect([refused.status, refused.code]).toEqual([503, 'too_many_reports'])
  expect(refused.headers.get('retry-after')).toBe('10')
  await under[0]?.body?.cancel()
  // The server hears of it once the connection is closed.
  await eventually(async () => expect((await get()).status).toBe(200))
  for (const report of under.slice(1)) await report.body?.cancel()
})

test('calls that were refused without a record are counted beside the totals, for credentials that see all calls', async () => {
  const { store, get, day, deps, key, request, tenant } = await openReportRig()
  await store()
  const add = addRefusedCalls(deps.store)
  await add({ minute: startOfTime - 60_000, reason: 'overload', calls: 1 })
  await add({ minute: startOfTime, reason: 'overload', calls: 2 })
  await add({ minute: startOfTime, reason: 'overload', calls: 3 })
  await add({ minute: startOfTime + 60_000, reason: 'unknown_source', calls: 20_000 })
  const refused = { total_refused: { unknown_source: 20_000, overload: 5 } }
  expect((await get()).body).toMatchObject({ total_calls: 1, ...refused })
  expect((await get(`${day}&disposition=BUSY`)).body).not.toHaveProperty('total_refused')
  expect((await get(`${day}&caller=1`)).body).not.toHaveProperty('total_refused')
  await tenant('acme')
  const ours = await key({ tenant_scope: 'tenant', tenant_slug: 'acme' })
  const own = await request(`${reportPath}?${day}`, { token: ours })
  expect(own.body).toMatchObject({ total_calls: 0, total_billsec: 0, records: [] })
  expect(own.body).not.toHaveProperty('total_refused')
})

const carriersPath = reportPath.replace('cdrs', 'carriers')

async function openSums() {
  const rig = await openReportRig()
  const sums = (query = rig.day, token = rig.token) =>
    rig.request(`${carriersPath}?${query}`, { token })
  return { ...rig, sums }
}

test('ASR and ACD are those of the calls to each carrier; those from it stand beside', async () => {
  const { store, sums } = await openSums()
  const out = { direction: 'outbound', carrier: 'telco' } as const
  await store({ ...out, billsec: 60 })
  await store({ ...out, billsec: 30 })
  await store({ ...out, disposition: 'BUSY', answeredAt: null, billsec: 0 })
  await store({ direction: 'inbound', carrier: 'telco', billsec: 10 })
  await store({ direction: 'outbound', carrier: 'other', disposition: 'FAILED', billsec: 0 })
  await store({ carrier: null })
  expect((await sums()).data()).toEqual([
    {
      carrier: 'other',
      outbound: { calls: 1, answered: 0, billsec: 0, asr_percent: 0, acd_seconds: null },
      inbound: { calls: 0, answered: 0, billsec: 0, asr_percent: null, acd_seconds: null },
    },
    {
      carrier: 'telco',
      outbound: { calls: 3, answered: 2, billsec: 90, asr_percent: 66.7, acd_seconds: 45 },
      inbound: { calls: 1, answered: 1, billsec: 10, asr_percent: 100, acd_seconds: 10 },
    },
  ])
})

test('a tenant sees what its own calls came to', async () => {
  const { store, sums, tenant, key } = await openSums()
  const tenantId = await tenant('acme')
  await store({ tenantId, direction: 'outbound', carrier: 'telco' })
  await store({ tenantId: null, direction: 'outbound', carrier: 'telco' })
  await store({ tenantId: null, direction: 'outbound', carrier: 'hidden' })
  const token = await key({ tenant_scope: 'tenant', tenant_slug: 'acme' })
  const found = (await sums(undefined, token)).data()
  expect(found).toMatchObject([{ carrier: 'telco', outbound: { calls: 1 } }])
})

/**
 * The n-th stored call (1, 2 …) is the one with this difference; `uuids` are those of an answer.
 */
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
  expect(await find(query)).toMatchObject({
    uuids: [uuidOf(2)],
    total_calls: 1,
    total_billsec: 5,
    complete: true,
    totals: { calls: 1, billsec: 5, acd_seconds: 5 },
  })
})

test('a call that a node has reported is found by its own name for it, in its own spelling', async () => {
  const { find } = await openWith({ callUuid: 'PBX-7/1234' }, { callUuid: 'A'.repeat(8) }, {})
  expect((await find('call_uuid=PBX-7/1234')).uuids).toEqual(['PBX-7/1234'])
  expect((await find('call_uuid=AAAAAAAA')).uuids).toEqual(['AAAAAAAA'])
  expect((await find(`call_uuid=${uuidOf(3).toUpperCase()}`)).uuids).toEqual([uuidOf(3)])
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

const filter = { tenantId: null, from: 0, before: startOfTime }

const request: ReportRequest = {
  filter,
  format: 'json',
  sort: { by: 'start', isDescending: false },
  page: undefined,
  withTotals: true,
}

async function openBounded() {
  let now = 0
  const { store } = await openControl()
  const reports = openReports({ store, now: () => now, log: () => undefined })
  const begin = async (tenantId: number | null = null) => {
    const pieces = reports.open({ ...request, filter: { ...filter, tenantId } })
    await pieces?.next()
    return pieces
  }
  return { reports, begin, wait: (ms: number) => (now += ms) }
}

test('unread reports make room after a minute, reports being read do not', async () => {
  const { begin, wait } = await openBounded()
  const under = await Promise.all(Array.from({ length: 16 }, () => begin()))
  wait(60_001)
  expect(await begin()).toBeDefined()
  const again = await Promise.all(Array.from({ length: 15 }, () => begin()))
  expect(again.every((pieces) => pieces !== undefined)).toBe(true)
  expect(await begin()).toBeUndefined()
  // Its reader must not take it for the whole report.
  await expect(under[0]?.next()).rejects.toThrow('closed')
})

test('one tenant takes no room of another', async () => {
  const { begin, wait } = await openBounded()
  const under = await Promise.all(Array.from({ length: 4 }, () => begin(1)))
  expect(under.every((pieces) => pieces !== undefined)).toBe(true)
  expect(await begin(1)).toBeUndefined()
  expect(await begin(2)).toBeDefined()
  expect(await begin()).toBeDefined()
  wait(60_001)
  expect(await begin(1)).toBeDefined()
})

test('what signatures have proved is shown, searched, and stands in CSV', async () => {
  const { store, get, day } = await openReportRig()
  await store({ verification: 'passed', verstat: 'TN-Validation-Passed', attestation: 'A' })
  await store({ verification: 'failed', verstat: 'TN-Validation-Failed' })
  await store({ attestation: 'B' })
  await store()
  const found = async (query: string) => {
    const { body } = await get(`${day}&${query}`)
    const { records } = body as {
      readonly records: readonly Readonly<Record<'verification' | 'attestation', unknown>>[]
    }
    return records.map(({ verification, attestation }) => [verification, attestation])
  }
  expect(await found('verification=passed')).toEqual([['passed', 'A']])
  expect(await found('verification=failed')).toEqual([['failed', null]])
  expect(await found('attestation=B')).toEqual([[null, 'B']])
  expect((await get(`${day}&verification=maybe`)).status).toBe(400)
  const { text } = await get(`${day}&format=csv&verification=passed`)
  expect(text).toContain('verification,verstat,attestation,carrier_cost,')
  expect(text).toContain(',passed,TN-Validation-Passed,A,')
})

test('tags of a hook are shown, searched by name and value, and stand in CSV', async () => {
  const { store, get, day } = await openReportRig()
  await store({ tags: { crm: '42', note: 'a "crm":"43" b' } })
  await store({ tags: { crm: '43%' } })
  await store()
  const found = async (tag: string) => {
    const { body } = await get(`${day}&tag=${encodeURIComponent(tag)}`)
    const { records } = body as { readonly records: readonly { readonly tags: unknown }[] }
    return records.map(({ tags }) => tags)
  }
  expect(await found('crm:42')).toEqual([{ crm: '42', note: 'a "crm":"43" b' }])
  expect(await found('CRM:43%')).toEqual([{ crm: '43%' }])
  for (const tag of ['crm:43', 'crm:4_', 'crm:4%', 'rm:42', 'crm:'])
    expect(await found(tag)).toEqual([])
  expect((await get(`${day}&tag=crm`)).status).toBe(400)
  expect((await get(`${day}&format=csv`)).text).toContain('"{""crm"":""43%""}"')
})

const january = 'start_date=2026-01-01&end_date=2026-02-01'

test('several filters, lists and ranges find the calls that match all of them', async () => {
  const { find } = await openWith(
    { callerNumber: '1001', sipCode: 486, disposition: 'BUSY', answeredAt: null, billsec: 0 },
    { callerNumber: '+49301', calledNumber: '1001', sipCode: 200, carrier: 'north, south' },
    { callerNumber: '1002', sipCode: 503, disposition: 'FAILED', billsec: 0, carrier: 'west' },
  )
  const uuids = async (query: string) => (await find(query)).uuids
  expect(await uuids('extension=1001')).toEqual([uuidOf(1), uuidOf(2)])
  expect(await uuids('extension=1001&code=486,503')).toEqual([uuidOf(1)])
  expect(await uuids('disposition=BUSY,FAILED&code=486,503')).toEqual([uuidOf(1), uuidOf(3)])
  expect(await uuids('caller=4930*')).toEqual([uuidOf(2)])
  expect(await uuids('carrier=west,east')).toEqual([uuidOf(3)])
  expect(await uuids('carrier=north, south')).toEqual([uuidOf(2)])
  expect(await uuids('billsec_from=1&billsec_to=11')).toEqual([uuidOf(2)])
  expect(await uuids('cost_from=0.11&cost_to=0.11&set_id=1,7')).toHaveLength(3)
  expect(await uuids('mos_to=5')).toEqual([])
})

test('pages follow each other by cursor in any order; a cursor of another order is refused', async () => {
  const { store, get } = await openReportRig()
  for (const seconds of [30, 10, 20, 10]) await store({ billsec: seconds }, seconds * 1_000)
  const page = async (query: string) => {
    const { body } = await get(`${january}&limit=3&${query}`)
    const { records, next_cursor } = body as {
      records: { call_uuid: string }[]
      next_cursor: string | null
    }
    return { uuids: records.map((each) => each.call_uuid), cursor: next_cursor ?? '', body }
  }
  const first = await page('sort=-cost')
  expect(first.uuids).toEqual([uuidOf(1), uuidOf(3), uuidOf(4)])
  expect(first.body).toMatchObject({ totals: { cost: { USD: '0.07' } }, meta: { total: 4 } })
  await store({ billsec: 90 }, 90_000)
  const second = await page(`sort=-cost&totals=false&cursor=${first.cursor}`)
  expect(second).toMatchObject({ uuids: [uuidOf(2)], body: { next_cursor: null } })
  expect(second.body).not.toHaveProperty('total_calls')
  const wrong = await get(`${january}&sort=cost&cursor=${first.cursor}`)
  expect(wrong.status).toBe(400)
  expect(wrong.body).toMatchObject({ details: [{ path: 'cursor' }] })
})

test.each([
  ['sort=-start&order=newest', 'sort'],
  ['cursor=x', 'cursor'],
  ['cursor=x&page=1', 'cursor'],
  ['format=csv&sort=cost', 'sort'],
  ['format=csv&cursor=x', 'cursor'],
  ['code=99', 'code'],
  ['code=486,', 'code'],
  ['disposition=BUSY,busy', 'disposition'],
  ['direction=sideways', 'direction'],
  ['duration_from=-1', 'duration_from'],
  ['cost_from=-1', 'cost_from'],
  ['margin_to=1.0000001', 'margin_to'],
  ['mos_from=6', 'mos_from'],
  ['called=*', 'called'],
  [`customer_id=${Array.from({ length: 51 }, (_, n) => n + 1).join()}`, 'customer_id'],
])('the query %s is refused, and the answer says where', async (query, path) => {
  const { get } = await openReportRig()
  const { status, body } = await get(`${january}&${query}`)
  expect(status).toBe(400)
  expect(body).toMatchObject({ details: [{ path }] })
})

test('an export has the calls of the filter, in the order of their starts', async () => {
  const { store, get } = await openReportRig()
  for (const n of [3, 1, 2]) await store({ startedAt: startOfTime + n * 60_000, sipCode: 200 + n })
  const { text } = await get(`${january}&format=ndjson&sort=-start&code=201,203`)
  const lines = text.trim().split('\n')
  expect(lines.map((line) => (JSON.parse(line) as { sip_code: number }).sip_code)).toEqual([
    203, 201,
  ])
})

test('a credential of a tenant may name no other tenant', async () => {
  const { get, key, tenant, request, store } = await openReportRig()
  const acme = await tenant('acme')
  await tenant('beta')
  await store({ tenantId: acme })
  await store({})
  expect((await get(`${january}&tenant=acme`)).body).toMatchObject({ total_calls: 1 })
  const ours = await key({ tenant_scope: 'tenant', tenant_slug: 'acme' })
  const ask = (slug: string) => request(`${reportPath}?${january}&tenant=${slug}`, { token: ours })
  expect((await ask('acme')).body).toMatchObject({ total_calls: 1 })
  expect((await ask('beta')).status).toBe(403)
})
