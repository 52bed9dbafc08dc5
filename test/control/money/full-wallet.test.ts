import Stripe from 'stripe'
import { expect, test } from 'vitest'
import { paymentWebhookSecret as secret } from '../../support/control.ts'
import { openResources } from '../../support/resources.ts'
import { runSql } from '../../support/stored.ts'

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
