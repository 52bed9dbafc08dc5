/**
 * Payments over the front door: signed by Stripe's own library, seen in wallet, ledger and alerts.
 */
import fc from 'fast-check'
import Stripe from 'stripe'
import { expect, test } from 'vitest'
import { apiWith, paymentWebhookSecret as secret } from '../../support/control.ts'
import { openResources, type TestResources } from '../../support/resources.ts'
import { failing, readColumn, readValue } from '../../support/stored.ts'

const stripe = new Stripe('sk_test_not_used')

const path = '/api/client/payments/webhook'

let events = 0

const event = (type: string, object: object, id = `evt_${(events += 1)}`) => ({
  id,
  object: 'event',
  created: 1_700_000_000,
  type,
  data: { object },
})

function send(control: TestResources, body: object | string, options: { onEdge?: boolean } = {}) {
  const payload = typeof body === 'string' ? body : JSON.stringify(body)
  const timestamp = Math.floor(control.now() / 1_000)
  const header = stripe.webhooks.generateTestHeaderString({ payload, secret, timestamp })
  return control.request(path, {
    body: payload,
    headers: { 'stripe-signature': header },
    ...(options.onEdge === true && { app: control.edge }),
  })
}

const outcomeOf = async (control: TestResources, body: object) =>
  (await send(control, body)).data<{ outcome: string }>().outcome

/** A customer with a wallet in USD, and one in JPY. */
async function open() {
  const control = await openResources()
  await control.call('POST', '/rate-plans', { name: 'yen', currency: 'JPY' })
  await control.call('POST', '/rate-plans', { name: 'retail', currency: 'USD' })
  await control.call('POST', '/rates', {
    rate_plan: 'retail',
    prefix: '1',
    rate_per_minute: '0.60',
  })
  const made = await control.call('POST', '/customers', {
    name: 'acme',
    email: 'pay@acme.example',
    rate_plan: 'retail',
    numbers: ['15550001'],
  })
  const yen = await control.call('POST', '/customers', { name: 'nippon', rate_plan: 'yen' })
  const { id } = made.data<{ id: number }>()
  const balance = (customerId = id) => control.ocs.balanceOf(customerId)?.balanceMicros
  const alerts = async (query = '') =>
    (await control.call('GET', `/billing/alerts${query}`)).data<
      { id: number; kind: string; customer_id: number | null; reference: string; detail: string }[]
    >()
  return { ...control, id, yenId: yen.data<{ id: number }>().id, balance, alerts }
}

const session = (object: object = {}) => ({
  id: 'cs_1',
  object: 'checkout.session',
  payment_intent: 'pi_1',
  invoice: null,
  payment_status: 'paid',
  amount_total: 2_500,
  currency: 'usd',
  metadata: {},
  ...object,
})

const intent = (object: object = {}) => ({
  id: 'pi_1',
  object: 'payment_intent',
  amount_received: 2_500,
  currency: 'usd',
  latest_charge: 'ch_1',
  metadata: {},
  ...object,
})

const invoice = (object: object = {}) => ({
  id: 'in_1',
  object: 'invoice',
  amount_paid: 2_500,
  currency: 'usd',
  metadata: {},
  ...object,
})

test('a payment is in wallet and ledger, and pays for the very next call', async () => {
  const control = await open()
  const numbers = { caller: '15550001', callee: '1800' }
  const question = { callUuid: 'a', ...numbers, customerId: null, startedAt: control.now() }
  const before = await control.ocs.authorizeForNode(question)
  expect(before).toMatchObject({ kind: 'denied', code: 'insufficient_funds' })
  const metadata = { customer_id: String(control.id) }
  const answer = await send(control, event('checkout.session.completed', session({ metadata })))
  expect([answer.status, answer.data()]).toEqual([
    200,
    { received: true, event_id: expect.any(String), outcome: 'credited' },
  ])
  expect(await control.ocs.authorizeForNode(question)).toMatchObject({ kind: 'granted' })
  const ledger = await control.call('GET', `/customers/${control.id}/ledger`)
  expect(ledger.data()).toMatchObject([
    { kind: 'topup', amount_exact: '25.00', ref: 'payment:pi_1', actor: 'payment' },
  ])
  expect(await control.ocs.check()).toEqual([])
})

