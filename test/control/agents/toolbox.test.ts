import { expect, test } from 'vitest'
import { endedCall, openToolRig } from '../../support/tools-rig.ts'
import { connectClient, eras, textOf } from '../../support/mcp-client.ts'

type Entry = { action: string; target: string; outcome: string; code: string | null; actor: string }

test('every call of a tool leaves one entry with its arguments, without what looks like a token', async () => {
  const rig = await openToolRig()
  const secret = await rig.key({ name: 'lost' })
  await rig.tool('get_dispatcher_status', { setId: 1 })
  await rig.tool('revoke_sbc_api_key', { identifier: secret })
  await rig.tool('get_call', { call_uuid: 'x'.repeat(50_000), deep: [[[{}]]] })
  await rig.tool('list_api_keys', {}, await rig.key({ scopes: ['mcp:read'] }))
  await rig.tool('no_such_tool', {})
  const { data } = await rig.request('/api/v1/audit?action=tool%20', { token: rig.root })
  const entries = data<Entry[]>().filter(({ action }) => action.startsWith('tool '))
  expect(entries.map(({ action, outcome, code }) => [action, outcome, code]).toReversed()).toEqual([
    ['tool get_dispatcher_status', 'success', null],
    ['tool revoke_sbc_api_key', 'refused', 'not_found'],
    ['tool get_call', 'refused', 'validation_failed'],
    ['tool list_api_keys', 'refused', 'insufficient_scope'],
    ['tool no_such_tool', 'refused', 'unknown_tool'],
  ])
  expect(entries.at(-1)?.target).toBe('{"setId":1}')
  expect(entries.at(-2)?.target).toBe(`{"identifier":"${secret.slice(0, 12)}…"}`)
  for (const { target } of entries) expect(target.length).toBeLessThanOrEqual(1_000)
  // The request itself is not entered a second time.
  const all = (await rig.request('/api/v1/audit?limit=200', { token: rig.root })).data<Entry[]>()
  expect(all.filter(({ action }) => action === 'POST /api/v1/mcp/tools/:name')).toHaveLength(0)
})

test('a key that has lost a scope of the tool is not told again what it was answered', async () => {
  const rig = await openToolRig()
  const token = await rig.key({ name: 'agent', scopes: ['*'] })
  const send = () =>
    rig.request('/api/v1/mcp/tools/get_call', {
      token,
      body: { call_uuid: endedCall },
      headers: { 'Idempotency-Key': 'once' },
    })
  expect((await send()).status).toBe(200)
  expect((await send()).headers.get('idempotency-replayed')).toBe('true')
  const keys = await rig.request('/api/v1/application-keys?search=agent', { token: rig.root })
  const [key] = keys.data<{ uuid: string }[]>()
  const path = `/api/v1/application-keys/${key?.uuid}`
  const narrowed = { token: rig.root, method: 'PATCH', body: { scopes: ['mcp:read'] } }
  expect((await rig.request(path, narrowed)).status).toBe(200)
  const answer = await send()
  expect([answer.status, answer.code]).toEqual([403, 'insufficient_scope'])
  expect(answer.text).not.toContain(endedCall)
  const { data } = await rig.request('/api/v1/audit?action=tool%20', { token: rig.root })
  expect(data<Entry[]>().map(({ outcome }) => outcome)).toEqual(['refused', 'success'])
})

