/** The data that a customer sees on the edge: only its own data. */
import { expect, test } from 'vitest'
import { routeNotes } from '../../../control/http/validate.ts'
import { endedCall } from '../../support/books.ts'
import { openResources } from '../../support/resources.ts'

async function open() {
  const control = await openResources()
  await control.call('POST', '/rate-plans', { name: 'retail', currency: 'USD' })
  await control.call('POST', '/rate-plans', { name: 'premium', currency: 'USD' })
  await control.call('POST', '/rates', {
    rate_plan: 'retail',
    prefix: '49',
    rate_per_minute: '0.60',
  })
  await control.call('POST', '/rates', {
    rate_plan: 'premium',
    prefix: '49',
    rate_per_minute: '0.06',
  })
  const customer = async (name: string, rate_plan: string, number: string) => {
    const made = await control.call('POST', '/customers', {
      name,
      rate_plan,
      numbers: [number],
      balance: '10.00',
      low_balance_threshold: '9.50',
      email: `${name}@example.com`,
      password: `${name} password`,
    })
    const { id } = made.data<{ id: number }>()
    const body = { email: `${name}@example.com`, password: `${name} password` }
    const login = await control.request('/api/client/auth/login', { app: control.edge, body })
    const { token } = login.data<{ token: string }>()
    const see = (path: string, options: object = {}) =>
      control.request(`/api/client${path}`, { app: control.edge, token, ...options })
    const talk = (callUuid: string, billsec: number) => {
      const parties = { callerNumber: number, customerId: id }
      const stored = control.ocs.report(endedCall(callUuid, billsec, parties))
      control.flushCalls()
      return stored
    }
    return { id, token, see, talk }
  }
  const acme = await customer('acme', 'retail', '15550001')
  const rival = await customer('rival', 'premium', '15550002')
  return { ...control, acme, rival }
}

test('a customer sees the current state of its wallet', async () => {
  const { acme } = await open()
  await acme.talk('call-a', 60)
  expect((await acme.see('/wallet')).data()).toEqual({
    currency: 'USD',
    balance: '9.40',
    balance_number: 9.4,
    credit_limit: 0,
    reserved: '0.00',
    available: '9.40',
    open_calls: 0,
    low_balance_threshold: 9.5,
    is_balance_low: true,
  })
})

test('a customer sees the changes of its balance, but not their actor', async () => {
  const { acme, call } = await open()
  await acme.talk('call-a', 60)
  await call('POST', `/customers/${acme.id}/wallet/adjust`, { amount: '-1', reason: 'SIM card' })
  const ledger = await acme.see('/ledger')
  expect(ledger.data()).toMatchObject([
    { kind: 'adjust', amount_exact: '-1.00', note: 'SIM card', call_uuid: null },
    { kind: 'debit', amount_exact: '-0.60', balance_after_exact: '9.40', call_uuid: 'call-a' },
    { kind: 'topup', amount_exact: '10.00', note: 'opening balance' },
  ])
  expect(ledger.text).not.toMatch(/key:|actor|"ref"/)
  expect((await acme.see('/ledger?kind=debit')).body).toMatchObject({ meta: { total: 1 } })
})

test('a customer sees its calls, but not their internal destinations', async () => {
  const { acme, rival } = await open()
  await acme.talk('call-a', 60)
  await acme.talk('call-b', 0)
  await rival.talk('call-r', 600)
  const calls = await acme.see('/cdrs')
  expect(calls.body).toMatchObject({ meta: { total: 2, page: 1 } })
  expect(calls.data()).toMatchObject([
    { call_uuid: 'call-b', disposition: 'NO ANSWER', cost_exact: '0.00' },
    { call_uuid: 'call-a', billsec: 60, cost_exact: '0.60', destination_number: '4930123' },
  ])
  expect(calls.text).not.toMatch(/node|carrier|192\.0\.2|set_id|call_id/)
  expect((await acme.see('/cdrs?disposition=ANSWERED')).body).toMatchObject({ meta: { total: 1 } })
  expect((await acme.see('/cdrs?start_date=2030-01-01T00:00:00Z')).data()).toEqual([])
  expect((await acme.see('/cdrs?page=2&limit=1')).data()).toMatchObject([{ call_uuid: 'call-a' }])
})

test('a customer sees the prices of its own plan', async () => {
  const { acme, rival } = await open()
  const cost = async ({ see }: typeof acme) =>
    (await see('/rates/lookup?number=4930123&duration=60')).data<{ cost_exact: string }>()
      .cost_exact
  expect([await cost(acme), await cost(rival)]).toEqual(['0.60', '0.06'])
  expect((await acme.see('/rates/lookup?number=33')).code).toBe('no_rate')
  expect((await acme.see('/rates/lookup?number=49&rate_plan=premium')).status).toBe(400)
})

test('nothing in a request makes it show another customer', async () => {
  const { acme, rival } = await open()
  await rival.talk('rival-call', 600)
  const other = String(rival.id)
  const headers = { 'X-Customer-ID': other, 'X-Tenant-Slug': '' }
  for (const path of ['/wallet', '/ledger', '/cdrs', '/auth/me']) {
    const plain = await acme.see(path)
    expect(plain.status).toBe(200)
    expect(plain.text).not.toContain('rival')
    const forged = await acme.see(path, { headers: { 'X-Customer-ID': other } })
    expect(forged.data()).toEqual(plain.data())
    expect((await acme.see(`${path}?customer_id=${other}`)).text).not.toContain('rival')
    expect((await acme.see(path, { headers })).text).not.toContain('rival-call')
  }
})

test('a customer session opens no route of the platform, on neither listener', async () => {
  const control = await open()
  const { token } = control.acme
  for (const { method, path, access } of routeNotes(control.app)) {
    if (access?.kind === 'public' || access?.kind === 'customer') continue
    const at = path.replaceAll(/:\w+/g, '1')
    for (const app of [control.app, control.edge]) {
      const answer = await control.request(at, { app, method, token })
      expect([method, path, answer.status]).toEqual([method, path, 403])
    }
  }
})

test('a customer who is switched off sees nothing from the next request on', async () => {
  const { acme, call } = await open()
  expect((await acme.see('/wallet')).status).toBe(200)
  await call('PATCH', `/customers/${acme.id}`, { is_active: false })
  expect((await acme.see('/wallet')).status).toBe(401)
})