test('events of one payment that arrive at the same time credit it once', async () => {
  const control = await open()
  const metadata = { customer_id: String(control.id) }
  const paid = event('checkout.session.completed', session({ metadata }))
  const again = event('payment_intent.succeeded', intent({ metadata }))
  const outcomes = await Promise.all([paid, again, paid].map((each) => outcomeOf(control, each)))
  expect(outcomes.toSorted()).toEqual(['credited', 'duplicate', 'duplicate'])
  expect([control.balance(), await control.ocs.check()]).toEqual([25_000_000n, []])
})

test('the invoice of a subscription is credited by its number where no intent is named', async () => {
  const control = await open()
  const parent = { subscription_details: { metadata: { customer_id: String(control.id) } } }
  const body = event('invoice.paid', invoice({ parent }))
  const opened = event(
    'checkout.session.completed',
    session({ payment_intent: null, invoice: 'in_1', client_reference_id: 'acme' }),
  )
  expect(await outcomeOf(control, body)).toBe('credited')
  expect(await outcomeOf(control, opened)).toBe('duplicate')
  expect(await outcomeOf(control, event('invoice.paid', invoice({ id: 'in_2', parent })))).toBe(
    'credited',
  )
  expect(control.balance()).toBe(50_000_000n)
})

test('whatever comes late, doubled or out of order, every payment counts once', async () => {
  const control = await open()
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.tuple(fc.nat(3), fc.constantFrom('session', 'intent', 'invoice'), fc.boolean()), {
        maxLength: 15,
      }),
      async (told) => {
        const before = control.balance() ?? 0n
        const run = (events += 1)
        const metadata = { customer_id: String(control.id) }
        for (const [payment, kind, isResent] of told) {
          const pi = `pi_${run}_${payment}`
          const amount = 100 * (payment + 1)
          const object = {
            session: session({
              id: `cs_${pi}`,
              payment_intent: pi,
              amount_total: amount,
              metadata,
            }),
            intent: intent({
              id: pi,
              latest_charge: `ch_${pi}`,
              amount_received: amount,
              metadata,
            }),
            invoice: invoice({ id: `in_${pi}`, payment_intent: pi, amount_paid: amount, metadata }),
          }[kind]
          const types = {
            session: 'checkout.session.completed',
            intent: 'payment_intent.succeeded',
            invoice: 'invoice.paid',
          }
          const id = isResent ? `evt_${pi}_${kind}` : undefined
          const answer = await send(control, event(types[kind], object, id))
          expect(answer.status).toBe(200)
        }
        const payments = new Set(told.map(([payment]) => payment))
        const paid = [...payments].reduce((sum, payment) => sum + (payment + 1) * 1_000_000, 0)
        expect((control.balance() ?? 0n) - before).toBe(BigInt(paid))
        expect(await control.ocs.check()).toEqual([])
      },
    ),
    { numRuns: 60, seed: 1 },
  )
})

test.each([
  ['its id', (id: number) => session({ metadata: { customer_id: id } })],
  ['its id as a reference', (id: number) => session({ client_reference_id: String(id) })],
  ['its name as a reference', () => session({ client_reference_id: 'acme' })],
  ['its address', () => session({ customer_details: { email: 'Pay@Acme.example' } })],
  ['its older address', () => session({ customer_email: 'pay@acme.example' })],
])('a customer is found by %s', async (_, object) => {
  const control = await open()
  expect(await outcomeOf(control, event('checkout.session.completed', object(control.id)))).toBe(
    'credited',
  )
  expect(control.balance()).toBe(25_000_000n)
})

test('an id that is wrong is not mended by an address', async () => {
  const control = await open()
  const object = session({
    client_reference_id: '999',
    customer_details: { email: 'pay@acme.example' },
  })
  expect(await outcomeOf(control, event('checkout.session.completed', object))).toBe('alert')
  expect(control.balance()).toBe(0n)
})

