import { expect, test, describe } from 'vitest'
import { SeedRefused } from '../../../control/resources/seed.ts'
import { seedFile } from '../../../engine/commands/seed.ts'
import { all, first } from '../../../schema/sql/query.ts'
import type { Store } from '../../../schema/storage/store.ts'
import { emptyStore } from '../../support/empty-store.ts'
import { eachDatabase } from '../../support/shared-database.ts'
import { readColumn, readValue } from '../../support/stored.ts'

const now = Date.UTC(2026, 0, 2)

const complete = {
  tenants: [{ slug: 'acme', name: 'Acme', domains: ['acme.example'] }],
  rate_plans: [{ name: 'default', currency: 'EUR', decimals: 4 }],
  rates: [
    { rate_plan: 'default', prefix: '49', rate_per_minute: '0.10', connect_fee: 0.4 },
    { rate_plan: 'default', prefix: '49900', rate_per_minute: 0, blocked: true },
  ],
  customers: [
    {
      name: 'acme',
      tenant: 'acme',
      rate_plan: 'default',
      numbers: ['+4930100', '101'],
      balance: '10.00',
      password: 'correct horse',
      email: 'Billing@acme.example',
    },
  ],
  dispatcher: [
    {
      endpoint_name: 'pbx',
      algorithm: '8',
      set_id: 1,
      nodes: [{ host: '10.0.0.1' }, { host: 'pbx2.example.com', priority: 20 }],
    },
  ],
  carriers: [
    {
      name: 'loop',
      gateways: [{ host: '192.0.2.1', port: 5070 }],
      customer: 'acme',
      tenant: 'acme',
      inbound_set: 'pbx',
      number_rules: { in: [{ match: '^00', replace: '+' }], out: [] },
      header_rules: [{ do: 'set', header: 'X-Account', value: '{carrier}' }],
    },
  ],
  outbound_routes: [{ name: 'world', prefix: '+', carrier: 'loop', tenant: 'acme' }],
  inbound_routes: [{ name: 'in', prefix: '4930', set: 'pbx' }],
  numbers: [{ number: '+4930200', last_number: '+4930299', tenant: 'acme', extension: '101' }],
  extensions: [
    {
      tenant: 'acme',
      extension: '101',
      password: 'secret-101',
      display_name: 'Reception',
      customer: 'acme',
    },
  ],
}

const tables = [
  'tenant',
  'tenant_domain',
  'rate_plan',
  'rate',
  'customer',
  'phone_number',
  'wallet',
  'ledger_entry',
  'dispatcher_set',
  'dispatcher_node',
  'carrier',
  'carrier_gateway',
  'outbound_route',
  'inbound_route',
  'extension',
] as const

/** Everything stored, except what is salted. */
async function contents(store: Store): Promise<readonly unknown[]> {
  const found: unknown[] = []
  for (const table of tables)
    for (const row of await all(store, store.db.selectFrom(table).selectAll()))
      found.push({ table, ...row, password_hash: undefined })
  return found
}

test('a seed file brings every kind of resource, with references by name', async () => {
  const store = emptyStore()
  const report = await seedFile(store, JSON.stringify(complete), now)
  const once = { created: 1, updated: 0, unchanged: 0 }
  expect(report).toEqual({
    tenants: once,
    rate_plans: once,
    rates: { created: 2, updated: 0, unchanged: 0 },
    customers: once,
    dispatcher: once,
    carriers: once,
    outbound_routes: once,
    inbound_routes: once,
    extensions: once,
    ai_agents: { created: 0, updated: 0, unchanged: 0 },
    numbers: once,
    routing_webhooks: { created: 0, updated: 0, unchanged: 0 },
    stir_keys: { created: 0, updated: 0, unchanged: 0 },
    stir_authorities: { created: 0, updated: 0, unchanged: 0 },
    alert_channels: { created: 0, updated: 0, unchanged: 0 },
    alert_rules: { created: 0, updated: 0, unchanged: 0 },
    identity_providers: { created: 0, updated: 0, unchanged: 0 },
  })
  const { db } = store
  const carrier = await first(store, db.selectFrom('carrier').selectAll())
  const customer = await first(store, db.selectFrom('customer').selectAll())
  expect(carrier).toMatchObject({ inbound_set_id: 1, customer_id: customer?.id })
  expect(await first(store, db.selectFrom('outbound_route').selectAll())).toMatchObject({
    carrier_id: carrier?.id,
    prefix: '',
  })
  expect(await first(store, db.selectFrom('wallet').selectAll())).toMatchObject({
    currency: 'EUR',
    balance_micros: 10_000_000,
  })
  expect(await first(store, db.selectFrom('ledger_entry').selectAll())).toMatchObject({
    kind: 'topup',
    actor: 'seed',
    amount_micros: 10_000_000,
  })
})

