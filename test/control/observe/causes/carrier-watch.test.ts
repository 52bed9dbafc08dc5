/** Webhook events of carriers: out of service, back, and registrations that fail; each once. */
import { expect, test } from 'vitest'
import { CarrierWatch } from '../../../../control/observe/causes/carrier-watch.ts'
import type {
  CarrierRegistrationStatus,
  ProbedStatus,
} from '../../../../schema/contracts/engine.ts'
import type { RouteQualityStatus } from '../../../../schema/contracts/route-quality.ts'
import { readRows } from '../../../support/stored.ts'
import { openToolRig } from '../../../support/tools-rig.ts'

const probed = (state: 'active' | 'probing', answered = 1): ProbedStatus => ({
  state,
  latencyMs: null,
  lastProbe: { at: 0, status: 0, reason: 'no answer' },
  probes: { sent: 2, answered, failed: 1 },
})

const registration = (state: CarrierRegistrationStatus['state']): CarrierRegistrationStatus => ({
  state,
  registrar: 'sip:192.0.2.9:5060;transport=udp',
  expiresAt: null,
  nextAttemptAt: null,
  lastAnswer: { at: 0, status: 403, reason: 'Forbidden' },
})

const quality = (state: RouteQualityStatus['state']): RouteQualityStatus => ({
  routeId: 1,
  route: 'world',
  carrierId: 1,
  carrier: 'north',
  tenantId: null,
  floors: { minAsr: 40, minAcdSeconds: null, maxPddMs: null, windowSeconds: 600, minCalls: 10 },
  state,
  figures: { attempts: 0, answered: 0, ended: 0, asr: null, acdSeconds: null, pddMs: null },
  since: 0,
  until: null,
  fallen:
    state === 'good'
      ? null
      : {
          figures: { attempts: 9, answered: 1, ended: 1, asr: 11, acdSeconds: 1, pddMs: 1 },
          faults: ['asr'],
        },
})

async function openCarriers(body: object = {}) {
  const rig = await openToolRig()
  const made = await rig.request('/api/v1/routing/carriers', {
    token: rig.root,
    body: { name: 'north', tenant: 'acme', gateways: [{ host: '192.0.2.9' }], ...body },
  })
  expect(made.status).toBe(201)
  for (const [slug, token] of [
    ['platform', rig.root],
    ['acme', await rig.key({ tenant_slug: 'acme' })],
    ['other', await rig.key({ tenant_slug: 'other' })],
  ] as const) {
    const events = ['carrier.down', 'carrier.up', 'registration.lost']
    const hook = { url: `https://${slug}.example/`, events }
    expect((await rig.request('/api/v1/webhooks', { token, body: hook })).status).toBe(201)
  }
  let gateway: ProbedStatus | undefined = probed('active')
  let registered: CarrierRegistrationStatus | undefined
  let state: RouteQualityStatus['state'] = 'good'
  Object.assign(rig.engine, {
    trunks: { gatewayStatus: () => gateway, registrationOf: () => registered },
    quality: { of: () => undefined, all: () => [quality(state)] },
  })
  const told = async (of = 'platform') =>
    (
      await readRows<{ url: string; body: string }>(
        rig.store,
        `SELECT url, body FROM webhook_delivery AS d JOIN webhook_event AS e ON e.id = d.event_id
          JOIN webhook_endpoint AS w ON w.id = d.endpoint_id ORDER BY d.id`,
      )
    )
      .filter(({ url }) => url.includes(of))
      .map(({ body: text }) => JSON.parse(text) as { type: string; data: object })
  const types = async () => (await told()).map(({ type }) => type)
  await rig.carriers.tick()
  return {
    ...rig,
    told,
    types,
    probe: (next: ProbedStatus | undefined) => (gateway = next),
    register: (next: CarrierRegistrationStatus['state']) => (registered = registration(next)),
    judge: (next: RouteQualityStatus['state']) => (state = next),
  }
}

