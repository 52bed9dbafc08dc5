import { expect, test } from 'vitest'
import { openControl } from '../../../support/control.ts'
import { readRows, readValue } from '../../../support/stored.ts'

const hour = 3_600_000

async function opened() {
  const control = await openControl()
  const root = await control.key({ name: 'root' })
  await control.tenant('acme')
  const uuidOf = async (token: string) => {
    const self = await control.request('/api/v1/application-keys/self', { token })
    return self.data<{ uuid: string }>().uuid
  }
  const activity = async (uuid: string, token = root, query = '') => {
    await control.access.tick()
    const path = `/api/v1/application-keys/${uuid}/activity${query}`
    return control.request(path, { token })
  }
  return { ...control, root, uuidOf, activity }
}

interface Activity {
  addresses: { address: string; requests: number; denied: number; is_new: boolean }[]
  routes: { route: string; requests: number; failed: number }[]
  refused: { what: string; code: string; attempts: number }[]
  changes: { action: string; target: string }[]
  hours: { at: string; requests: number }[]
}

test('the activity of a key has its addresses, routes, refused attempts, changes and hours', async () => {
  const rig = await opened()
  const limited = {
    name: 'reader',
    scopes: ['customers:*', 'mcp:read'],
    allowed_ips: ['192.0.2.0/28'],
  }
  const token = await rig.key(limited)
  const ask = (path: string, from: string, body?: object) =>
    rig.request(`/api/v1${path}`, { token, from, ...(body && { body }) })
  const uuid = (
    await readRows<{ uuid: string }>(
      rig.store,
      "SELECT uuid FROM application_key WHERE name = 'reader'",
    )
  )[0]?.uuid
  await ask('/customers', '192.0.2.1')
  await rig.access.tick()
  rig.tick(2 * hour)
  await ask('/customers', '192.0.2.2')
  await ask('/customers', '192.0.2.2', { name: 'new one' })
  await ask('/users', '192.0.2.2')
  await ask('/users', '192.0.2.2')
  // A leaked token: it is used from elsewhere.
  for (let index = 0; index < 3; index += 1) await ask('/customers', '203.0.113.9')
  await ask('/mcp/tools/get_telemetry', '192.0.2.2', {})
  const answer = await rig.activity(String(uuid))
  const seen = answer.data<Activity>()
  expect(answer.data()).toMatchObject({
    uuid,
    name: 'reader',
    state: 'active',
    addresses: expect.arrayContaining([
      expect.objectContaining({ address: '192.0.2.1', requests: 1, denied: 0, is_new: true }),
      expect.objectContaining({ address: '192.0.2.2', requests: 5, denied: 3 }),
      expect.objectContaining({ address: '203.0.113.9', requests: 3, denied: 3 }),
    ]),
    changes: [{ action: 'POST /api/v1/customers', target: '/api/v1/customers' }],
    hours: [{ at: '2026-01-01T02:00:00.000Z', requests: 8 }, { requests: 1 }],
  })
  expect(seen.refused[0]).toMatchObject({
    what: 'GET /api/v1/customers',
    code: 'address_not_allowed',
    attempts: 3,
    first_at: '2026-01-01T02:00:00.000Z',
    last_at: '2026-01-01T02:00:00.000Z',
  })
  expect(seen.refused).toContainEqual(
    expect.objectContaining({ what: 'GET /api/v1/users', code: 'insufficient_scope', attempts: 2 }),
  )
  expect(seen.refused).toContainEqual(
    expect.objectContaining({ what: 'tool get_telemetry', attempts: 1 }),
  )
  const routes = new Map(seen.routes.map(({ route, ...rest }) => [route, rest]))
  expect(routes.get('GET /api/v1/customers')).toEqual({ requests: 5, failed: 3 })
  const tool = await rig.request('/api/v1/mcp/tools/get_key_activity', {
    token: rig.root,
    body: { uuid },
  })
  expect(tool.data<Activity>().addresses).toEqual(seen.addresses)
  expect(tool.text.length).toBeLessThan(8_000)
  const totals = {
    addresses: seen.addresses.length,
    routes: seen.routes.length,
    refused: seen.refused.length,
    changes: 1,
    hours: 2,
  }
  expect(tool.data()).toMatchObject({ totals, complete: true })
  const short = await rig.activity(String(uuid), rig.root, '?limit=1')
  expect(short.data()).toMatchObject({ refused: [seen.refused[0]], totals, complete: false })
})

test('a period leaves out what was before it, and an address of before is not new', async () => {
  const rig = await opened()
  const token = await rig.key({ name: 'worker' })
  const uuid = await rig.uuidOf(token)
  await rig.access.tick()
  rig.tick(26 * hour)
  await rig.request('/api/v1/health', { token, from: '203.0.113.9' })
  const { addresses, routes } = (await rig.activity(uuid)).data<Activity>()
  expect(addresses).toMatchObject([{ address: '203.0.113.9', is_new: true }])
  expect(routes).toEqual([{ route: 'GET /api/v1/health', requests: 1, failed: 0 }])
  await rig.request('/api/v1/health', { token })
  const again = (await rig.activity(uuid)).data<Activity>().addresses
  expect(again.filter(({ is_new }) => is_new)).toHaveLength(1)
  expect(again).toHaveLength(2)
})

test('fresh addresses, however many, hide none that a key is used from every day', async () => {
  const rig = await opened()
  const uuid = await rig.uuidOf(await rig.key({ name: 'worker' }))
  const { activity } = rig.access
  await activity.flush()
  const used = (address: string, times: number, status = 200) => {
    for (let time = 0; time < times; time += 1)
      activity.of(2).ended(status, 'r', address, undefined)
  }
  const usual = ['192.0.2.1', '192.0.2.2', '192.0.2.3']
  for (const address of usual) used(address, 3)
  // Those that are only refused, the more the oftener, and those that succeed once or twice.
  for (let round = 0; round < 8; round += 1) {
    rig.tick(30_000)
    for (let index = 0; index < 90; index += 1)
      used(`2001:db8:${round}::${index.toString(16)}`, 1 + (index % 2), index % 3 === 0 ? 200 : 403)
    await activity.flush()
  }
  rig.tick(61_000)
  used('203.0.113.9', 1)
  await activity.flush()
  rig.tick(61_000)
  await activity.flush()
  const kept = await readRows(
    rig.store,
    'SELECT address FROM key_address WHERE application_key_id = 2',
  )
  expect(kept.length).toBeLessThanOrEqual(200)
  const shown = (await rig.activity(uuid, rig.root, '?limit=10')).data<Activity>().addresses
  expect(shown).toHaveLength(10)
  expect(shown.map(({ address }) => address)).toEqual(
    expect.arrayContaining([...usual, '203.0.113.9']),
  )
})

test('of a key at most two hundred addresses are kept, the last seen among them', async () => {
  const rig = await opened()
  const uuid = await rig.uuidOf(await rig.key({ name: 'worker' }))
  const { activity } = rig.access
  await activity.flush()
  for (let index = 0; index < 1_300; index += 1) {
    rig.tick(1)
    activity.of(2).ended(429, 'none', `2001:db8::${index}`, 'rate_limited')
    if (index % 90 === 89) await activity.flush()
  }
  rig.tick(61_000)
  await activity.flush()
  const kept = 'SELECT count(*) FROM key_address WHERE application_key_id = 2'
  expect(Number(await readValue(rig.store, kept))).toBeLessThanOrEqual(200)
  const { addresses } = (await rig.activity(uuid)).data<Activity>()
  expect(addresses.map(({ address }) => address)).toContain('2001:db8::1299')
})