test('a payment of an unknown customer is an alert; sent again, it is credited once the customer is there', async () => {
  const control = await open()
  const body = event('checkout.session.completed', session({ client_reference_id: 'newcomer' }))
  expect(await outcomeOf(control, body)).toBe('alert')
  expect(await outcomeOf(control, body)).toBe('alert')
  expect(await control.alerts('?state=open')).toMatchObject([
    { kind: 'unknown_customer', customer_id: null, reference: 'pi_1', amount_exact: '25.00' },
  ])
  const made = await control.call('POST', '/customers', { name: 'newcomer' })
  const { id } = made.data<{ id: number }>()
  expect(await outcomeOf(control, body)).toBe('credited')
  expect(await outcomeOf(control, body)).toBe('duplicate')
  expect(control.balance(id)).toBe(25_000_000n)
  expect(await control.alerts('?state=open')).toEqual([])
  expect(await control.alerts('?state=resolved')).toMatchObject([{ resolved_by: 'payment' }])
})

test.each([
  ['checkout.session.completed', session({ payment_status: 'unpaid' })],
  ['checkout.session.completed', session({ payment_status: 'no_payment_required' })],
  ['checkout.session.completed', session({ amount_total: 0 })],
  ['checkout.session.completed', session({ amount_total: null, currency: null })],
  ['payment_intent.succeeded', intent({ amount_received: 0 })],
  ['invoice.paid', invoice({ amount_paid: 0 })],
])('%s without money credits nothing', async (type, object) => {
  const control = await open()
  const told = { ...object, client_reference_id: 'acme', metadata: { customer_id: control.id } }
  expect(await outcomeOf(control, event(type, told))).toBe('ignored')
  expect(control.balance()).toBe(0n)
  expect(await control.alerts()).toEqual([])
})

test('yen have no smaller unit; another currency than the wallet’s is an alert', async () => {
  const control = await open()
  const metadata = { customer_id: String(control.yenId) }
  const yen = session({ metadata, currency: 'jpy', amount_total: 500 })
  expect(await outcomeOf(control, event('checkout.session.completed', yen))).toBe('credited')
  expect(control.balance(control.yenId)).toBe(500_000_000n)
  const dollars = intent({ id: 'pi_2', metadata, currency: 'usd' })
  expect(await outcomeOf(control, event('payment_intent.succeeded', dollars))).toBe('alert')
  expect(control.balance(control.yenId)).toBe(500_000_000n)
  expect(await control.alerts()).toMatchObject([
    { kind: 'currency_mismatch', customer_id: control.yenId, detail: 'the wallet is in JPY' },
  ])
})

test('two events of one payment that differ in the amount: the first counts, and an alert is created', async () => {
  const control = await open()
  const metadata = { customer_id: control.id }
  await send(control, event('payment_intent.succeeded', intent({ metadata })))
  const other = session({ metadata, amount_total: 9_900 })
  expect(await outcomeOf(control, event('checkout.session.completed', other))).toBe('alert')
  expect(control.balance()).toBe(25_000_000n)
  expect(await control.alerts()).toMatchObject([
    { kind: 'amount_mismatch', customer_id: control.id },
  ])
})

test('refunds and disputes of a payment are alerts for its customer, and take nothing', async () => {
  const control = await open()
  await send(
    control,
    event('payment_intent.succeeded', intent({ metadata: { customer_id: control.id } })),
  )
  const charge = {
    id: 'ch_1',
    payment_intent: 'pi_1',
    amount: 2_500,
    amount_refunded: 500,
    currency: 'usd',
  }
  await send(control, event('charge.refunded', charge))
  const dispute = {
    id: 'dp_1',
    charge: 'ch_1',
    amount: 2_500,
    currency: 'usd',
    reason: 'fraudulent',
  }
  await send(control, event('charge.dispute.created', { ...dispute, payment_intent: null }))
  await send(
    control,
    event('customer.subscription.deleted', { id: 'sub_1', metadata: { customer_id: control.id } }),
  )
  const customer_id = control.id
  expect(await control.alerts()).toMatchObject([
    { kind: 'subscription_ended', customer_id, reference: 'sub_1', amount: null },
    { kind: 'dispute', customer_id, reference: 'dp_1', amount_exact: '25.00' },
    { kind: 'refund', customer_id, reference: 'ch_1', amount_exact: '5.00', currency: 'USD' },
  ])
  expect(await control.alerts('?kind=dispute')).toMatchObject([
    { detail: 'charge.dispute.created dp_1 fraudulent' },
  ])
  expect(control.balance()).toBe(25_000_000n)
})

