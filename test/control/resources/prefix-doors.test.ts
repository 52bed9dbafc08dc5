/**
 * Every door by which the prefix of numbers comes in reads it in one way: digits with spaces, or
 * not at all.
 */
import { expect, test } from 'vitest'
import { SeedRefused } from '../../../control/resources/seed.ts'
import { seedFile } from '../../../engine/commands/seed.ts'
import { openResources } from '../../support/resources.ts'

/** Texts of decks, spreadsheets and people that are no prefixes. */
const misread = [
  '447-449',
  '447 - 449',
  '+447-+449',
  '447–449',
  '447..449',
  '447:449',
  '44792.0',
  '4.4',
  '44.79',
  '44,79',
  '44.45',
  '44(0)20',
  '+44 (0)20',
  '1 (900)',
  '1-900',
  '44792e11',
  '4.4792E+11',
  '4477/4478',
  '7401, 7402',
  "'44792",
  '="0044792"',
  '44x',
  '４４',
  '44\u00a079',
  '4+4',
  '++44',
]

const read: readonly [spelling: string, prefix: string][] = [
  ['44', '44'],
  ['+44', '44'],
  ['+44 7 92', '44792'],
  [' 44 ', '44'],
  ['*31', '*31'],
]

const csv = { headers: { 'content-type': 'text/csv' } }

async function openDoors() {
  const control = await openResources()
  const { call, store, now } = control
  const made = async (path: string, body: object) => {
    const answer = await call('POST', path, body)
    expect([path, answer.status, answer.text]).toEqual([path, 201, expect.any(String)])
    return answer.data<{ id: number }>().id
  }
  await made('/rate-plans', { name: 'retail' })
  await made('/rate-plans', { name: 'other' })
  await made('/customers', { name: 'acme', rate_plan: 'retail' })
  const rate = { rate_plan: 'retail', rate_per_minute: '0.10' }
  const rateId = await made('/rates', { ...rate, prefix: '99' })
  await made('/routing/carriers', { name: 'loop', gateways: [{ host: '192.0.2.1' }] })
  const set = { endpoint_name: 'pbx', set_id: 1, algorithm: 8, nodes: [{ host: '192.0.2.2' }] }
  await made('/dispatcher', set)
  const outbound = { carrier: 'loop' }
  const outboundId = await made('/outbound-routes', { ...outbound, name: 'kept', prefix: '99' })
  const inbound = { set_id: 1 }
  const inboundId = await made('/inbound-routes', { ...inbound, name: 'kept', prefix: '99' })
  const tenantId = await made('/tenants', { slug: 'own', numbers: ['99'] })
  const guard = { customer: 'acme', action: 'block', reason: 'a test' }
  let names = 0
  const name = () => `${(names += 1)}`
  const answered = async (method: string, path: string, body: unknown, options?: object) => {
    const answer = await call(method, path, body, options)
    return answer.status < 300 ? 'taken' : `${answer.status} ${answer.text}`
  }
  const tool = (tool: string, input: object) =>
    answered('POST', `/api/v1/mcp/tools/${tool}`, { ...input, reason: 'a test', dry_run: true })
  const seeded = async (file: object) => {
    try {
      await seedFile(store, JSON.stringify(file), now())
      return 'taken'
    } catch (error) {
      if (error instanceof SeedRefused) return `400 ${error.message}`
      throw error
    }
  }
  const many = Array.from({ length: 1_000 }, (_, n) => ({ ...rate, prefix: `7${1_000 + n}` }))
  const doors: Readonly<Record<string, (prefix: string) => Promise<string>>> = {
    'POST /rates': (prefix) => answered('POST', '/rates', { ...rate, prefix }),
    'PATCH /rates': (prefix) => answered('PATCH', `/rates/${rateId}`, { prefix }),
    'POST /rates/import': (prefix) => {
      const cell = `"${prefix.replaceAll('"', '""')}"`
      const table = `prefix,rate_per_minute\n${cell},0.01\n`
      return answered('POST', '/rates/import?rate_plan=retail&dry_run=true', table, csv)
    },
    'a long import': (prefix) => {
      const cell = `"${prefix.replaceAll('"', '""')}"`
      const table = `prefix,rate_per_minute\n8,0.01\n${cell},0.01\n`
      return answered('POST', '/rates/import?rate_plan=retail&dry_run=true', table, csv)
    },
    'a seed file': (prefix) => seeded({ rates: [{ ...rate, prefix }] }),
    'a seed file of many rates': (prefix) => seeded({ rates: [...many, { ...rate, prefix }] }),
    'POST /outbound-routes': (prefix) =>
      answered('POST', '/outbound-routes', { ...outbound, name: name(), prefix }),
    'PATCH /outbound-routes': (prefix) =>
      answered('PATCH', `/outbound-routes/${outboundId}`, { prefix }),
    'POST /inbound-routes': (prefix) =>
      answered('POST', '/inbound-routes', { ...inbound, name: name(), prefix }),
    'PATCH /inbound-routes': (prefix) =>
      answered('PATCH', `/inbound-routes/${inboundId}`, { prefix }),
    'POST /tenants': (prefix) =>
      answered('POST', '/tenants', { slug: `t${name()}`, numbers: [prefix] }),
    'PATCH /tenants': (prefix) => answered('PATCH', `/tenants/${tenantId}`, { numbers: [prefix] }),
    'POST /spend-guards': (prefix) => answered('POST', '/spend-guards', { ...guard, prefix }),
    'a filter of reports': (prefix) =>
      answered(
        'GET',
        `/reports/calls?start_date=2026-01-01&end_date=2026-01-02&group_by=caller&callee_prefix=${encodeURIComponent(prefix)}`,
        undefined,
      ),
    add_rate: (prefix) => tool('add_rate', { rate_plan: 'other', rate_per_minute: '0.1', prefix }),
    set_spend_guard: (prefix) => tool('set_spend_guard', { ...guard, prefix }),
  }
  return { ...control, doors }
}

