/** The test kit for hooks: what it says of a call is what the engine would do. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { openTestKit } from '../../../engine/testing/index.ts'
import type { TestedInvite, TestKitOptions } from '../../../engine/testing/published.ts'
import type { Hooks } from '../../../schema/contracts/hooks.ts'
import { temporaryFolder } from '../../support/temporary-folder.ts'

const seed = {
  tenants: [{ slug: 'acme', name: 'acme', domains: ['acme.example'] }],
  rate_plans: [{ name: 'retail', currency: 'EUR' }],
  rates: [
    { rate_plan: 'retail', prefix: '49', rate_per_minute: '0.60' },
    { rate_plan: 'retail', prefix: '44', rate_per_minute: '1.20' },
  ],
  customers: [
    { name: 'rich', rate_plan: 'retail', numbers: ['4930100'], balance: '5' },
    { name: 'poor', rate_plan: 'retail', numbers: ['4930200'] },
  ],
  dispatcher: [
    {
      endpoint_name: 'pbx',
      set_id: 1,
      algorithm: 8,
      nodes: [{ host: '192.0.2.10', internal_port: 5060 }],
    },
  ],
  carriers: [
    { name: 'north', gateways: [{ host: '192.0.2.20', port: 5060 }], customer: 'rich' },
    { name: 'south', gateways: [{ host: 'south.example', port: 5060 }], payer: 'from_number' },
  ],
  outbound_routes: [
    { name: 'first', prefix: '44', carrier: 'north', priority: 1 },
    { name: 'second', prefix: '44', carrier: 'south', priority: 2 },
    { name: 'help', prefix: '112', carrier: 'north', emergency: true },
  ],
  extensions: ['101', '102'].map((extension) => ({
    extension,
    password: 'correct horse',
    display_name: `Phone ${extension}`,
    tenant: 'acme',
  })),
}

async function open(options: Partial<TestKitOptions> = {}) {
  const kit = await openTestKit({ seed, ...options })
  onTestFinished(() => kit.close())
  return kit
}

const outbound = { source: { address: '192.0.2.10' }, from: '4930100', to: '4412345' } as const
const callWith = async (options: Partial<TestKitOptions>, invite: TestedInvite = outbound) =>
  (await open(options)).call(invite)

test('without hooks: outcome, price, candidates, and the INVITE of the first', async () => {
  const call = await callWith({})
  expect(call).toMatchObject({
    outcome: { kind: 'connected', uri: 'sip:192.0.2.20:5060;transport=udp', name: 'north' },
    from: '4930100',
    to: '4412345',
    direction: 'outbound',
    isEmergency: false,
    price: { perMinute: '1.20', currency: 'EUR', payer: 'rich' },
    candidates: [
      { kind: 'gateway', name: 'north', withheld: null },
      { kind: 'gateway', name: 'south', withheld: null },
    ],
    requestUri: 'sip:4412345@192.0.2.20:5060;transport=udp',
    headers: { from: '<sip:4930100@localhost>', to: '<sip:4412345@192.0.2.20:5060>' },
    hooks: [],
    tags: {},
    record: null,
  })
})

test('who has no money, no price or no right is refused with the code of the record', async () => {
  const kit = await open()
  const outcome = async (invite: TestedInvite) => (await kit.call(invite)).outcome
  expect(await outcome({ ...outbound, from: '4930200' })).toEqual({
    kind: 'refused',
    status: 402,
    reason: 'Payment Required - Insufficient Funds',
    code: 'insufficient_funds',
  })
  expect(await outcome({ ...outbound, source: { address: '203.0.113.9' } })).toMatchObject({
    status: 403,
    code: 'unknown_source',
  })
})

test('a carrier is a source by name, id and address, and by the addresses of its host', async () => {
  const kit = await open({ hosts: { 'south.example': ['192.0.2.30'] } })
  const asked = async (source: TestedInvite['source']) =>
    (await kit.call({ source, from: '4930100', to: '4940100' })).outcome
  const connected = { kind: 'connected', uri: 'sip:192.0.2.10:5060;transport=udp', name: null }
  expect(await asked({ carrier: 'north' })).toEqual(connected)
  expect(await asked({ carrier: 1 })).toEqual(connected)
  expect(await asked({ address: '192.0.2.20' })).toEqual(connected)
  expect(await asked({ address: '192.0.2.30' })).toEqual(connected)
  await expect(asked({ carrier: 'nobody' })).rejects.toThrow(
    'source: there is no carrier nobody; there is north, south',
  )
  await expect(asked({ extension: '999@acme.example' })).rejects.toThrow(
    'from: must be 999, as a phone calls as itself',
  )
})

test('a phone calls another for nothing, if that is registered', async () => {
  const call = { source: { extension: '101@ACME.example' }, to: '102' }
  const registered = await callWith({ phones: ['102@acme.example'] }, call)
  expect(registered).toMatchObject({
    outcome: { kind: 'connected', name: '102@acme.example' },
    direction: 'internal',
    price: null,
    headers: { from: '"Phone 101" <sip:101@acme.example>', to: '<sip:102@acme.example>' },
  })
  const { outcome } = await callWith({}, call)
  expect(outcome).toMatchObject({ status: 480, code: 'extension_unregistered' })
})

test('what a hook decides passes the checks of a real call, and is shown as its doing', async () => {
  const call = await callWith({
    hooks: {
      onInvite: ({ to, customer }) => ({
        to: to.replace('345', '399'),
        carriers: ['south'],
        from: '4930111',
        fromName: 'ACME',
        headers: { 'X-Payer': customer?.name ?? '' },
        tags: { asked: to },
        record: false,
      }),
    },
  })
  expect(call).toMatchObject({
    outcome: { kind: 'connected', name: 'south' },
    to: '4412399',
    price: { perMinute: '1.20', payer: 'rich' },
    requestUri: 'sip:4412399@south.example:5060;transport=udp',
    headers: { from: '"ACME" <sip:4930111@localhost>', 'x-payer': 'rich' },
    hooks: [{ hook: 'onInvite', decision: { to: '4412399' }, failed: null }],
    tags: { asked: '4412345' },
    record: false,
  })
  expect(call.hooks[0]?.milliseconds).toBeGreaterThan(0)
})

test('a recording that a hook wants has its effect, and routing webhooks are not asked', async () => {
  const url = 'https://hooks.example/route'
  const secret = `whsec_${Buffer.alloc(32, 7).toString('base64')}`
  const routing_webhooks = [{ url, secret, fallback: 'refuse' }]
  const hooks = { onInvite: () => ({ record: true }) }
  expect(await callWith({ seed: { ...seed, routing_webhooks }, hooks })).toMatchObject({
    outcome: { kind: 'connected', name: 'north' },
    hooks: [{ decision: { record: true }, failed: null }],
    record: true,
  })
})

test('hooks refuse, and put candidates into another order', async () => {
  const refused = await callWith({
    hooks: { onInvite: () => ({ refuse: { status: 603 }, tags: { score: '9' } }) },
  })
  expect(refused).toMatchObject({
    outcome: { kind: 'refused', status: 603, reason: 'Decline', code: 'hook_refused' },
    candidates: [],
    requestUri: null,
    headers: {},
    price: null,
    tags: { score: '9' },
  })
  const ordered = await callWith({ hooks: { onRoute: () => ({ order: [1] }) } })
  expect(ordered).toMatchObject({
    outcome: { kind: 'connected', name: 'south' },
    candidates: [{ name: 'south' }],
    requestUri: 'sip:4412345@south.example:5060;transport=udp',
    hooks: [{ hook: 'onRoute', decision: { order: [1] } }],
  })
  const stopped = await callWith({ hooks: { onRoute: () => ({ refuse: { status: 486 } }) } })
  expect(stopped).toMatchObject({ outcome: { kind: 'refused', status: 486 }, requestUri: null })
})

test('candidates answer as given: the next one is tried, or a hook says that none is', async () => {
  const invite = { ...outbound, answers: { north: 503 } }
  expect(await callWith({}, invite)).toMatchObject({
    outcome: { kind: 'connected', name: 'south' },
    candidates: [{ status: 503 }, { status: 200 }],
    requestUri: 'sip:4412345@192.0.2.20:5060;transport=udp',
  })
  const busy = { ...outbound, answers: { north: 486 } }
  expect(await callWith({}, busy)).toMatchObject({
    outcome: { kind: 'refused', status: 486, reason: 'Busy Here', code: null },
    candidates: [{ status: 486 }, { status: null }],
  })
  const both = { ...outbound, answers: { north: 0, south: 500 } }
  expect(await callWith({}, both)).toMatchObject({ outcome: { kind: 'refused', status: 500 } })
  const hooks: Hooks = {
    onAttemptFailed: ({ status, remaining }) =>
      remaining.length === 0 ? undefined : { failover: status === 486 },
  }
  expect(await callWith({ hooks }, invite)).toMatchObject({
    outcome: { kind: 'refused', status: 503 },
    candidates: [{ status: 503 }, { status: null }],
    hooks: [{ hook: 'onAttemptFailed', decision: { failover: false }, failed: null }],
  })
  const all = { ...outbound, answers: { north: 486, 'sip:south.example:5060;transport=udp': 603 } }
  expect(await callWith({ hooks }, all)).toMatchObject({
    outcome: { kind: 'refused', status: 603 },
    hooks: [{ decision: { failover: true } }, { decision: null }],
  })
  const kit = await open()
  await expect(kit.call({ ...outbound, answers: { north: 180 } })).rejects.toThrow(
    'answers: north has 180; allowed is 0, or from 200 to 699',
  )
})

test('an emergency asks no hook', async () => {
  const onInvite = () => ({ refuse: { status: 486 } })
  const call = await callWith({ hooks: { onInvite } }, { ...outbound, to: '112' })
  expect(call).toMatchObject({ isEmergency: true, outcome: { kind: 'connected' }, hooks: [] })
})

test('a hook that throws, hangs or answers wrongly has failed, and the fallback holds', async () => {
  const failed = async (onInvite: () => unknown, settings = {}) => {
    const hooks = { default: { onInvite } }
    const { hooks: asked, outcome } = await callWith({ hooks, settings })
    return [asked[0]?.failed, outcome.kind]
  }
  const throwing = () => {
    throw new Error('no table')
  }
  expect(await failed(throwing)).toEqual([
    expect.stringMatching(/test-kit\.test\.ts:\d+: no table$/),
    'connected',
  ])
  const hanging = () => new Promise(() => undefined)
  expect(await failed(hanging, { HOOKS_TIMEOUT_MS: '10', HOOKS_FALLBACK: 'refuse' })).toEqual([
    'onInvite did not answer within 10 ms',
    'refused',
  ])
  expect(await failed(() => ({ number: '1' }))).toEqual([
    'the answer of onInvite has the unknown field "number"',
    'connected',
  ])
  expect(await failed(() => ({ set: 99 }))).toEqual([
    'there is no set 99 within reach of the call',
    'connected',
  ])
})

test('hooks see the headers of the INVITE and the time of the call, also of calls at once', async () => {
  const onInvite = async (call: { readonly headers: Readonly<Record<string, string>> }) => {
    await Promise.resolve()
    return { tags: { at: new Date().toISOString(), now: `${Date.now()}`, x: call.headers['x-a'] } }
  }
  const own = globalThis.Date
  const kit = await open({ hooks: { default: { onInvite } } })
  const at = ['2026-12-24T20:00:00.000Z', '2026-12-25T08:00:00.000Z']
  const calls = at.map((time) => kit.call({ ...outbound, at: time, headers: { 'X-A': 'b' } }))
  const tags = (await Promise.all(calls)).map((call) => call.tags)
  expect(tags).toEqual(at.map((time) => ({ at: time, now: `${Date.parse(time)}`, x: 'b' })))
  expect(globalThis.Date).toBe(own)
  await expect(kit.call({ ...outbound, at: 'noon' })).rejects.toThrow('at: noon is no time')
})

test('a call is priced by the rates of its time', async () => {
  const later = { prefix: '44', rate_per_minute: '2.40', effective_from: '2027-01-01T00:00:00Z' }
  const rates = [...seed.rates, { rate_plan: 'retail', ...later }]
  const kit = await open({ seed: { ...seed, rates } })
  const price = async (at: string) => (await kit.call({ ...outbound, at })).price?.perMinute
  expect(await price('2026-12-31T23:00:00Z')).toBe('1.20')
  expect(await price('2027-01-01T01:00:00Z')).toBe('2.40')
})

test('seed and hooks are files; each kit has the hooks anew', async () => {
  const folder = temporaryFolder()
  const [seedPath, hooks] = [join(folder, 'seed.json'), join(folder, 'hooks.ts')]
  writeFileSync(seedPath, JSON.stringify(seed))
  const code =
    'let calls = 0\nexport const onInvite = () => ({ tags: { calls: `${(calls += 1)}` } })'
  writeFileSync(hooks, code)
  const count = async () => (await callWith({ seed: seedPath, hooks })).tags['calls']
  expect([await count(), await count()]).toEqual(['1', '1'])
})

test('what cannot be used is refused in one line', async () => {
  const problem = async (options: Partial<TestKitOptions>): Promise<string> =>
    open(options).then(
      () => 'none',
      (error: unknown) => String(error),
    )
  const named = async (hooks: object) => problem({ hooks: { default: hooks } })
  expect(await named({ onInvit: () => undefined })).toMatch(/^Error: hooks: onInvit is exported/)
  expect(await named({ onInvite: 5 })).toMatch(/^Error: hooks: onInvite is a number/)
  expect(await problem({ hooks: 'none.ts' })).toMatch(/^Error: hooks: .*none\.ts/)
  expect(await problem({ seed: { customer: [] } })).toMatch(/^SeedRefused: customer/)
  expect(await problem({ phones: ['777@acme.example'] })).toMatch(/no extension 777@acme\.example/)
  expect(await problem({ phones: ['777'] })).toBe('Error: 777 is not like 101@acme.example')
  expect(await problem({ settings: { EXIT_CODES: 'x' } })).toMatch(/EXIT_CODES is "x"/)
  expect(await problem({ settings: { OCS_URL: 'http://127.0.0.1:9' } })).toMatch(
    /^Error: settings: OCS_URL has no effect here; EXIT_CODES, /,
  )
})
