/** Makers of events, the outbox and alerts together: each by its own code, none by a fake. */
import Stripe from 'stripe'
import { expect, test } from 'vitest'
import { LostRegistrations } from '../../../engine/registrar/lost-registrations.ts'
import type { ProbedStatus } from '../../../schema/contracts/engine.ts'
import { alertRig, type SentAlert } from '../../support/alert-rig.ts'
import { paymentWebhookSecret as secret } from '../../support/control.ts'
import { ManualTime } from '../../support/manual-time.ts'
import { runSql } from '../../support/stored.ts'
import { openToolRig } from '../../support/tools-rig.ts'

const minute = 60_000
const node = 'sip:10.0.0.1:5060;transport=udp'
const stripe = new Stripe('sk_test_not_used')

const probed = (state: 'active' | 'probing'): ProbedStatus => ({
  state,
  latencyMs: null,
  lastProbe: { at: 0, status: 0, reason: 'no answer' },
  probes: { sent: 2, answered: 1, failed: 1 },
})

/** The platform and the tenant acme have a channel each. */
async function open() {
  const rig = await openToolRig()
  await runSql(rig.store, 'DELETE FROM cdr')
  const acme = await rig.key({ name: 'acme key', tenant_slug: 'acme' })
  const post = async (path: string, body: object, token = rig.root) => {
    const made = await rig.request(`/api/v1${path}`, { token, body })
    expect([made.status, made.text]).toEqual([201, made.text])
    return made.data<{ id: number } | undefined>()?.id ?? 0
  }
  const slack = { kind: 'slack', secret: 'https://hooks.example/x' }
  await post('/alert-channels', { ...slack, name: 'platform' })
  await post('/alert-channels', { ...slack, name: 'acme' }, acme)
  const rule = async (body: Readonly<Record<string, unknown>>, token = rig.root) => {
    const channels = [token === acme ? 'acme' : 'platform']
    await post(
      '/alert-rules',
      { name: String(body['on']), group_seconds: 0, channels, ...body },
      token,
    )
  }
  let gateway = probed('active')
  Object.assign(rig.engine, {
    trunks: { gatewayStatus: () => gateway, registrationOf: () => undefined },
  })
  const sent: SentAlert[] = []
  let runs = 0
  /** The lines that were told since the last time. */
  const told = async (seconds = 10): Promise<readonly string[]> => {
    const time = new ManualTime(rig.now())
    const { alerts, problems } = alertRig(rig.store, time, {
      instance: `run ${(runs += 1)}`,
      answer: async (alert) => {
        sent.push(alert)
        return { kind: 'sent' }
      },
    })
    await alerts.reload()
    alerts.start()
    for (let turn = 0; turn < seconds; turn += 1) {
      time.advance(1_000)
      await rig.store.settled()
    }
    await alerts.stop()
    expect(problems).toEqual([])
    return sent
      .splice(0)
      .flatMap(({ channel, message }) =>
        message.items.map(({ kind, text, path, ended }) =>
          [`${channel}: ${kind} ${path} ${text}`, ...(ended === undefined ? [] : [ended])].join(
            '. ',
          ),
        ),
      )
      .toSorted()
  }
  const passed = async (minutes: number) => {
    for (let each = 0; each < minutes; each += 1) {
      rig.tick(minute)
      await rig.findings.tick()
    }
  }
  await passed(1)
  const probe = async (state: 'active' | 'probing') => {
    gateway = probed(state)
    await rig.carriers.tick()
  }
  return { ...rig, acme, post, rule, told, passed, probe }
}