test('a refund that comes before its payment is an alert without a customer', async () => {
  const control = await open()
  const refund = { id: 're_1', payment_intent: 'pi_1', amount: 2_500, currency: 'usd' }
  expect(await outcomeOf(control, event('refund.created', refund))).toBe('alert')
  expect(await control.alerts()).toMatchObject([{ kind: 'refund', customer_id: null }])
})

test('an alert is settled by a person, once', async () => {
  const control = await open()
  await send(control, event('customer.subscription.deleted', { id: 'sub_1' }))
  const [alert] = await control.alerts()
  const settled = await control.call('POST', `/billing/alerts/${alert?.id}/resolve`)
  expect(settled.data()).toMatchObject({
    id: alert?.id,
    resolved_by: expect.stringMatching(/^key:/),
  })
  control.tick(1_000)
  const again = await control.call('POST', `/billing/alerts/${alert?.id}/resolve`)
  expect(again.data()).toEqual(settled.data())
  expect((await control.call('POST', '/billing/alerts/99/resolve')).status).toBe(404)
})

test('unknown kinds are 200 and leave nothing behind; unreadable ones of known kinds leave an alert', async () => {
  const control = await open()
  expect(await outcomeOf(control, event('price.created', { id: 'price_1' }))).toBe('ignored')
  expect(await outcomeOf(control, event('toString', { id: 'x' }))).toBe('ignored')
  const rows = () => readValue(control.store, 'SELECT count(*) FROM payment_event')
  expect(await rows()).toBe(0)
  const broken = event('payment_intent.succeeded', { id: 'pi_1', amount_received: 'much' })
  expect(await outcomeOf(control, broken)).toBe('alert')
  expect(await control.alerts()).toMatchObject([
    { kind: 'unreadable_event', detail: expect.stringContaining('amount_received') },
  ])
})

test('what is not signed, or no event, is 400 and changes nothing', async () => {
  const control = await open()
  const paid = event('payment_intent.succeeded', intent({ metadata: { customer_id: control.id } }))
  expect((await control.request(path, { body: paid })).code).toBe('invalid_signature')
  const stolen = { 'stripe-signature': 't=1,v1=00' }
  expect((await control.request(path, { body: paid, headers: stolen })).status).toBe(400)
  for (const body of ['', 'nonsense', '[]', '{"id":"evt_1"}'])
    expect([body, (await send(control, body)).code]).toEqual([body, 'validation_failed'])
  expect(control.balance()).toBe(0n)
})

test('without a secret payments are refused for now', async () => {
  const control = await open()
  const settings = { ...control.deps.settings, paymentWebhookSecret: undefined }
  const app = apiWith({ ...control.deps, settings })
  const answer = await control.request(path, { app, body: {} })
  expect([answer.status, answer.code]).toEqual([503, 'payments_not_configured'])
})

test('a payment that cannot be stored is not kept in memory either', async () => {
  const control = await open()
  const end = await failing(control.store, 'INSERT', 'payment_event')
  const paid = event('payment_intent.succeeded', intent({ metadata: { customer_id: control.id } }))
  expect((await send(control, paid)).status).toBe(500)
  expect([control.balance(), await control.ocs.check()]).toEqual([0n, []])
  await end()
  expect(await outcomeOf(control, paid)).toBe('credited')
  expect(control.balance()).toBe(25_000_000n)
})

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
  const paid = event('checkout.session.completed', session(by))
  const balances = () => made.map((id) => control.ocs.balanceOf(id)?.balanceMicros)
  expect(await outcomeOf(control, paid)).toBe('alert')
  expect(balances()).toEqual([0n, 0n])
  // An operator says whose it is: the other is renamed, and the payment sent again.
  await control.call('PATCH', `/customers/${made[1]}`, { name: 'another', email: null })
  expect(await outcomeOf(control, paid)).toBe('credited')
  expect(balances()).toEqual([25_000_000n, 0n])
})

const unpaid = (object: object = {}) => session({ payment_status: 'unpaid', ...object })

