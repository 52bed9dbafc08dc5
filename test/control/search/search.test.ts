import { expect, test } from 'vitest'
import type { SearchHit } from '../../../control/search/search-routes.ts'
import { activeCall } from '../../support/engine-views.ts'
import { fillOwned } from '../../support/owned-world.ts'
import { CALL, CANARY } from '../../support/ownership-rules.ts'
import { openResources, type TestResources } from '../../support/resources.ts'
import { runSql } from '../../support/stored.ts'

const uuidOf = (n: number): string => `00000000-0000-4000-8000-${`${n}`.padStart(12, '0')}`

interface Stored {
  readonly n: number
  readonly from: string
  readonly to: string
  readonly at?: number
  readonly tenant?: number | null
  readonly callId?: string
}

/** Records as an ended call leaves them. */
async function record({ store }: TestResources, ...calls: readonly Stored[]): Promise<void> {
  for (const { n, from, to, at = n * 1_000, tenant = null, callId = `call-${n}@sbc` } of calls)
    await runSql(
      store,
      `INSERT INTO cdr (call_uuid, call_id, direction, caller_id_number, destination_number,
        start_stamp, end_stamp, duration, billsec, disposition, sip_code, hangup_cause, hangup_by,
        attempts, tenant_id, source_address) VALUES ('${uuidOf(n)}', '${callId}', 'inbound',
        '${from}', '${to}', ${at}, ${at}, 0, 0, 'BUSY', 486, 'USER_BUSY', 'callee', '[]',
        ${tenant ?? 'NULL'}, '192.0.2.1')`,
    )
}

type Ask = (text: string, more?: string) => Promise<readonly SearchHit[]>

const asking =
  (control: TestResources, tenant?: string): Ask =>
  async (text, more = '') => {
    const path = `/api/v1/search?q=${encodeURIComponent(text)}${more}`
    const answer = await (tenant === undefined
      ? control.call('GET', path)
      : control.callAs(tenant, 'GET', path))
    expect(answer.status).toBe(200)
    return answer.data<SearchHit[]>()
  }

/** `customer: own customer` */
const inWords = (hits: readonly SearchHit[]): readonly string[] =>
  hits.map(({ kind, title }) => `${kind}: ${title}`)

const callsIn = (hits: readonly SearchHit[]): readonly string[] =>
  hits.filter(({ kind }) => kind === 'call').map(({ id }) => id)

test('one text finds each kind of thing, with the page on which the console shows it', async () => {
  const control = await openResources()
  await fillOwned(control)
  const ask = asking(control)
  const hits = await ask('own')
  const found = new Map(hits.map((each) => [each.kind, each]))
  // Those of a kind stand together.
  const kinds = hits.map(({ kind }) => kind)
  expect(kinds.filter((kind, index) => kind !== kinds[index - 1])).toHaveLength(found.size)
  expect([...found.keys()].toSorted()).toEqual([
    'agent',
    'carrier',
    'customer',
    'dispatcher_set',
    'extension',
    'inbound_route',
    'key',
    'node',
    'outbound_route',
    'phone_number',
    'rate_plan',
    'routing_webhook',
    'stir_authority',
    'stir_key',
    'tenant',
    'user',
    'webhook',
  ])
  expect(found.get('customer')).toEqual({
    kind: 'customer',
    id: '3',
    title: 'own customer',
    detail: '',
    at: null,
    path: '/console/customers/3',
  })
  expect(found.get('outbound_route')?.path).toBe('/console/outbound-routes?q=own%20route')
  expect(inWords(await ask('10.5.0.1'))).toContain('node: 10.5.0.1:5060')
  expect(inWords(await ask('15557000001'))).toContain('phone_number: 15557000001')
  expect(
    inWords(await ask('own', '&limit=1')).filter((each) => each.startsWith('user:')).length,
  ).toBe(1)
})

test('each word is looked for, in any case, and the wildcards of SQL are letters', async () => {
  const control = await openResources()
  for (const name of ['Äpfel Berlin', 'Äpfel Bonn', '50% off', 'x_y', 'xzy'])
    await control.call('POST', '/api/v1/customers', { name })
  const ask = asking(control)
  expect(inWords(await ask('BERLIN äpfel'))).toEqual(['customer: Äpfel Berlin'])
  expect(inWords(await ask('0%'))).toEqual(['customer: 50% off'])
  expect(inWords(await ask('x_y'))).toEqual(['customer: x_y'])
  expect(inWords(await ask('#5'))).toEqual(['customer: xzy'])
})

test('a call is found by either number, with or without plus, by its uuid and by its Call-ID', async () => {
  const control = await openResources()
  await record(
    control,
    { n: 1, from: '4930100', to: '+4940200' },
    { n: 2, from: '+4930100', to: '1900', callId: 'a84b4c76e66710@gateway' },
    { n: 3, from: 'anna', to: '49301001' },
  )
  const ask = asking(control)
  for (const text of ['4930100', '+4930100', '+49 30 100', '004930100'])
    expect([text, callsIn(await ask(text))]).toEqual([text, [uuidOf(2), uuidOf(1), uuidOf(3)]])
  expect(callsIn(await ask('4940200'))).toEqual([uuidOf(1)])
  expect(callsIn(await ask('49402'))).toEqual([uuidOf(1)])
  expect(callsIn(await ask(uuidOf(3)))).toEqual([uuidOf(3)])
  expect(callsIn(await ask(uuidOf(3).slice(0, 20).toUpperCase()))).toHaveLength(3)
  expect(callsIn(await ask('a84b4c76e66710@gateway'))).toEqual([uuidOf(2)])
  expect(callsIn(await ask('a84b4c'))).toEqual([uuidOf(2)])
  const [call] = await ask('4940200')
  expect(call).toEqual({
    kind: 'call',
    id: uuidOf(1),
    title: '4930100 → +4940200',
    detail: 'busy',
    at: '1970-01-01T00:00:01.000Z',
    path: `/console/calls/${uuidOf(1)}`,
  })
})