test('a seed file may be applied again and again: nothing changes, and the balance is credited once', async () => {
  const store = emptyStore()
  await seedFile(store, JSON.stringify(complete), now)
  const once = await contents(store)
  const report = await seedFile(store, JSON.stringify(complete), now + 1_000)
  for (const [section, elements] of Object.entries(complete))
    expect([section, report[section as keyof typeof report]]).toEqual([
      section,
      { created: 0, updated: 0, unchanged: elements.length },
    ])
  expect(await contents(store)).toEqual(once)
})

test("applying a changed file changes what it names, and keeps the nodes' ids and the operator's word", async () => {
  const store = emptyStore()
  await seedFile(store, JSON.stringify(complete), now)
  const { db, sqlite } = store
  sqlite.exec("UPDATE dispatcher_node SET operator_state = 'inactive' WHERE host = '10.0.0.1'")
  const before = await all(store, db.selectFrom('dispatcher_node').selectAll())
  const [set] = complete.dispatcher
  const changed = {
    dispatcher: [
      {
        ...set,
        nodes: [
          { host: '10.0.0.9' },
          ...(set?.nodes ?? []).slice(0, 1),
          { host: 'pbx2.example.com' },
        ],
      },
    ],
  }
  await seedFile(store, JSON.stringify(changed), now)
  const after = await all(store, db.selectFrom('dispatcher_node').selectAll())
  expect(after).toHaveLength(3)
  expect(after[0]).toEqual(before[0])
  expect(after[1]).toEqual({ ...before[1], priority: 10 })
})

const fullRate = {
  rate_plan: 'default',
  prefix: '49',
  rate_per_minute: '0.10',
  connect_fee: 0.4,
  first_increment: 60,
  first_rate_per_minute: '0.20',
  increment: 6,
  description: 'Germany',
  effective_to: '2030-01-01T00:00:00Z',
}

test.each([
  ['a few rates', 1],
  ['so many that they are written together', 1_000],
])('a partial rate keeps what it does not name: %s', async (_what, count) => {
  const store = emptyStore()
  const others = Array.from({ length: count - 1 }, (_each, index) => ({
    rate_plan: 'default',
    prefix: `7${index}`,
    rate_per_minute: '0.30',
  }))
  const plan = { rate_plans: [{ name: 'default' }] }
  const seed = (rates: readonly object[]) =>
    seedFile(store, JSON.stringify({ ...plan, rates }), now)
  await seed([fullRate, ...others])
  const stored = () =>
    first(store, store.db.selectFrom('rate').selectAll().where('prefix', '=', '49'))
  const before = await stored()
  const price = { rate_plan: 'default', prefix: '49', rate_per_minute: '0.11' }
  const { rates } = await seed([price, ...others])
  expect(rates).toEqual({ created: 0, updated: 1, unchanged: count - 1 })
  expect(await stored()).toEqual({ ...before, rate_per_minute_micros: 110_000 })
  const cleared = {
    ...price,
    description: null,
    first_increment: null,
    first_rate_per_minute: null,
  }
  await seed([cleared, ...others])
  expect(await stored()).toEqual({
    ...before,
    description: null,
    rate_per_minute_micros: 110_000,
    first_increment_seconds: 0,
    first_rate_per_minute_micros: 110_000,
  })
})