/** A direct debit: the session says whose it is, its intent that the money has arrived. */
function slowPayment(run: string, customerId: number) {
  const own = { id: `cs_${run}`, payment_intent: `pi_${run}` }
  const metadata = { customer_id: String(customerId) }
  return {
    completed: event('checkout.session.completed', unpaid({ ...own, metadata }), `evt_1_${run}`),
    arrived: event(
      'payment_intent.succeeded',
      intent({ id: `pi_${run}`, latest_charge: `ch_${run}` }),
      `evt_2_${run}`,
    ),
    succeeded: event(
      'checkout.session.async_payment_succeeded',
      session({ ...own, metadata }),
      `evt_3_${run}`,
    ),
    failed: event(
      'checkout.session.async_payment_failed',
      unpaid({ ...own, metadata }),
      `evt_4_${run}`,
    ),
  }
}

type SlowEvent = keyof ReturnType<typeof slowPayment>

/** Every sequence of these, with repetitions, up to a length. */
const sequencesOf = (of: readonly SlowEvent[], length: number): readonly SlowEvent[][] =>
  length === 0
    ? [[]]
    : [[], ...of.flatMap((first) => sequencesOf(of, length - 1).map((rest) => [first, ...rest]))]

test('a delayed payment is credited once, in whatever order and however often its events come', async () => {
  const control = await open()
  const sequences = sequencesOf(['completed', 'arrived', 'succeeded'], 4)
  for (const [index, sequence] of sequences.entries()) {
    const before = control.balance() ?? 0n
    const events = slowPayment(`${index}`, control.id)
    for (const name of sequence) expect((await send(control, events[name])).status).toBe(200)
    const told = new Set(sequence)
    const isCredited = told.has('succeeded') || (told.has('completed') && told.has('arrived'))
    const credited = (control.balance() ?? 0n) - before
    expect([sequence, credited]).toEqual([sequence, isCredited ? 25_000_000n : 0n])
    const alerts = (await control.alerts('?state=open')).filter(
      ({ reference }) => reference === `pi_${index}`,
    )
    const waits = !isCredited && told.has('arrived')
    expect([sequence, alerts.length]).toEqual([sequence, waits ? 1 : 0])
  }
  expect(await control.ocs.check()).toEqual([])
}, 60_000)

test('a delayed payment that fails credits nothing, in any order, and money that came all the same is shown', async () => {
  const control = await open()
  for (const [index, sequence] of sequencesOf(['completed', 'failed'], 3).entries()) {
    const events = slowPayment(`f${index}`, control.id)
    for (const name of sequence) expect(await outcomeOf(control, events[name])).not.toBe('credited')
  }
  expect([control.balance(), await control.alerts()]).toEqual([0n, []])
  const late = slowPayment('late', control.id)
  for (const name of ['completed', 'failed', 'arrived'] as const) await send(control, late[name])
  expect(await control.alerts('?state=open')).toMatchObject([
    { kind: 'unknown_customer', reference: 'pi_late' },
  ])
})

test('events that share no name with each other are of one payment by what a third one tells', async () => {
  const control = await open()
  const metadata = { customer_id: String(control.id) }
  const told = {
    intent: event('payment_intent.succeeded', intent({ id: 'pi_9', latest_charge: 'ch_9' })),
    invoice: event('invoice.paid', invoice({ id: 'in_9' })),
    session: event(
      'checkout.session.completed',
      unpaid({ payment_intent: null, invoice: 'in_9', metadata }),
    ),
    link: event('invoice.paid', invoice({ id: 'in_9', payment_intent: 'pi_9' })),
  }
  expect(await outcomeOf(control, told.intent)).toBe('alert')
  expect(await outcomeOf(control, told.invoice)).toBe('alert')
  expect(await outcomeOf(control, told.link)).toBe('alert')
  expect(await control.alerts('?state=open')).toHaveLength(2)
  expect(await outcomeOf(control, told.session)).toBe('credited')
  expect(await outcomeOf(control, told.intent)).toBe('duplicate')
  expect(control.balance()).toBe(25_000_000n)
  expect(await control.alerts('?state=open')).toEqual([])
})

const assign = (control: TestResources, id: number | undefined, body: object) =>
  control.call('POST', `/billing/alerts/${id}/assign`, body)

