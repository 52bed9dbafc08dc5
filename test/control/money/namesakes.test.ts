import Stripe from 'stripe'
import { expect, test } from 'vitest'
import { paymentWebhookSecret as secret } from '../../support/control.ts'
import { openResources } from '../../support/resources.ts'

const stripe = new Stripe('sk_test_not_used')

test.each([
  ['a name', { client_reference_id: 'acme' }],
  ['an address', { customer_details: { email: 'pay@acme.example' } }],
])('a payment by %s that customers of two tenants have is credited to neither', async (_, by) => {
  const control = await openResources()
  await control.tenant('other')
  const made: number[] = []
  for (const tenant of [null, 'other']) {
    const body = { name: 'acme', email: 'pay@acme.example', tenant }
    made.push((await control.call('POST', '/customers', body)).data<{ id: number }>().id)
  }
  const session = {
    id: 'cs_1',
    object: 'checkout.session',
    payment_intent: 'pi_1',
    payment_status: 'paid',
    amount_total: 2_500,
    currency: 'usd',
    ...by,
  }
  const type = 'checkout.session.completed'
  const payload = JSON.stringify({
    id: 'evt_1',
    object: 'event',
    created: 1,
    type,
    data: { object: session },
  })
  const outcome = async () => {
    const timestamp = Math.floor(control.now() / 1_000)
    const signed = stripe.webhooks.generateTestHeaderString({ payload, secret, timestamp })
    const headers = { 'stripe-signature': signed }
    const answer = await control.request('/api/client/payments/webhook', { body: payload, headers })
    return answer.data<{ outcome: string }>().outcome
  }
  const balances = () => made.map((id) => control.ocs.balanceOf(id)?.balanceMicros)
  expect(await outcome()).toBe('alert')
  expect(balances()).toEqual([0n, 0n])
  // An operator says whose it is: the other is renamed, and the payment sent again.
  await control.call('PATCH', `/customers/${made[1]}`, { name: 'another', email: null })
  expect(await outcome()).toBe('credited')
  expect(balances()).toEqual([25_000_000n, 0n])
})
