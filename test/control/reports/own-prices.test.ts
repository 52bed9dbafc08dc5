import { expect, test } from 'vitest'
import { activeCall } from '../../support/engine-views.ts'
import { openReportRig, reportPath, uuidOf } from '../../support/report-rig.ts'

const period = 'start_date=2026-01-01T00:00:00Z&end_date=2026-01-02T00:00:00Z'

/**
 * One call of acme that the platform's customer pays, one that its own pays, one of beta, one of no
 * tenant.
 */
async function open() {
  const rig = await openReportRig()
  const root = await rig.key()
  const acme = await rig.tenant('acme', ['acme.example'])
  const beta = await rig.tenant('beta', ['beta.example'])
  const customer = async (name: string, tenant: string | null) => {
    const made = await rig.request('/api/v1/customers', { token: root, body: { name, tenant } })
    return made.data<{ id: number }>().id
  }
  const platforms = await customer('the platform pays', null)
  const own = await customer('acme pays', 'acme')
  const lack = { requiredMicros: 900_000, availableMicros: 700_000 }
  const denialText = 'the platform pays has 0.70 to spend, and the shortest call takes 0.90'
  await rig.store({ tenantId: acme, customerId: platforms, denialText, lack }, 770_000)
  await rig.store({ tenantId: acme, customerId: own }, 110_000)
  await rig.store({ tenantId: beta, customerId: platforms }, 330_000)
  await rig.store({ tenantId: null, customerId: platforms }, 50_000)
  const keyOf = (slug: string) =>
    rig.key({ name: slug, tenant_scope: 'tenant', tenant_slug: slug, scopes: ['*'] })
  const tokens = { root, acme: await keyOf('acme'), beta: await keyOf('beta') }
  const get = (by: keyof typeof tokens, path: string) => rig.request(path, { token: tokens[by] })
  const tool = (by: keyof typeof tokens, name: string, body: object) =>
    rig.request(`/api/v1/mcp/tools/${name}`, { token: tokens[by], body })
  return { ...rig, acme, platforms, get, tool }
}

/** Texts that nobody of acme may read. */
const secrets = /0\.77|770000|0\.90|0\.70|the platform pays/

test('a tenant sees the calls of its phones that the platform pays, without the price', async () => {
  const { get } = await open()
  const { records, ...totals } = (await get('acme', `${reportPath}?${period}`)).body as {
    records: Record<string, unknown>[]
  }
  expect(totals).toMatchObject({ total_calls: 2 })
  expect(records).toMatchObject([
    { call_uuid: uuidOf(1), cost: null, cost_exact: null, currency: null, tenant_slug: 'acme' },
    { call_uuid: uuidOf(2), cost: 0.11, cost_exact: '0.11', currency: 'USD' },
  ])
  const csv = await get('acme', `${reportPath}?${period}&format=csv`)
  expect(csv.text.split('\r\n')).toHaveLength(4)
  const lines = await get('acme', `${reportPath}?${period}&format=ndjson`)
  for (const { text } of [csv, lines]) expect(text).not.toMatch(secrets)
  const status = await get('acme', `/api/v1/pbx/calls/${uuidOf(1)}`)
  expect([status.status, secrets.test(status.text)]).toEqual([200, false])
})

test('other tenants never see them, and the platform sees the price', async () => {
  const { get, tool } = await open()
  const ofBeta = (await get('beta', `${reportPath}?${period}`)).text
  expect(ofBeta).toContain(uuidOf(3))
  expect(ofBeta).not.toContain(uuidOf(1))
  expect((await get('beta', `/api/v1/pbx/calls/${uuidOf(1)}`)).status).toBe(404)
  expect((await tool('beta', 'explain_call', { call_uuid: uuidOf(1) })).status).toBe(404)
  const { records } = (await get('root', `${reportPath}?${period}`)).body as { records: object[] }
  expect(records).toMatchObject([{ cost: 0.77 }, { cost: 0.11 }, { cost: 0.33 }, { cost: 0.05 }])
})

test.each(['records', 'daily totals'])(
  'sums of %s have their calls and not their cost',
  async (of) => {
    const { get, deps } = await open()
    if (of === 'daily totals')
      await deps.reports.rollUp({ now: Date.UTC(2026, 0, 3), retainedFrom: undefined })
    for (const group of ['customer', 'carrier', 'hour', 'caller']) {
      const path = `/api/v1/reports/calls?${period}&group_by=${group}`
      const sums = async (by: 'root' | 'acme') => JSON.stringify((await get(by, path)).body)
      expect([group, await sums('acme')]).toEqual([group, expect.stringContaining('"calls":2')])
      expect([group, await sums('acme')]).toEqual([group, expect.stringContaining('0.11')])
      expect([group, await sums('acme')]).toEqual([
        group,
        expect.not.stringMatching(/0\.77|0\.88|\*|the platform pays/),
      ])
      expect([group, await sums('root')]).toEqual([group, expect.not.stringContaining('*')])
    }
  },
)

test('a search by cost does not find what a tenant may not know, and a tool does not tell it', async () => {
  const { tool } = await open()
  const span = { start: '2026-01-01T00:00:00Z', end: '2026-01-02T00:00:00Z' }
  const dear = await tool('acme', 'search_cdrs', { ...span, min_cost: '0.50' })
  expect([dear.status, dear.text.includes(uuidOf(1))]).toEqual([200, false])
  const all = await tool('acme', 'search_cdrs', { ...span, order_by: 'cost' })
  const places = [2, 1].map((n) => all.text.indexOf(uuidOf(n)))
  expect(places).toEqual(places.toSorted((a, b) => a - b))
  expect(places).not.toContain(-1)
  for (const name of ['explain_call', 'get_call']) {
    const answer = await tool('acme', name, { call_uuid: uuidOf(1) })
    expect([name, answer.status, secrets.exec(answer.text)]).toEqual([name, 200, null])
  }
})

test('live calls are there, without the cost so far', async () => {
  const { get, engine, acme, platforms } = await open()
  engine.activeCalls = [
    activeCall({ tenantId: acme, customerId: platforms, isPaidByPlatform: true }),
  ]
  const path = '/api/v1/pbx/calls/active'
  expect((await get('acme', path)).body).toMatchObject([
    { cost: null, currency: null, price: null },
  ])
  expect((await get('root', path)).body).toMatchObject([{ cost: 0 }])
  expect((await get('beta', path)).body).toEqual([])
})