test('a carrier that falls silent and comes back is one alert, for its owner and the platform', async () => {
  const rig = await open()
  const gateways = [{ host: '192.0.2.9' }]
  const id = await rig.post('/routing/carriers', { name: 'north "1"', tenant: 'acme', gateways })
  await rig.rule({ on: 'carrier_down' })
  await rig.rule({ on: 'carrier_down', carrier: id }, rig.acme)
  await rig.probe('active')
  await rig.probe('probing')
  const text = `/console/carriers/${id} Carrier north "1" is out of service: no answer`
  expect(await rig.told()).toEqual([`acme: opened ${text}`, `platform: opened ${text}`])
  rig.tick(minute)
  await rig.probe('active')
  expect(await rig.told()).toEqual([`acme: recovered ${text}`, `platform: recovered ${text}`])
  await rig.probe('active')
  expect(await rig.told()).toEqual([])
})

test('an alert of a carrier that is deleted is over', async () => {
  const rig = await open()
  const gateways = [{ host: '192.0.2.9' }]
  const id = await rig.post('/routing/carriers', { name: 'north', gateways })
  await rig.rule({ on: 'carrier_down' })
  await rig.probe('active')
  await rig.probe('probing')
  const text = `/console/carriers/${id} Carrier north is out of service: no answer`
  expect(await rig.told()).toEqual([`platform: opened ${text}`])
  await rig.request(`/api/v1/routing/carriers/${id}`, { method: 'DELETE', token: rig.root })
  expect(await rig.told(90)).toEqual([`platform: recovered ${text}. The carrier was deleted`])
})

test('a finding that is closed closes its alert; one that is snoozed is told to the other side', async () => {
  const rig = await open()
  for (const token of [rig.root, rig.acme]) await rig.rule({ on: 'finding_opened' }, token)
  const set = (state: 'active' | 'probing') => rig.engine.dispatcher.setState(1, node, state)
  await set('probing')
  await rig.passed(1)
  const opened = await rig.told()
  expect(opened).toHaveLength(2)
  expect(opened[0]).toMatch(/^acme: opened \/console\/now Node sip:10\.0\.0\.1.*[^.]$/)
  const [finding] = (await rig.request('/api/v1/findings?kinds=node', { token: rig.root })).data<{
    findings: { id: number }[]
  }>().findings
  const snooze = { duration: 86_400, reason: 'rebuilt today' }
  const path = `/api/v1/findings/${finding?.id}/snooze`
  const snoozed = await rig.request(path, { token: rig.root, body: snooze })
  expect([snoozed.status, snoozed.text]).toEqual([200, snoozed.text])
  await set('active')
  await rig.passed(7)
  expect((await rig.told()).map((line) => line.replace(/ \/.*/, ''))).toEqual([
    'acme: recovered',
    'platform: recovered',
  ])
  await set('probing')
  await rig.passed(1)
  expect((await rig.told()).map((line) => line.replace(/ \/.*/, ''))).toEqual(['acme: opened'])
})

test('a finding about a carrier is found by a rule for this carrier, however it is named', async () => {
  const rig = await open()
  const name = 'north "1" \\'
  const gateways = [{ host: '192.0.2.9' }]
  await rig.post('/routing/carriers', { name, tenant: 'acme', gateways })
  await rig.post('/routing/carriers', {
    name: 'south',
    tenant: 'acme',
    gateways: [{ host: '192.0.2.8' }],
  })
  await rig.rule({ on: 'finding_opened', carrier: name }, rig.acme)
  await rig.rule({ on: 'finding_opened', carrier: 'south', name: 'other' }, rig.acme)
  const status = {
    ...{ routeId: 1, route: 'world', carrierId: 1, carrier: name, tenantId: 1, until: null },
    floors: { minAsr: 40, minAcdSeconds: null, maxPddMs: null, windowSeconds: 600, minCalls: 10 },
    figures: { attempts: 9, answered: 1, ended: 1, asr: 11, acdSeconds: 1, pddMs: 1 },
    ...{ state: 'low', since: rig.now() },
    fallen: {
      figures: { attempts: 9, answered: 1, ended: 1, asr: 11, acdSeconds: 1, pddMs: 1 },
      faults: ['asr'],
    },
  }
  Object.assign(rig.engine, { quality: { of: () => undefined, all: () => [status] } })
  await rig.passed(1)
  const told = await rig.told()
  expect(told).toEqual([expect.stringMatching(/^acme: opened .*is below the floors of route/)])
})