test.each([
  [
    'a description of a rate',
    'rates',
    { rate_plan: 'default', prefix: '49', rate_per_minute: '0.11' },
  ],
  [
    'a password of a customer',
    'customers',
    { ...complete.customers[0], password: 'a new password' },
  ],
  [
    'a password of a phone',
    'extensions',
    { ...complete.extensions[0], password: 'a new password' },
  ],
  [
    'a password of a carrier',
    'carriers',
    {
      ...complete.carriers[0],
      auth: { type: 'digest', username: 'us', password: 'new' },
    },
  ],
])('%s that has changed is counted, and nothing else', async (_, section, element) => {
  const store = emptyStore()
  const [carrier] = complete.carriers
  const auth = { type: 'digest', username: 'us', password: 'old' }
  const first = { ...complete, carriers: [{ ...carrier, auth }] }
  await seedFile(store, JSON.stringify(first), now)
  const report = await seedFile(store, JSON.stringify({ [section]: [element] }), now)
  expect(report[section as keyof typeof report]).toEqual({ created: 0, updated: 1, unchanged: 0 })
  const again = await seedFile(store, JSON.stringify({ [section]: [element] }), now)
  expect(again[section as keyof typeof again]).toEqual({ created: 0, updated: 0, unchanged: 1 })
})

test.each([
  [
    'a comma too many',
    '{\n  "tenants": [\n    { "slug": "a" },\n  ]\n}',
    'line 4, column 3 has "]" where a value is expected',
  ],
  ['a missing comma', '{\n"tenants": []\n"rates": []}', 'line 3, column 1'],
  [
    'an end that is missing',
    '{\n  "tenants": [',
    'line 2, column 15 ends where a value or ] is expected',
  ],
  [
    'a text that goes on',
    '{"tenants": [{"slug": "a\n"}]}',
    'line 1, column 23 has a text that does not end in its line',
  ],
])('what is wrong with JSON with %s is told with line and column', async (_, text, line) => {
  await expect(seedFile(emptyStore(), text, now)).rejects.toThrow(
    `the file: is not valid JSON: ${line}`,
  )
})

test.each([
  [
    '{"dispatcher":[{"endpoint_name":"a","algorithm":8,"nodes":[{"hots":"10.0.0.1"}]}]}',
    'dispatcher[0].nodes[0].hots: Unknown field: did you mean "host"?',
  ],
  [
    '{"rates":[{"rate_plan":"a","prefix":"4","rate_per_minute":1,"color":1}]}',
    'rates[0].color: Unknown field',
  ],
])('a misspelled field is named with its path, and what was meant: %s', async (text, line) => {
  try {
    await seedFile(emptyStore(), text, now)
    expect.unreachable()
  } catch (error) {
    expect(error instanceof SeedRefused ? error.problems : []).toContain(line)
  }
})

test.each([
  [
    'a wrong port, by its place',
    JSON.stringify({
      carriers: [
        { name: 'a', gateways: [{ host: '192.0.2.1' }] },
        { name: 'b', gateways: [{ host: '192.0.2.2', port: 70_000 }] },
      ],
    }),
    'carriers[1].gateways[0].port: ',
  ],
  [
    'a reference to nothing',
    JSON.stringify({ outbound_routes: [{ name: 'a', carrier: 'nowhere' }] }),
    'outbound_routes[0].carrier: there is no carrier "nowhere"',
  ],
  [
    'an element twice',
    JSON.stringify({ tenants: [{ slug: 'a' }, { slug: 'a' }] }),
    'tenants[1]: repeats tenants[0]',
  ],
  [
    'a NUL byte',
    JSON.stringify({ tenants: [{ slug: 'a', name: 'x\u0000y' }] }),
    'tenants[0].name: contains a NUL character',
  ],
  [
    'what is not supported',
    JSON.stringify({
      carriers: [{ name: 'a', media: 'anchor', gateways: [{ host: '192.0.2.1' }] }],
    }),
    'carriers[0].media: media "anchor" needs a media relay: set RTPENGINE',
  ],
])('a file with %s is refused, with one line that names it', async (_, text, line) => {
  const store = emptyStore()
  await expect(seedFile(store, text, now)).rejects.toThrow(SeedRefused)
  await expect(seedFile(store, text, now)).rejects.toThrow(line)
})