test('a person assigns an uncredited payment: it is credited once, whatever comes of it later', async () => {
  const control = await open()
  const { arrived, completed, succeeded } = slowPayment('a', control.yenId)
  await send(control, arrived)
  const [alert] = await control.alerts('?state=open')
  expect(alert).toMatchObject({ kind: 'unknown_customer', assignable: true })
  const assigned = await assign(control, alert?.id, { customer: 'acme' })
  expect([assigned.status, assigned.data()]).toMatchObject([
    200,
    { id: alert?.id, resolved_by: expect.stringMatching(/^key:/), assignable: false },
  ])
  expect(control.balance()).toBe(25_000_000n)
  const ledger = await control.call('GET', `/customers/${control.id}/ledger`)
  expect(ledger.data()).toMatchObject([
    { kind: 'topup', ref: 'payment:pi_a', actor: expect.stringMatching(/^key:/) },
  ])
  expect((await assign(control, alert?.id, { customer: control.id })).data()).toEqual(
    assigned.data(),
  )
  const other = await assign(control, alert?.id, { customer: control.yenId })
  expect([other.status, other.code]).toEqual([409, 'credited_before'])
  for (const late of [completed, arrived, succeeded])
    expect(await outcomeOf(control, late)).toMatch(/duplicate|ignored/)
  expect([control.balance(), control.balance(control.yenId)]).toEqual([25_000_000n, 0n])
  expect(await control.ocs.check()).toEqual([])
  const audit = await control.call('GET', '/audit?action=POST%20%2Fapi%2Fv1%2Fbilling')
  expect(audit.text).toContain('/billing/alerts/')
})

test('a payment in another currency, or refunded, is assigned with the amount that a person gives', async () => {
  const control = await open()
  await send(control, event('payment_intent.succeeded', intent({ currency: 'jpy' })))
  await send(
    control,
    event('charge.refunded', { id: 'ch_1', amount: 2_500, amount_refunded: 500, currency: 'jpy' }),
  )
  const [, alert] = await control.alerts('?state=open')
  expect(alert).toMatchObject({
    kind: 'unknown_customer',
    amount_exact: '2500.00',
    currency: 'JPY',
  })
  const wrong = await assign(control, alert?.id, { customer: control.id })
  expect([wrong.status, wrong.code]).toEqual([409, 'currency_mismatch'])
  const refunded = await assign(control, alert?.id, { customer: control.yenId })
  expect([refunded.status, refunded.code]).toEqual([409, 'payment_refunded'])
  for (const amount of [0, -1, '0.0000001', 'all'])
    expect((await assign(control, alert?.id, { customer: control.id, amount })).status).toBe(400)
  await assign(control, alert?.id, { customer: control.id, amount: '16.2' })
  expect(control.balance()).toBe(16_200_000n)
  const [refund] = await control.alerts('?state=open')
  expect(refund).toMatchObject({ kind: 'refund', assignable: false })
  expect((await assign(control, refund?.id, { customer: control.id })).code).toBe('not_assignable')
  expect((await assign(control, 99, { customer: control.id })).status).toBe(404)
  expect((await assign(control, refund?.id, { customer: 'nobody' })).status).toBe(400)
})

test('what a person has settled by hand is credited by no later event: the payment is shown again', async () => {
  const control = await open()
  const { arrived, succeeded } = slowPayment('h', control.id)
  await send(control, arrived)
  const [alert] = await control.alerts('?state=open')
  await control.call('POST', `/billing/alerts/${alert?.id}/resolve`)
  expect((await assign(control, alert?.id, { customer: 'acme' })).code).toBe('resolved_before')
  expect(await outcomeOf(control, succeeded)).toBe('alert')
  expect(control.balance()).toBe(0n)
  const [again] = await control.alerts('?state=open')
  expect(again).toMatchObject({
    kind: 'resolved_before',
    customer_id: control.id,
    assignable: true,
  })
  await assign(control, again?.id, { customer: 'acme' })
  expect([control.balance(), await control.alerts('?state=open')]).toEqual([25_000_000n, []])
})