test('lost phones are told together, with their number, and one with its name', async () => {
  const rig = await open()
  for (const token of [rig.root, rig.acme]) await rig.rule({ on: 'registration_lost' }, token)
  const lost = new LostRegistrations({
    store: rig.store,
    now: rig.now,
    sink: rig.deps.webhooks.sink,
    log: () => undefined,
  })
  for (const extension of ['101', '102']) {
    const body = { extension, domain: 'acme.example', display_name: 'x', password: 'horse battery' }
    await rig.post('/pbx/extensions', body)
  }
  const lose = async (...ids: number[]) => {
    for (const id of ids)
      await runSql(
        rig.store,
        `INSERT INTO lost_registration
          (tenant_id, extension_id, domain, extension, contact, reason, at)
          VALUES (1, ${id}, 'acme.example', '10${id}', 'sip:x', 'expired', ${rig.now()})`,
      )
    rig.tick(20_000)
    await lost.tell()
  }
  await lose(1, 2)
  const two = 'opened /console/phones The registrations of 2 phones are lost'
  expect(await rig.told()).toEqual([`acme: ${two}`, `platform: ${two}`])
  await lose(2)
  const one = 'opened /console/phones The registration of 102@acme.example is lost: expired'
  expect(await rig.told()).toEqual([`acme: ${one}`, `platform: ${one}`])
})

/** An event of the payment provider, as it sends it. */
async function tellOfPayment(
  rig: Awaited<ReturnType<typeof open>>,
  id: string,
  type: string,
  object: object,
) {
  const event = { id, object: 'event', created: 1_700_000_000, type, data: { object } }
  const payload = JSON.stringify(event)
  const timestamp = Math.floor(rig.now() / 1_000)
  const header = stripe.webhooks.generateTestHeaderString({ payload, secret, timestamp })
  const answer = await rig.request('/api/client/payments/webhook', {
    body: payload,
    headers: { 'stripe-signature': header },
  })
  expect([type, answer.status]).toEqual([type, 200])
}

test('refunds, disputes and the end of a subscription are no payments that were not credited', async () => {
  const rig = await open()
  await rig.rule({ on: 'payment_not_credited' })
  const money = { amount: 2_500, currency: 'usd', payment_intent: 'pi_9', charge: 'ch_9' }
  const refund = { id: 're_9', object: 'refund', status: 'succeeded', ...money }
  await tellOfPayment(rig, 'evt_9', 'refund.created', refund)
  const dispute = { id: 'dp_9', object: 'dispute', reason: 'fraudulent', status: 'open', ...money }
  await tellOfPayment(rig, 'evt_10', 'charge.dispute.created', dispute)
  const subscription = { id: 'sub_9', object: 'subscription', metadata: {} }
  await tellOfPayment(rig, 'evt_11', 'customer.subscription.deleted', subscription)
  await tellOfPayment(rig, 'evt_12', 'refund.created', { id: 're_10' })
  const alerts = await rig.request('/api/v1/billing/alerts', { token: rig.root })
  expect(alerts.data<{ kind: string }[]>().map(({ kind }) => kind)).toEqual([
    'unreadable_event',
    'subscription_ended',
    'dispute',
    'refund',
  ])
  expect(await rig.told()).toEqual([])
})

test('a payment of nobody is told to the platform', async () => {
  const rig = await open()
  await rig.rule({ on: 'payment_not_credited' })
  await tellOfPayment(rig, 'evt_1', 'checkout.session.completed', {
    ...{ id: 'cs_1', object: 'checkout.session', payment_intent: 'pi_1' },
    ...{ payment_status: 'paid', amount_total: 2_500, currency: 'usd', metadata: {} },
  })
  expect(await rig.told()).toEqual([
    'platform: opened /console/payments A payment of 25.00 USD (evt_1) needs a person: the ' +
      'payment does not identify a single customer (no name given)',
  ])
})