test('every problem that can be seen in the file is reported at once', async () => {
  const text = JSON.stringify({
    tenants: [{ slug: 'A' }],
    dispatcher: [{ endpoint_name: 'x', algorithm: 5, nodes: [{ host: '300.1.1.1' }] }],
  })
  try {
    await seedFile(emptyStore(), text, now)
    expect.unreachable()
  } catch (error) {
    const problems = error instanceof SeedRefused ? error.problems : []
    expect(problems.map((line) => line.split(':')[0])).toEqual([
      'tenants[0].slug',
      'dispatcher[0].algorithm',
      'dispatcher[0].nodes[0].host',
    ])
    expect(String(error)).toContain('(and 2 more)')
  }
})

test('no password of a seed file is stored as text', async () => {
  const store = emptyStore()
  await seedFile(store, JSON.stringify(complete), now)
  const bytes = store.sqlite.serialize().toString('latin1')
  expect(bytes).toContain('acme.example')
  expect(bytes).not.toContain('correct horse')
  expect(bytes).not.toContain('secret-101')
})

const rates = Array.from({ length: 1_500 }, (_, n) => ({
  rate_plan: n % 2 === 0 ? 'a' : 'b',
  prefix: String(9_999 - n),
  rate_per_minute: '0.10',
}))

const file = {
  tenants: [{ slug: 'acme', name: 'Acme', domains: ['acme.example'] }],
  rate_plans: [
    { name: 'b', currency: 'EUR', decimals: 4 },
    { name: 'a', currency: 'EUR', decimals: 4 },
  ],
  rates,
  customers: [{ name: 'acme', tenant: 'acme', rate_plan: 'a', balance: '10.00' }],
  dispatcher: [{ endpoint_name: 'pbx', algorithm: '8', set_id: 1, nodes: [{ host: '10.0.0.1' }] }],
}

describe.each(eachDatabase)('a seed file on $database', ({ open }) => {
  test('it is applied whole, rates in the order of their index, and changes nothing the second time', async () => {
    const store = await open()
    const first = await seedFile(store, JSON.stringify(file), now)
    expect(first.rates).toEqual({ created: 1_500, updated: 0, unchanged: 0 })
    const ids = await readColumn(store, 'SELECT id FROM rate ORDER BY rate_plan_id, prefix')
    expect(ids).toEqual(await readColumn(store, 'SELECT id FROM rate ORDER BY id'))
    const again = await seedFile(store, JSON.stringify(file), now)
    for (const { created, updated } of Object.values(again))
      expect([created, updated]).toEqual([0, 0])
    const dearer = {
      ...file,
      rates: rates.with(7, { ...rates[7], rate_per_minute: '0.2' } as never),
    }
    const third = await seedFile(store, JSON.stringify(dearer), now)
    expect(third.rates).toEqual({ created: 0, updated: 1, unchanged: 1_499 })
  })

  test('one with a fault in its last element leaves nothing, money included', async () => {
    const store = await open()
    const wrong = {
      ...file,
      inbound_routes: [{ name: 'x', prefix: '1', target_type: 'set', target: '7' }],
    }
    await expect(seedFile(store, JSON.stringify(wrong), now)).rejects.toThrow(SeedRefused)
    for (const table of ['tenant', 'rate_plan', 'rate', 'customer', 'wallet', 'ledger_entry'])
      expect([table, await readValue(store, `SELECT count(*) FROM ${table}`)]).toEqual([table, 0])
  })
})