test.each([
  ['its charge', 'charge.refunded', { id: 'ch_r', amount: 2_500, amount_refunded: 2_500 }],
  ['the refund', 'refund.created', { id: 're_r', amount: 2_500 }],
])(
  'a payment that %s says is refunded is credited by no later event, also once that is resolved',
  async (_, kind, refund) => {
    for (const firstOf of ['arrived', 'completed', null] as const) {
      const control = await open()
      const { arrived, completed, succeeded } = slowPayment('r', control.id)
      const events = { arrived, completed }
      if (firstOf !== null) await send(control, events[firstOf])
      await send(control, event(kind, { ...refund, payment_intent: 'pi_r', currency: 'usd' }))
      const [refunded] = await control.alerts('?state=open&kind=refund')
      await control.call('POST', `/billing/alerts/${refunded?.id}/resolve`)
      expect([firstOf, await outcomeOf(control, succeeded)]).toEqual([firstOf, 'alert'])
      expect(control.balance()).toBe(0n)
      const [alert] = await control.alerts('?state=open')
      expect(alert).toMatchObject({
        kind: 'resolved_before',
        customer_id: control.id,
        detail: '25.00 of it was refunded',
        assignable: true,
      })
      const whole = await assign(control, alert?.id, { customer: 'acme' })
      expect([whole.status, whole.code]).toEqual([409, 'payment_refunded'])
      await assign(control, alert?.id, { customer: 'acme', amount: '5' })
      expect(control.balance()).toBe(5_000_000n)
      expect(await outcomeOf(control, succeeded)).toBe('duplicate')
      expect(await control.ocs.check()).toEqual([])
    }
  },
)

test('of an invoice with many partial payments each one is known: none is credited again', async () => {
  const control = await open()
  const parts = Array.from({ length: 100 }, (_, index) => `pi_part_${index}`)
  const metadata = { customer_id: String(control.id) }
  const payments = { data: parts.map((payment_intent) => ({ payment: { payment_intent } })) }
  // Its session has told of it before.
  await send(
    control,
    event(
      'checkout.session.completed',
      unpaid({ payment_intent: null, invoice: 'in_1', metadata }),
    ),
  )
  expect(await outcomeOf(control, event('invoice.paid', invoice({ payments })))).toBe('credited')
  for (const id of parts) {
    const part = intent({ id, latest_charge: null, metadata, amount_received: 25 })
    expect(await outcomeOf(control, event('payment_intent.succeeded', part))).not.toBe('credited')
  }
  expect(control.balance()).toBe(25_000_000n)
})

test('a payment that a person has credited with another amount is compared with what was paid', async () => {
  const control = await open()
  const lost = event(
    'payment_intent.succeeded',
    intent({ currency: 'eur', amount_received: 1_000 }),
  )
  await send(control, lost)
  const [alert] = await control.alerts('?state=open')
  await assign(control, alert?.id, { customer: 'acme', amount: '11' })
  const invoiced = { payment_intent: 'pi_1', currency: 'eur', amount_paid: 1_000 }
  for (const each of [lost, event('invoice.paid', invoice(invoiced))])
    expect(await outcomeOf(control, each)).toBe('duplicate')
  expect([control.balance(), await control.alerts('?state=open')]).toEqual([11_000_000n, []])
  const other = event('invoice.paid', invoice({ ...invoiced, amount_paid: 1_200 }))
  expect(await outcomeOf(control, other)).toBe('alert')
  expect(await control.alerts('?state=open')).toMatchObject([
    { kind: 'amount_mismatch', detail: 'payment:pi_1 counts as paid with 10.00' },
  ])
})

test('each new alert is an event, for webhooks and for who follows the stream, and a repetition is none', async () => {
  const control = await open()
  const body = { url: 'https://books.example/hook', events: ['payment.alert'] }
  expect((await control.call('POST', '/webhooks', body)).status).toBe(201)
  const lost = event('payment_intent.succeeded', intent())
  for (const each of [lost, lost, event('invoice.paid', invoice({ payment_intent: 'pi_1' }))])
    expect(await outcomeOf(control, each)).toBe('alert')
  const [alert] = await control.alerts()
  expect(control.engine.told).toEqual([
    { type: 'payment.alert', tenantId: null, alertId: alert?.id, kind: 'unknown_customer' },
  ])
  const bodies = await readColumn(control.store, 'SELECT body FROM webhook_event')
  expect(bodies.map((text) => JSON.parse(String(text)) as object)).toEqual([
    { type: 'payment.alert', timestamp: expect.any(String), data: alert },
  ])
})

test('what is known of a payment whose money never comes is forgotten after three months', async () => {
  const control = await open()
  const rows = () =>
    readColumn(control.store, 'SELECT reference FROM open_payment ORDER BY reference')
  await send(control, slowPayment('old', control.id).completed)
  expect(await rows()).toEqual(['cs_old', 'pi_old'])
  control.tick(91 * 86_400_000)
  await send(control, slowPayment('new', control.id).completed)
  expect(await rows()).toEqual(['cs_new', 'pi_new'])
})

