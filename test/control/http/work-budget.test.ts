/** The work that one asker may take: by the API, and by the clock. */
import { expect, test } from 'vitest'
import { WorkBudgets } from '../../../control/http/work-budget.ts'
import { openResources } from '../../support/resources.ts'

const MIB = 1_048_576

test('a tenant that has used up its bytes waits, whichever of its keys asks, and nobody else does', async () => {
  const control = await openResources()
  await control.tenant('acme')
  await control.tenant('other')
  const [one, two] = [
    await control.key({ tenant_slug: 'acme' }),
    await control.key({ tenant_slug: 'acme' }),
  ]
  const stranger = await control.key({ tenant_slug: 'other' })
  const table = 'x'.repeat(16 * MIB)
  const send = (token: string) =>
    control.request('/api/v1/rates/import?rate_plan=none', {
      method: 'POST',
      token,
      body: table,
      headers: { 'content-type': 'text/csv', 'content-length': String(table.length) },
    })
  for (let each = 0; each < 3; each += 1) expect((await send(one)).status).toBe(400)
  const refused = await control.request('/api/v1/rates', { token: two })
  expect([refused.status, refused.code]).toEqual([429, 'rate_limited'])
  expect(refused.headers.get('retry-after')).toBe('8')
  expect((await control.request('/api/v1/rates', { token: stranger })).status).toBe(200)
  expect((await control.call('GET', '/rates')).status).toBe(200)
  control.tick(8_000)
  expect((await control.request('/api/v1/rates', { token: two })).status).toBe(200)
})

test('a length that is announced and refused costs no more than the largest body of its path', async () => {
  const control = await openResources()
  await control.tenant('acme')
  const token = await control.key({ tenant_slug: 'acme' })
  for (const credential of [{ token }, {}]) {
    const headers = { 'content-length': '1000000000000000' }
    const lie = { ...credential, body: {}, headers }
    for (const path of ['/api/v1/rates', '/api/v1/rates', '/api/v1/auth/login']) {
      const { status, code } = await control.request(path, lie)
      expect([path, status, code]).toEqual([path, 413, 'body_too_large'])
    }
    const next = await control.request('/health', credential)
    expect([next.status, next.code]).toEqual([200, undefined])
  }
  expect((await control.request('/api/v1/rates', { token })).status).toBe(200)
})

test('nobody waits longer than a minute, however much was taken', () => {
  let now = 0
  const budgets = new WorkBudgets(() => now)
  for (const asker of ['tenant', 'platform', 'address'] as const) {
    const budget = budgets.of(asker, 1)
    budget.takeWork(1e15)
    budget.takeBytes(1e15)
    expect(budget.waitMs()).toBeGreaterThan(30_000)
    now += 60_010
    expect(budget.waitMs()).toBe(0)
  }
})

test('work is measured to the last promise, and runs off by the clock', async () => {
  let now = 0
  const budget = new WorkBudgets(() => now).of('tenant', 1)
  const measured = budget.measure()
  void Promise.resolve()
    .then(() => Promise.resolve())
    .then(() => (now += 900))
  expect(await measured).toBe(900)
  expect(budget.waitMs()).toBe(0)
  budget.takeWork(2_000)
  expect(budget.waitMs()).toBe(1_604)
  now += 1_604
  expect(budget.waitMs()).toBe(0)
})

test('one body is worked on in a turn of the event loop, and the hundred-and-second is refused', async () => {
  const budget = new WorkBudgets(() => 0).of('tenant', 1)
  const worked: number[] = []
  let turns = 0
  const all = Array.from({ length: 101 }, async () => {
    await budget.turn()
    worked.push(turns)
  })
  await expect(budget.turn()).rejects.toMatchObject({ status: 429, code: 'rate_limited' })
  for (; worked.length < 101; turns += 1) await new Promise(setImmediate)
  await Promise.all(all)
  expect(new Set(worked).size).toBe(101)
})

test('budgets are of a tenant, of a credential of the platform, or of an address', () => {
  const budgets = new WorkBudgets(() => 0)
  expect(budgets.of('tenant', 1)).toBe(budgets.of('tenant', 1))
  expect(budgets.of('tenant', 1)).not.toBe(budgets.of('tenant', 2))
  expect(budgets.of('tenant', 1)).not.toBe(budgets.of('platform', 1))
})
