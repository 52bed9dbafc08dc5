/**
 * Currencies of small units, such as VND and IDR: sums beyond 2^53 micro-units stay exact,
 * everywhere.
 */
import fc from 'fast-check'
import Stripe from 'stripe'
import { expect, test } from 'vitest'
import { moneyToDecimal } from '../../../schema/columns.ts'
import { openControl, paymentWebhookSecret as secret } from '../../support/control.ts'
import { readValue, runSql } from '../../support/stored.ts'
import { isOnPostgres } from '../../support/on-sqlite.ts'
import { openResources } from '../../support/resources.ts'

/** An amount as the model has it, and as it is written. */
const amounts = fc.bigInt({ min: 1n, max: 9_000_000_000_000_000n })

const decimal = (micros: bigint): string => {
  const sign = micros < 0n ? '-' : ''
  const size = micros < 0n ? -micros : micros
  return `${sign}${size / 1_000_000n}.${String(size % 1_000_000n).padStart(6, '0')}`
}

async function reseller() {
  const control = await openControl()
  const token = await control.key()
  const call = (method: string, path: string, body?: unknown) =>
    control.request(`/api/v1${path}`, { method, token, ...(body === undefined ? {} : { body }) })
  await call('POST', '/rate-plans', { name: 'vnd', currency: 'VND', decimals: 0 })
  await call('POST', '/rates', { rate_plan: 'vnd', prefix: '84', rate_per_minute: '250000' })
  const customer = { name: 'reseller', rate_plan: 'vnd', numbers: ['8490'] }
  const { id } = (await call('POST', '/customers', customer)).data<{ id: number }>()
  const adjust = (micros: bigint, kind = micros < 0n ? 'adjust' : 'topup') =>
    call('POST', `/customers/${id}/wallet/adjust`, { amount: decimal(micros), kind, reason: 'x' })
  return { ...control, id, call, adjust }
}

test('balances, ledger, reservations and answers agree with a model to the last micro-unit', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.tuple(amounts, fc.boolean()), { minLength: 4, maxLength: 12 }),
      async (moves) => {
        const { id, call, adjust, ocs, store, close } = await reseller()
        let model = 0n
        const after: string[] = []
        for (const [size, isOut] of moves) {
          const micros = isOut && size <= model ? -size : size
          model += micros
          after.unshift(moneyToDecimal(model))
          const answer = (await adjust(micros)).data<{ balance: string; amount_exact: string }>()
          expect(answer.balance).toBe(moneyToDecimal(model))
          expect(answer.amount_exact).toBe(moneyToDecimal(micros))
        }
        const { balance, balance_number } = (await call('GET', `/customers/${id}`)).data<{
          balance: string
          balance_number: number
        }>()
        expect([balance, balance_number]).toEqual([moneyToDecimal(model), Number(decimal(model))])
        const entries = (await call('GET', `/customers/${id}/ledger`)).data<
          { balance_after_exact: string }[]
        >()
        expect(entries.map((entry) => entry.balance_after_exact)).toEqual(after)
        expect(ocs.balanceOf(id)?.balanceMicros).toBe(model)
        await ocs.reloadCustomers()
        expect(ocs.balanceOf(id)?.balanceMicros).toBe(model)
        expect(await ocs.check()).toEqual([])
        const stored = readValue(store, 'SELECT CAST(balance_micros AS TEXT) FROM wallet')
        expect(await stored).toBe(String(model))
        await close()
      },
    ),
    { numRuns: isOnPostgres ? 4 : 20, endOnFailure: true },
  )
})

test('a call takes its price and nothing else from a balance beyond 2^53 micro-units', async () => {
  const { id, adjust, ocs, call, key, request, flushCalls } = await reseller()
  for (let turn = 0; turn < 3; turn += 1) await adjust(8_999_999_999_999_999n)
  const before = 3n * 8_999_999_999_999_999n
  const token = await key()
  const asked = await request('/api/ocs/authorize?caller=8490&callee=84123&call_uuid=a', { token })
  expect(asked.body).toMatchObject({ granted_seconds: 60, reserved: 250_000 })
  expect(ocs.balanceOf(id)?.availableMicros).toBe(before - 250_000_000_000n)
  const report = { call_uuid: 'a', caller: '8490', callee: '84123', billsec: 61 }
  /** Answers wait for the group commit. */
  const reported = async () => {
    const answer = request('/api/ocs/cdr', { token, body: report })
    const flushing = setInterval(flushCalls, 5)
    return answer.finally(() => clearInterval(flushing))
  }
  // Just past its grant, and the wallet has more: the whole 61 s, in whole dong, rounded up.
  const cost = 254_167_000_000n
  expect((await reported()).body).toMatchObject({ cost: 254_167, duplicate: false })
  expect(ocs.balanceOf(id)?.balanceMicros).toBe(before - cost)
  const wallet = (await call('GET', `/customers/${id}`)).data<{ balance: string }>()
  expect(wallet.balance).toBe(moneyToDecimal(before - cost))
  expect((await reported()).body).toMatchObject({ cost: 254_167, duplicate: true })
  expect(await ocs.check()).toEqual([])
})