test('a carrier whose gateways fall silent is down, and up when one answers again', async () => {
  const rig = await openCarriers()
  rig.probe(probed('probing'))
  await rig.carriers.tick()
  await rig.carriers.tick()
  rig.tick(90_000)
  rig.probe(probed('active'))
  await rig.carriers.tick()
  expect(await rig.told()).toMatchObject([
    {
      type: 'carrier.down',
      data: { carrier_id: 1, carrier: 'north', cause: 'no_answer', reason: 'no answer' },
    },
    { type: 'carrier.up', data: { carrier: 'north', cause: null, down_seconds: 90 } },
  ])
  expect(await rig.told('acme')).toEqual(await rig.told())
  expect(await rig.told('other')).toEqual([])
})

test('a carrier that is taken out by hand, or does badly, is down for that cause', async () => {
  const rig = await openCarriers()
  const set = (is_active: boolean) =>
    rig.request('/api/v1/routing/carriers/1', {
      token: rig.root,
      method: 'PATCH',
      body: { is_active },
    })
  await set(false)
  await rig.carriers.tick()
  await set(true)
  await rig.carriers.tick()
  rig.judge('low')
  await rig.carriers.tick()
  // On trial: how it is now is not known yet.
  rig.judge('trial')
  await rig.carriers.tick()
  rig.judge('good')
  await rig.carriers.tick()
  expect(await rig.told()).toMatchObject([
    { type: 'carrier.down', data: { cause: 'by_hand' } },
    { type: 'carrier.up' },
    {
      type: 'carrier.down',
      data: { cause: 'quality', reason: 'Below the floors of route "world": asr' },
    },
    { type: 'carrier.up' },
  ])
})

test('several instances tell of it once, and so does one that starts anew after a crash', async () => {
  const rig = await openCarriers()
  const second = new CarrierWatch(rig.deps)
  await second.tick()
  rig.probe(probed('probing'))
  await Promise.all([rig.carriers.tick(), second.tick()])
  expect(await rig.types()).toEqual(['carrier.down'])
  // A new process has probed nothing yet.
  const third = new CarrierWatch(rig.deps)
  rig.probe(probed('active', 0))
  await third.tick()
  rig.probe(probed('probing', 0))
  await third.tick()
  expect(await rig.types()).toEqual(['carrier.down'])
  rig.probe(probed('active'))
  await third.tick()
  await second.tick()
  expect(await rig.types()).toEqual(['carrier.down', 'carrier.up'])
})

test('what changes while no process runs is told by the next one; an idle new carrier is no news', async () => {
  const rig = await openCarriers()
  const body = { name: 'idle', gateways: [{ host: '192.0.2.10' }], is_active: false }
  await rig.request('/api/v1/routing/carriers', { token: rig.root, body })
  await rig.carriers.tick()
  expect(await rig.types()).toEqual([])
  await rig.request('/api/v1/routing/carriers/1', {
    token: rig.root,
    method: 'PATCH',
    body: { is_active: false },
  })
  await new CarrierWatch(rig.deps).tick()
  expect(await rig.types()).toEqual(['carrier.down'])
})

test('a registration at a carrier that fails is lost once, until it was there again', async () => {
  const rig = await openCarriers()
  for (const state of ['registered', 'registering', 'failed', 'registering', 'failed'] as const) {
    rig.register(state)
    await rig.carriers.tick()
  }
  expect(await rig.told()).toMatchObject([
    {
      type: 'registration.lost',
      data: {
        of: 'carrier',
        count: 1,
        carrier_id: 1,
        carrier: 'north',
        reason: '403 Forbidden',
      },
    },
  ])
  for (const state of ['registered', 'failed'] as const) {
    rig.register(state)
    await rig.carriers.tick()
  }
  expect(await rig.types()).toEqual(['registration.lost', 'registration.lost'])
})

test('an event that cannot be written is told the next time', async () => {
  const rig = await openCarriers()
  let isFailing = true
  const watch = new CarrierWatch({
    ...rig.deps,
    webhooks: {
      write: (event) =>
        isFailing ? Promise.reject(new Error('no')) : rig.deps.webhooks.write(event),
    },
  })
  await watch.tick()
  rig.probe(probed('probing'))
  await watch.tick()
  isFailing = false
  await watch.tick()
  expect(await rig.types()).toEqual(['carrier.down'])
})
