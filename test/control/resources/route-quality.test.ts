/** Floors of quality and shares of outbound routes, as the API takes and shows them. */
import { expect, test } from 'vitest'
import { partOf } from '../../../control/observe/events/event-view.ts'
import { findLowQuality } from '../../../control/observe/causes/find-low-quality.ts'
import { EventLog } from '../../../engine/event-log.ts'
import type { RouteQualityStatus } from '../../../schema/contracts/route-quality.ts'
import { openResources } from '../../support/resources.ts'

const carrier = { name: 'north', gateways: [{ host: '192.0.2.1' }] }
const route = { name: 'Germany', prefix: '49', carrier: 'north' }

const low: RouteQualityStatus = {
  routeId: 1,
  route: 'Germany',
  carrierId: 1,
  carrier: 'north',
  tenantId: 1,
  floors: { minAsr: 50, minAcdSeconds: null, maxPddMs: null, windowSeconds: 900, minCalls: 20 },
  state: 'low',
  figures: { attempts: 0, answered: 0, ended: 0, asr: null, acdSeconds: null, pddMs: null },
  since: 60_000,
  until: 960_000,
  fallen: {
    figures: {
      attempts: 21,
      answered: 4,
      ended: 3,
      asr: 400 / 21,
      acdSeconds: 61.26,
      pddMs: 2_000.4,
    },
    faults: ['asr'],
  },
}

test('floors are merged member by member, filled in, and taken away with null', async () => {
  const { call } = await openResources()
  await call('POST', '/routing/carriers', carrier)
  const created = await call('POST', '/outbound-routes', route)
  expect(created.data()).toMatchObject({
    distribution: 'weight',
    quality: null,
    quality_status: null,
  })
  const path = '/outbound-routes/1'
  const none = { min_asr: null, min_acd: null, max_pdd_ms: null }
  const first = await call('PATCH', path, { quality: { min_asr: 40 }, distribution: 'percent' })
  expect(first.data()).toMatchObject({
    distribution: 'percent',
    quality: { ...none, min_asr: 40, window: 900, min_calls: 20 },
  })
  await call('PATCH', path, { quality: { max_pdd_ms: 4_000, window: 60 } })
  const third = await call('PATCH', path, { quality: { min_asr: null, window: null } })
  expect(third.data()).toMatchObject({
    quality: { ...none, max_pdd_ms: 4_000, window: 900, min_calls: 20 },
  })
  expect((await call('PATCH', path, { quality: null })).data()).toMatchObject({ quality: null })
})

test.each([
  { quality: { min_asr: 101 } },
  { quality: { min_asr: 0 } },
  { quality: { min_asr: '40' } },
  { quality: { min_acd: 3_601 } },
  { quality: { max_pdd_ms: 99 } },
  { quality: { window: 59 } },
  { quality: { window: 86_401 } },
  { quality: { min_calls: 4 } },
  { quality: { min_calls: 1e9 } },
  { quality: { min_ner: 40 } },
  { quality: [] },
  { distribution: 'fair' },
  { distribution: null, weight: 0 },
])('%j is refused', async (wrong) => {
  const { call } = await openResources()
  await call('POST', '/routing/carriers', carrier)
  const answer = await call('POST', '/outbound-routes', { ...route, ...wrong })
  expect(answer.body).toMatchObject({ statusCode: 400 })
})

test('a route shows what its carrier’s calls have shown', async () => {
  const { call, engine } = await openResources()
  Object.assign(engine, {
    quality: { of: (id: number) => (id === 1 ? low : undefined), all: () => [low] },
  })
  await call('POST', '/routing/carriers', carrier)
  await call('POST', '/outbound-routes', { ...route, quality: { min_asr: 50 } })
  expect((await call('GET', '/outbound-routes/1')).data()).toMatchObject({
    quality_status: {
      state: 'low',
      since: '1970-01-01T00:01:00.000Z',
      until: '1970-01-01T00:16:00.000Z',
      figures: { attempts: 0, asr: null },
      fallen: { figures: { attempts: 21, asr: 19, acd: 61.3, pdd_ms: 2_000 }, below: ['asr'] },
    },
  })
})

test('gateways of a carrier share calls as the carrier says', async () => {
  const { call } = await openResources()
  const created = await call('POST', '/routing/carriers', { ...carrier, distribution: 'percent' })
  expect(created.data()).toMatchObject({ distribution: 'percent' })
  const patched = await call('PATCH', '/routing/carriers/1', { distribution: null })
  expect(patched.data()).toMatchObject({ distribution: 'weight' })
})

test('events and findings of a route are for its owner and for the platform alone', () => {
  const events = new EventLog(() => 60_000)
  events.add({ type: 'carrier.quality_low', tenantId: 1, quality: low, by: null })
  const seen = (tenantId: number | null) => partOf(events, { tenantId }, undefined).events
  expect(seen(2)).toEqual([])
  expect(seen(1)).toEqual(seen(null))
  expect(seen(1)).toMatchObject([
    {
      type: 'carrier.quality_low',
      data: { carrier: 'north', route: 'Germany', below: ['asr'], figures: { asr: 19 } },
    },
  ])
  const engine = { quality: { of: () => low, all: () => [low] } } as never
  const found = (tenantId: number | null) =>
    findLowQuality({ engine, tenantId }, { from: 0, before: 120_000 })
  expect(found(2)).toEqual([])
  expect(found(1)).toMatchObject([
    {
      kind: 'trunk',
      subject: 'carrier "north"',
      what:
        'carrier "north" is below the floors of route "Germany": ASR 19 % of 21 calls (at least ' +
        '50 %), since 1970-01-01T00:01:00.000Z; it is tried last until 1970-01-01T00:16:00.000Z.',
      figures: { asr: 19, attempts: 21 },
    },
  ])
})