test.each(['9000000000.000001', '9007199254740993', 1e300, '1e12', '99999999999999999999'])(
  'an amount of %s cannot be held: it is refused with the largest that can',
  async (amount) => {
    const { call, id, ocs } = await reseller()
    const body = { amount, kind: 'topup', reason: 'x' }
    const answer = await call('POST', `/customers/${id}/wallet/adjust`, body)
    expect([answer.status, answer.text.includes('9000000000')]).toEqual([400, true])
    expect(ocs.balanceOf(id)?.balanceMicros).toBe(0n)
  },
)

test('a balance that 64 bits cannot hold is refused, and nothing moves', async () => {
  const { adjust, id, ocs, store } = await reseller()
  const full = 9_000_000_000_000_000_000n
  await runSql(
    store,
    `INSERT INTO ledger_entry (wallet_id, kind, amount_micros, balance_after_micros, ref, actor, created_at)
       VALUES (1, 'topup', ?, ?, 'all', 'test', 0)`,
    full,
    full,
  )
  await runSql(store, 'UPDATE wallet SET balance_micros = ?', full)
  await ocs.reloadCustomers()
  const answer = await adjust(1n)
  expect([answer.status, answer.code]).toEqual([409, 'balance_out_of_range'])
  expect((await adjust(-1n)).status).toBe(200)
  expect(ocs.balanceOf(id)?.balanceMicros).toBe(full - 1n)
  expect(await ocs.check()).toEqual([])
})

const stripe = new Stripe('sk_test_not_used')

const full = 9_000_000_000_000_000_000n

/** A customer whose wallet holds as much as can be stored. */
async function open() {
  const control = await openResources()
  const made = await control.call('POST', '/customers', { name: 'acme', balance: '1' })
  const { id } = made.data<{ id: number }>()
  await runSql(
    control.store,
    `INSERT INTO ledger_entry (wallet_id, kind, amount_micros, balance_after_micros, ref, actor, created_at)
     SELECT id, 'topup', ?, ?, 'all', 'test', 0 FROM wallet WHERE customer_id = ?`,
    full - 1_000_000n,
    full,
    id,
  )
  const fill = 'UPDATE wallet SET balance_micros = ? WHERE customer_id = ?'
  await runSql(control.store, fill, full, id)
  await control.ocs.reloadCustomers()

  const told = async (eventId: string, type: string, object: object) => {
    const facts = { currency: 'usd', metadata: { customer_id: String(id) } }
    const data = { object: { ...facts, ...object } }
    const payload = JSON.stringify({ id: eventId, object: 'event', created: 1, type, data })
    const timestamp = Math.floor(control.now() / 1_000)
    const signed = stripe.webhooks.generateTestHeaderString({ payload, secret, timestamp })
    const headers = { 'stripe-signature': signed }
    const answer = await control.request('/api/client/payments/webhook', { body: payload, headers })
    return [answer.status, answer.data<{ outcome: string } | undefined>()?.outcome]
  }
  const intent = (eventId: string, name: string) =>
    told(eventId, 'payment_intent.succeeded', { id: name, amount_received: 2_500 })
  const balance = () => control.ocs.balanceOf(id)?.balanceMicros
  return { ...control, id, told, intent, balance }
}

test('a payment that the wallet cannot hold is an alert and 200, and is never credited under any name', async () => {
  const { call, told, intent, balance, id, ocs } = await open()
  expect(await intent('evt_1', 'pi_1')).toEqual([200, 'alert'])
  expect(await intent('evt_1', 'pi_1')).toEqual([200, 'alert'])
  expect([balance(), await ocs.check()]).toEqual([full, []])
  const alerts = await call('GET', '/billing/alerts?kind=balance_out_of_range')
  expect(alerts.data()).toMatchObject([
    { customer_id: id, reference: 'pi_1', amount_exact: '25.00', resolved_at: null },
  ])

  const body = { amount: '-100', kind: 'adjust', reason: 'room' }
  expect((await call('POST', `/customers/${id}/wallet/adjust`, body)).status).toBe(200)
  expect(await intent('evt_1', 'pi_1')).toEqual([200, 'alert'])
  const session = { id: 'cs_1', payment_intent: 'pi_1', payment_status: 'paid' }
  expect(
    await told('evt_2', 'checkout.session.completed', { ...session, amount_total: 2_500 }),
  ).toEqual([200, 'alert'])
  expect(balance()).toBe(full - 100_000_000n)
  expect(await intent('evt_3', 'pi_2')).toEqual([200, 'credited'])
  expect([balance(), await ocs.check()]).toEqual([full - 75_000_000n, []])
})