/** Every refusal: arguments, status, and the tool or the step that its text sends to. */
const refusals: readonly [
  name: string,
  given: object,
  scopes: readonly string[],
  status: number,
  next: RegExp,
][] = [
  ['revoke_sbc_api_key', { identifier: 'unknown' }, ['*'], 404, /list_sbc_api_keys/],
  ['revoke_sbc_api_key', { identifier: 'twin' }, ['*'], 409, /Nothing was revoked.*uuid/],
  ['revoke_sbc_api_key', { identifier: 'phone' }, ['*'], 404, /list_sbc_api_keys/],
  ['revoke_sbc_api_key', { identifier: 'twin' }, ['*:read'], 403, /mcp:write and keys:write/],
  ['list_sbc_api_keys', { sarch: 'x' }, ['*'], 400, /sarch/],
  ['get_api_key_status', {}, ['*'], 400, /key_id or name/],
  ['get_api_key_status', { key_id: 999 }, ['*'], 404, /list_api_keys/],
  ['get_api_key_status', { name: 'root' }, ['*'], 404, /list_api_keys/],
  ['get_dispatcher_status', { setId: 9 }, ['*'], 404, /without setId/],
  [
    'set_dispatcher_state',
    { state: 'inactive', setId: 2, destination: 'sip:10.0.0.3:5060;transport=udp' },
    ['*'],
    409,
    /set another node/,
  ],
  [
    'set_dispatcher_state',
    { state: 'inactive', setId: 1, destination: 'sip:10.9.9.9' },
    ['*'],
    404,
    /get_dispatcher_status with setId 1/,
  ],
  ['get_call', { call_uuid: '44444444-4444-4444-8444-444444444444' }, ['*'], 404, /search_cdrs/],
  [
    'search_cdrs',
    { start_date: '2026-01-02T00:00:00Z', end_date: '2026-01-01T00:00:00Z' },
    ['*'],
    400,
    /end \(end_date\) must be after start/,
  ],
  ['hangup_call', { call_uuid: endedCall }, ['*'], 404, /list_active_calls/],
  ['get_customer_balance', { customer: 'unknown' }, ['*'], 400, /there is no customer/],
  ['lookup_rate', { number: '4930' }, ['*'], 400, /acme plan/],
  ['lookup_rate', { number: '1', rate_plan: 'acme plan' }, ['*'], 404, /country code/],
]

test.each(refusals)('%s %j with %j is refused with %d and says what to do next', async (...row) => {
  const [name, given, scopes, status, next] = row
  const rig = await openToolRig()
  await rig.key({ name: 'twin' })
  await rig.key({ name: 'twin', tenant_scope: 'tenant', tenant_slug: 'acme' })
  await rig.key({ name: 'phone', kind: 'pbx' })
  const answer = await rig.tool(name, given, await rig.key({ scopes: ['mcp:read', ...scopes] }))
  expect([answer.status, answer.text]).toEqual([status, expect.stringMatching(next)])
})

test('the eight tools of the specification answer with its keys', async () => {
  const rig = await openToolRig()
  await rig.key({ name: 'phone', kind: 'pbx', description: 'on a desk' })
  const dataOf = async (name: string, given: object) => (await rig.tool(name, given)).data<object>()
  expect(await dataOf('list_sbc_api_keys', { search: 'ROOT' })).toMatchObject({
    total: 1,
    apiKeys: [
      {
        name: 'root',
        description: null,
        scopes: ['*'],
        rate_limit_rpm: 1200,
        is_active: true,
        uuid: expect.any(String),
        key_prefix: expect.stringMatching(/^sbc_live_...$/),
        expires_at: null,
        last_used_at: null,
        request_count: 0,
        owner_username: 'console',
        created_at: '2026-01-01T00:00:00.000Z',
      },
    ],
  })
  // A key is found by name or owner, not by description.
  await rig.key({ name: 'described', description: 'needle' })
  expect(await dataOf('list_sbc_api_keys', { search: 'needle' })).toMatchObject({ total: 0 })
  const masked = { masked_key: expect.stringMatching(/^ak_.{9}\*+$/), name: 'phone' }
  expect(await dataOf('list_api_keys', { search: 'desk' })).toMatchObject({
    total: 1,
    apiKeys: [masked],
  })
  expect(await dataOf('get_api_key_status', { name: 'phone' })).toMatchObject({
    ...masked,
    key_prefix: expect.any(String),
    created_at: '2026-01-01T00:00:00.000Z',
    expires_at: null,
    last_used_at: null,
  })
  const node = { destination: 'sip:10.0.0.2:5060;transport=udp', priority: 10, weight: 100 }
  const change = { state: 'probing', setId: 1, destination: node.destination }
  expect(await dataOf('set_dispatcher_state', change)).toMatchObject({
    message: expect.any(String),
    setId: 1,
    destination: node.destination,
    newState: 'probing',
  })
  expect(await dataOf('get_dispatcher_status', { setId: 1 })).toMatchObject({
    setId: 1,
    totalNodes: 2,
    activeNodes: 1,
    probingNodes: 1,
    nodes: [
      { id: 1, flags: 'ACTIVE' },
      { ...node, id: 2, flags: 'PROBING', latencyMs: 1.5, description: '10.0.0.2' },
    ],
  })
  expect(await dataOf('list_sbc_endpoints', {})).toMatchObject({
    totalEndpoints: 3,
    endpoints: [
      { endpointId: 1, address: 'sip:10.0.0.1:5060;transport=udp', description: '10.0.0.1' },
      { endpointId: 2 },
      { endpointId: 3 },
    ],
  })
  expect(await dataOf('reload_dispatchers', {})).toMatchObject({ status: 'synchronized' })
})