test('whatever is no prefix is refused at every door, with its own words', async () => {
  const { doors } = await openDoors()
  for (const [door, enter] of Object.entries(doors))
    for (const spelling of misread) {
      const answer = await enter(spelling)
      const words = JSON.stringify(JSON.stringify(spelling)).slice(1, -1)
      expect([door, spelling, answer]).toEqual([door, spelling, expect.stringMatching(/^400 /)])
      if (!/[^ -~]/.test(spelling) && !door.startsWith('a seed'))
        expect([door, answer]).toEqual([door, expect.stringContaining(words)])
    }
})

test('spaces and a leading + are of no importance, at any door', async () => {
  for (const [spelling, prefix] of read) {
    const { doors, call } = await openDoors()
    for (const [door, enter] of Object.entries(doors))
      if (door !== 'PATCH /tenants' && door !== 'PATCH /rates')
        expect([door, spelling, await enter(spelling)]).toEqual([door, spelling, 'taken'])
    const stored = (await call('GET', '/rates?rate_plan=retail&limit=200')).data<
      { prefix: string }[]
    >()
    expect(stored.map((rate) => rate.prefix)).toContain(prefix)
  }
})

test('numbers keep the signs in which people write them', async () => {
  const { call } = await openDoors()
  const lookup = await call('GET', '/rates/lookup?rate_plan=retail&number=99-12%20(3).4')
  expect(lookup.data()).toMatchObject({ number: '991234', prefix: '99' })
  const customer = await call('POST', '/customers', { name: 'b', numbers: ['+1 (202) 555-0100'] })
  expect(customer.data()).toMatchObject({ numbers: ['+12025550100'] })
})

test('a line without a prefix is imported only when it is meant, and the answer says what it prices', async () => {
  const { call, doors } = await openDoors()
  expect(doors).toHaveProperty(['POST /rates/import'])
  const table = 'prefix,description,rate_per_minute\n447,UK mobile,0.01\n,Average,0.05\n'
  const send = (query: string, body = table) =>
    call('POST', `/rates/import?rate_plan=retail${query}`, body, csv)
  for (const query of ['', '&dry_run=true', '&allow_default=false', '&mode=replace'])
    expect((await send(query)).body).toMatchObject({
      statusCode: 400,
      details: [{ path: 'lines.3.prefix', message: expect.stringContaining('every number') }],
    })
  for (const empty of ['+', '" "', '""'])
    expect((await send('', `prefix,rate_per_minute\n${empty},0.05\n`)).status).toBe(400)
  const meant = [expect.stringContaining('1 rate has no prefix: every number')]
  const tried = await send('&allow_default=true&dry_run=true')
  expect(tried.data()).toMatchObject({ created: 2, warnings: meant })
  const done = await send('&allow_default=true')
  expect(done.data()).toMatchObject({ created: 2, warnings: meant })
  const other = await send('&allow_default=true', 'prefix,rate_per_minute\n48,0.05\n')
  expect(other.data()).not.toHaveProperty('warnings')
  expect((await call('GET', '/rates?limit=200')).text).toContain('"Average"')
})
