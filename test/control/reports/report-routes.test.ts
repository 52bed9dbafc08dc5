import { expect, test } from 'vitest'
import { addRefusedCalls } from '../../../schema/call-record.ts'
import { startOfTime } from '../../support/control.ts'
import { openReportRig as open, reportPath as path, uuidOf } from '../../support/report-rig.ts'
import { eventually } from '../../support/waiting.ts'

const hour = 3_600_000

test('a report has exactly the fields of SPECIFICATION.md §2.4 and §12.3', async () => {
  const { store, get } = await open()
  await store()
  const { status, body } = await get()
  expect(status).toBe(200)
  expect(body).toEqual({
    total_calls: 1,
    total_billsec: 11,
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
      },
    ],
  })
})

test('a report holds the calls that began in the period, its end outside, in their order', async () => {
  const { store, get } = await open()
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
  const { app, fill, get, token, day } = await open()
  await fill(10_003)
  // Not held against the documentation, which takes a second for so many.
  const headers = { Authorization: `Bearer ${token}` }
  const whole = await app.request(`${path}?${day}`, { headers })
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
  const { store, request, key, tenant, day } = await open()
  const acme = await tenant('acme', ['acme.example'])
  const beta = await tenant('beta', ['beta.example'])
  await store({ tenantId: acme })
  await store({ tenantId: beta })
  await store()
  const token = await key({ kind: 'pbx', tenant_scope: 'tenant', tenant_slug: 'acme' })
  const own = await request(`${path}?${day}`, { token })
  expect(own.body).toMatchObject({ total_calls: 1, records: [{ tenant_slug: 'acme' }] })
  const lines = await request(`${path}?${day}`, {
    token,
    headers: { Accept: 'application/x-ndjson' },
  })
  expect(lines.text.trim().split('\n')).toHaveLength(1)
})

test('as NDJSON a report of any length has one record a line', async () => {
  const { store, get, day } = await open()
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
  const { get, day } = await open()
  expect((await get(day, { Accept: accept })).headers.get('content-type')).toContain(type)
})

test('the plus of a zone may come unescaped', async () => {
  const { store, get } = await open()
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
  const { store, get, day } = await open()
  // Looked for from each of them anew, it would take longer than a test may.
  await store({ callerNumber: `x${'\t'.repeat(400_000)}y`, calledNumber: '200' })
  const { text } = await get(day, { Accept: 'text/csv' })
  expect(text).toContain('y,200,')
})

test('who asks for one report too many is told to come again', async () => {
  const { app, get, store, token, day } = await open()
  for (let call = 0; call < 2_000; call++) await store({ startedAt: startOfTime + call })
  const headers = { Authorization: `Bearer ${token}`, Accept: 'application/x-ndjson' }
  const begin = async () => app.request(`${path}?${day}`, { headers })
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
  const { store, get, day, deps, key, request, tenant } = await open()
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
  const own = await request(`${path}?${day}`, { token: ours })
  expect(own.body).toEqual({ total_calls: 0, total_billsec: 0, records: [] })
})