test('an old call of a number is found by its beginning, however many calls came after it', async () => {
  const control = await openResources()
  await record(control, { n: 1, from: '4989123', to: '1', at: 1 })
  await runSql(
    control.store,
    `WITH RECURSIVE n (i) AS (SELECT 2 UNION ALL SELECT i + 1 FROM n WHERE i < 6000)
     INSERT INTO cdr (call_uuid, call_id, direction, caller_id_number, destination_number,
       start_stamp, end_stamp, duration, billsec, disposition, sip_code, hangup_cause, hangup_by,
       attempts, tenant_id, source_address)
     SELECT 'u' || i, 'c' || i, 'inbound', '49' || (3000000 + i % 5000), '1900', i, i, 0, 0, 'BUSY',
       486, 'USER_BUSY', 'callee', '[]', CASE i % 2 WHEN 0 THEN 7 ELSE NULL END, '192.0.2.1' FROM n`,
  )
  await control.tenant('seven')
  await runSql(control.store, `UPDATE cdr SET tenant_id = 1 WHERE tenant_id = 7 OR start_stamp = 1`)
  expect(callsIn(await asking(control)('49891'))).toEqual([uuidOf(1)])
  expect(callsIn(await asking(control, 'seven')('49891'))).toEqual([uuidOf(1)])
})

test('live calls come first, by number, uuid and Call-ID', async () => {
  const control = await openResources()
  await record(control, { n: 1, from: '4930100', to: '1' })
  const live = activeCall({ callUuid: uuidOf(9), callerNumber: '4930100', calledNumber: '110' })
  control.engine.activeCalls = [live]
  control.engine.calls.uuidOf = (callId) => (callId === 'live@phone' ? uuidOf(9) : undefined)
  const ask = asking(control)
  expect(callsIn(await ask('4930100'))).toEqual([uuidOf(9), uuidOf(1)])
  expect(callsIn(await ask('live@phone'))).toEqual([uuidOf(9)])
  const [call] = await ask(uuidOf(9))
  expect(call?.detail).toBe('live, active')
})

test('a tenant finds its own things and calls only', async () => {
  const control = await openResources()
  await fillOwned(control)
  await record(
    control,
    { n: 1, from: '15557000001', to: '911', tenant: 2 },
    { n: 2, from: '15557000001', to: '912', tenant: 1 },
    { n: 3, from: '15557000001', to: '913', tenant: null },
  )
  control.engine.activeCalls = [
    activeCall({ callUuid: CALL, callerNumber: '15557000001', tenantId: 1 }),
  ]
  const ask = asking(control, 'own')
  expect(callsIn(await ask('15557000001'))).toEqual([uuidOf(1)])
  for (const n of [2, 3]) expect(callsIn(await ask(uuidOf(n)))).toEqual([])
  expect(callsIn(await ask('call-2@sbc'))).toEqual([])
  expect(callsIn(await ask(CALL))).toEqual([])
  for (const text of [CANARY, 'customer', '10.', '1555', 'carrier', 'route', '#1'])
    expect(JSON.stringify(await ask(text))).not.toMatch(/canary|10\.[12]\./)
  expect(inWords(await ask('own'))).not.toContain('tenant: own')
})

test('a kind is searched only where the credential may read it', async () => {
  const control = await openResources()
  await fillOwned(control)
  await record(control, { n: 1, from: '15557000001', to: '911' })
  const kindsOf = async (scopes: readonly string[], text: string) => {
    const token = await control.key({ scopes })
    const answer = await control.request(`/api/v1/search?q=${text}`, { token })
    return [...new Set(answer.data<SearchHit[]>().map(({ kind }) => kind))]
  }
  expect(await kindsOf(['carriers:read'], 'own')).toEqual(['carrier', 'stir_key', 'stir_authority'])
  expect(await kindsOf(['cdrs:read'], '15557000001')).toEqual(['call'])
  expect(await kindsOf(['metrics:read'], 'own')).toEqual([])
})

test('a key is found by its name and the prefix that is shown, and never by more of its token', async () => {
  const control = await openResources()
  const token = await control.key({ name: 'billing of Anna' })
  const ask = asking(control)
  const [hit] = await ask('billing of')
  expect(hit?.title).toBe('billing of Anna')
  const prefix = hit?.detail.split(', ')[0] ?? ''
  expect(token.startsWith(prefix)).toBe(true)
  expect(inWords(await ask(prefix))).toContain('key: billing of Anna')
  expect(await ask(token.slice(0, 100))).toEqual([])
})

test.each([
  ['', 'q'],
  ['q=', 'q'],
  ['q=%20', 'q'],
  [`q=${'x'.repeat(101)}`, 'q'],
  ['q=a%00b', 'q'],
  ['q=a&limit=0', 'limit'],
  ['q=a&limit=x', 'limit'],
  ['q=a&more=1', 'more'],
])('refuses %s with the name of the field', async (query, path) => {
  const control = await openResources()
  const answer = await control.call('GET', `/api/v1/search?${query}`)
  expect(answer.status).toBe(400)
  const { details } = answer.body as { details: readonly { path: string }[] }
  expect(details.map((each) => each.path)).toContain(path)
})
