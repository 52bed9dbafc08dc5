import { usualHunting } from '../../../schema/rules/hunting.ts'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { loadRouting } from '../../../engine/routing/routing-store.ts'
import type { LocalStore } from '../../../schema/storage/store.ts'
import { execute } from '../../../schema/sql/query.ts'
import { emptyStore } from '../../support/empty-store.ts'

let store: LocalStore

beforeEach(() => {
  store = emptyStore()
})
afterEach(() => store.close())

const stamps = { created_at: 0, updated_at: 0 }

function insertCarrier(
  name: string,
  fields: {
    number_rules?: string
    codecs?: string
    media?: 'anchor'
    strip_headers?: string
    stir_sign?: 0 | 1
    stir_verify?: 'mark' | 'refuse'
    hunting?: string
  } = {},
): Promise<unknown> {
  return execute(store, store.db.insertInto('carrier').values({ name, ...stamps, ...fields }))
}

test('a carrier is read with its gateways and working number rules', async () => {
  await insertCarrier('acme', {
    number_rules: '{"in":[{"match":"^0","replace":"+49"}],"out":[{"match":"^[+]","replace":"00"}]}',
    codecs: '["PCMA"]',
    media: 'anchor',
    strip_headers: '["Diversion"]',
  })
  await insertCarrier('other')
  const gateway = { carrier_id: 1, host: '203.0.113.1', is_outbound: 0 } as const
  await execute(store, store.db.insertInto('carrier_gateway').values(gateway))
  const { carriers, problems } = await loadRouting(store)
  expect(problems).toEqual([])
  expect(carriers.map((carrier) => carrier.gateways.length)).toEqual([1, 0])
  expect(carriers[0]).toMatchObject({ name: 'acme', isActive: true, stripHeaders: ['diversion'] })
  const rules = { policy: 'anchor', profile: 'auto', codecs: ['PCMA'], dtmf: 'auto' }
  expect(carriers.map(({ media }) => media)).toEqual([
    rules,
    { ...rules, policy: 'bypass', codecs: null },
  ])
  expect(carriers[0]?.numberRules.in('030')).toBe('+4930')
  expect(carriers[0]?.numberRules.out('+4930')).toBe('004930')
  expect(carriers[0]?.gateways[0]).toEqual({
    gatewayId: 1,
    host: '203.0.113.1',
    port: 5060,
    transport: 'udp',
    netmask: 32,
    isInbound: true,
    isOutbound: false,
    priority: 10,
    weight: 100,
  })
})

const forbiddenRule = { direction: 'out', do: 'set', header: 'Date', part: 'value', value: 'now' }

test('a carrier that signs or verifies says so; others have nothing of it', async () => {
  await insertCarrier('plain')
  await insertCarrier('out', { stir_sign: 1 })
  await insertCarrier('in', { stir_verify: 'refuse' })
  const { carriers } = await loadRouting(store)
  expect(carriers.map(({ stir }) => stir)).toEqual([
    undefined,
    { isSigned: true, verify: 'off' },
    { isSigned: false, verify: 'refuse' },
  ])
})

test('a carrier has the rules by which its calls hunt; of others nothing is said', async () => {
  await insertCarrier('plain')
  await insertCarrier('some', { hunting: '{"stop_on":["503"],"max_attempts":2}' })
  const { carriers } = await loadRouting(store)
  expect(carriers.map(({ hunting }) => hunting)).toEqual([
    undefined,
    { ...usualHunting, stopOn: ['503'], maxAttempts: 2 },
  ])
})

test.each([
  ['not JSON', {}],
  ['[]', {}],
  ['{"in":[{"match":"("}]}', {}],
  ['{"in":[],"out":[{"match":"(a+)+","replace":""}]}', {}],
  ['{"in":[],"out":[]}', { codecs: '"PCMA"' }],
  ['{"in":[],"out":[]}', { header_rules: '[{"do":"set"}]' }],
  ['{"in":[],"out":[]}', { header_rules: JSON.stringify([forbiddenRule]) }],
  ['{"in":[],"out":[]}', { hunting: '[' }],
  ['{"in":[],"out":[]}', { hunting: '{"next_on":["2xx"]}' }],
  ['{"in":[],"out":[]}', { hunting: '{"answers":[{"match":"503","status":407}]}' }],
  ['{"in":[],"out":[]}', { hunting: '{"max_attempts":-1}' }],
])('a carrier with number rules %s and %o is left out and told', async (number_rules, fields) => {
  await insertCarrier('broken', { number_rules, ...fields })
  await insertCarrier('whole')
  const { carriers, problems } = await loadRouting(store)
  expect(carriers.map((carrier) => carrier.name)).toEqual(['whole'])
  expect(problems).toHaveLength(1)
  expect(problems[0]).toContain('carrier broken is not used')
})

test('inbound routes lead to sets, extensions and agents; a set that is no number is told', async () => {
  const rows = [
    { name: 'a', target_type: 'set' as const, target: '10', prefix: '49' },
    { name: 'b', target_type: 'extension' as const, target: '1001@acme.example', domain: 'x.org' },
    { name: 'c', target_type: 'agent' as const, target: '7' },
    { name: 'd', target_type: 'set' as const, target: 'ten' },
  ]
  for (const row of rows)
    await execute(store, store.db.insertInto('inbound_route').values({ ...row, created_at: 0 }))
  const { inboundRoutes, problems } = await loadRouting(store)
  expect(inboundRoutes.map((route) => route.target)).toEqual([
    { kind: 'set', setId: 10 },
    { kind: 'extension', extension: '1001', tenantId: null, domain: 'acme.example' },
    { kind: 'agent', agentId: 7 },
  ])
  expect(problems).toEqual(['inbound route d is not used: ten is not a set id'])
})