test('a payment whose money does not come for two weeks is an alert, once, until it comes or fails', async () => {
  const control = await open()
  await control.call('POST', '/webhooks', {
    url: 'https://books.example/hook',
    events: ['payment.alert'],
  })
  const days = async (count: number) => {
    control.tick(count * 86_400_000)
    await Promise.all([control.payments?.tellWaiting(), control.payments?.tellWaiting()])
  }
  const [late, lost] = [slowPayment('late', control.id), slowPayment('lost', control.id)]
  await send(control, late.completed)
  await send(control, lost.completed)
  // A refund of a payment that nobody knows waits for nothing.
  await send(control, event('charge.refunded', { id: 'ch_9', amount: 2_500, currency: 'usd' }))
  await days(13)
  expect(await control.alerts('?kind=not_arrived')).toEqual([])
  await days(2)
  await days(1)
  const told = await control.alerts('?kind=not_arrived&state=open')
  expect(told.map(({ reference }) => reference).toSorted()).toEqual(['pi_late', 'pi_lost'])
  expect(told[0]).toMatchObject({ customer_id: control.id, assignable: false })
  const waiting = control.engine.told.filter(
    (each) => 'kind' in each && each.kind === 'not_arrived',
  )
  expect(waiting).toHaveLength(2)
  expect((await assign(control, told[0]?.id, { customer: 'acme' })).status).toBe(409)
  await send(control, late.arrived)
  await send(control, lost.failed)
  expect(control.balance()).toBe(25_000_000n)
  expect(await control.alerts('?kind=not_arrived&state=open')).toEqual([])
  await days(20)
  expect(await control.alerts('?kind=not_arrived')).toHaveLength(2)
  const bodies = await readColumn(control.store, 'SELECT body FROM webhook_event')
  expect(bodies.filter((text) => String(text).includes('not_arrived'))).toHaveLength(2)
})

test('a payment that is not credited is a finding until it is, and only the platform sees it', async () => {
  const control = await open()
  await control.tenant('acme')
  const found = async (path = '/anomalies?kinds=payment') =>
    (await control.call('GET', path)).data<{ findings: { what: string }[] }>().findings
  expect(await found()).toEqual([])
  await send(control, event('payment_intent.succeeded', intent()))
  control.tick(1_000)
  expect(await found('/anomalies')).toMatchObject([
    {
      kind: 'payment',
      severity: 'high',
      what: expect.stringMatching(/^payment "pi_1" of 25\.00 USD is not credited: /),
      evidence: ['pi_1'],
      first_step: null,
      handled_by: null,
    },
  ])
  // However long it waits.
  control.tick(30 * 86_400_000)
  expect(await found()).toHaveLength(1)
  const ofTenant = await control.callAs('acme', 'GET', '/anomalies?kinds=payment')
  expect(ofTenant.data()).toMatchObject({ findings: [] })
  const [alert] = await control.alerts()
  await assign(control, alert?.id, { customer: 'acme' })
  expect(await found()).toEqual([])
  await send(control, event('charge.refunded', { id: 'ch_1', amount: 2_500, currency: 'usd' }))
  control.tick(1)
  expect(await found()).toMatchObject([
    { severity: 'medium', what: expect.stringContaining('is refunded') },
  ])
})

test('money that is not credited is shown before what was taken back, and what is left out is counted', async () => {
  const control = await open()
  await send(control, event('payment_intent.succeeded', intent()))
  for (let index = 0; index < 25; index += 1)
    await send(control, event('customer.subscription.deleted', { id: `sub_${index}` }))
  control.tick(1_000)
  const answer = await control.call('GET', '/anomalies?kinds=payment&limit=200')
  const { findings, total } = answer.data<{ total: number; findings: { what: string }[] }>()
  expect([findings.length, total]).toEqual([21, 21])
  expect(findings[0]?.what).toContain('payment "pi_1" of 25.00 USD is not credited')
  expect(findings.at(-1)).toMatchObject({
    subject: 'payment alerts',
    what: '6 more payment alerts are open.',
    figures: { alerts: 6 },
  })
})