const ofTenant = (slug: string) => ({ tenant_scope: 'tenant', tenant_slug: slug })

/** The wrong name, and what is offered: of the tenant acme. */
const slips: readonly [tool: string, given: Record<string, unknown>, offer: RegExp][] = [
  ['get_customer_balance', { customer: 'acme custmer' }, /Did you mean "acme customer"\?/],
  ['get_customer_balance', { customer: 'ACME' }, /Did you mean "acme customer"\?/],
  ['lookup_rate', { number: '49', rate_plan: 'acme pln' }, /Did you mean "acme plan"\?/],
  ['revoke_sbc_api_key', { identifier: 'acme kye' }, /Did you mean "acme key"\?/],
  ['get_api_key_status', { name: 'acme fone' }, /Did you mean "acme phone"\?/],
  [
    'set_dispatcher_state',
    { state: 'inactive', setId: 1, destination: 'sip:10.0.0.3:5060' },
    /Did you mean "sip:10\.0\.0\.[12]:5060;transport=udp"\?/,
  ],
  ['search_cdrs', { nubmer: '1' }, /did you mean "number"\?/],
]

async function rigWithKeys() {
  const rig = await openToolRig()
  await rig.key({ name: 'acme key', ...ofTenant('acme') })
  await rig.key({ name: 'acme phone', kind: 'pbx', ...ofTenant('acme') })
  return rig
}

test.each(eras)('a tool, or a name in its arguments, is offered to a %s client', async (era) => {
  const rig = await rigWithKeys()
  const own = await connectClient(rig.app, await rig.key(ofTenant('acme')), era)
  for (const [name, given, offer] of slips) {
    const refusal = await own.callTool({ name, arguments: given })
    expect([name, refusal.isError, textOf(refusal)]).toEqual([
      name,
      true,
      expect.stringMatching(offer),
    ])
  }
  await expect(own.callTool({ name: 'search_crds' })).rejects.toThrow(/mean "search_cdrs"\?/)
  await expect(own.getPrompt({ name: 'triage_incidents' })).rejects.toThrow(/"triage_incident"\?/)
  await own.close()
})

test('no name of another tenant is offered, nor that there is one', async () => {
  const rig = await rigWithKeys()
  const stranger = await rig.key(ofTenant('other'))
  const ask = async (name: string, given: object) => {
    const { body } = await rig.tool(name, given, stranger)
    const { request_id: _, ...told } = body as { readonly request_id: string }
    return JSON.stringify(told)
  }
  for (const [name, given] of slips.filter(([name]) => name !== 'search_cdrs')) {
    const text = await ask(name, given)
    expect([
      name,
      /mean/.exec(text)?.[0],
      /\\"acme (customer|plan|key|phone)/.exec(text)?.[0],
    ]).toEqual([name, undefined, undefined])
  }
  const nameless = (text: string) => text.replaceAll(/acme customer|no such one/g, '')
  const there = await ask('get_customer_balance', { customer: 'acme customer' })
  const nowhere = await ask('get_customer_balance', { customer: 'no such one' })
  expect(nameless(there)).toBe(nameless(nowhere))
})
