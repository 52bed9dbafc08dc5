import { expect, test } from 'vitest'
import type { SetStatus } from '../../../../schema/contracts/engine.ts'
import type { HistoryView, NodeHistoryView } from '../../../../control/observe/telemetry/telemetry-view.ts'
import { nodeStatus } from '../../../support/engine-views.ts'
import { openControl, type TestControl } from '../../../support/control.ts'

const setOf = (setId: number, latencies: Readonly<Record<number, number | null>>): SetStatus => ({
  setId,
  nodes: Object.entries(latencies).map(([nodeId, latencyMs]) => nodeStatus({
    nodeId: Number(nodeId),
    destination: `sip:10.0.0.${nodeId}:5060`,
    latencyMs,
  })),
})

function pass(control: TestControl, seconds: number): void {
  for (let second = 0; second < seconds; second += 1) {
    control.tick(1_000)
    control.telemetry.tick()
  }
}

const history = async (control: TestControl): Promise<HistoryView> =>
  (await control.request('/metrics/history', { token: await control.key() })).data()

test('each five seconds say what was counted in them', async () => {
  const control = await openControl()
  expect(await history(control)).toEqual({ interval_seconds: 5, samples: [] })
  control.engine.figures = { active_calls: 3, calls_total: 8, calls_answered_total: 6 }
  control.engine.postDialDelay = () => ({ boundsMs: [50], counts: [4, 2], sumMs: 420 })
  pass(control, 5)
  control.engine.figures = { active_calls: 1, calls_total: 12, calls_answered_total: 7 }
  pass(control, 5)
  expect((await history(control)).samples).toEqual([
    {
      at: '2026-01-01T00:00:05.000Z',
      active: 3,
      started: 11,
      ended: 8,
      answered: 6,
      post_dial_delay: { count: 6, sum_ms: 420 },
      spent: [],
      lag_p99_ms: 0,
    },
    {
      at: '2026-01-01T00:00:10.000Z',
      active: 1,
      started: 2,
      ended: 4,
      answered: 1,
      post_dial_delay: { count: 0, sum_ms: 0 },
      spent: [],
      lag_p99_ms: 0,
    },
  ])
})

test('what calls have cost is there by currency, exactly', async () => {
  const control = await openControl()
  const moved = (micros: bigint) => [
    { kind: 'debit' as const, currency: 'EUR', count: 1, amountMicros: micros },
    { kind: 'topup' as const, currency: 'EUR', count: 1, amountMicros: 9_000_000n },
  ]
  const { stats } = control.ocs
  control.ocs.stats = () => ({ ...stats.call(control.ocs), moved: moved(10_000n) })
  pass(control, 5)
  control.ocs.stats = () => ({ ...stats.call(control.ocs), moved: moved(10_001n) })
  pass(control, 10)
  const { samples } = await history(control)
  expect(samples.map(({ spent }) => spent)).toEqual([
    [{ currency: 'EUR', amount: '0.01' }],
    [{ currency: 'EUR', amount: '0.000001' }],
    [],
  ])
})

test("a tenant's credential sees the latencies of its own nodes, and no history", async () => {
  const control = await openControl()
  await control.tenant('other')
  const set = { endpoint_name: 'own', algorithm: 8, set_id: 7, tenant: 'other' }
  const body = { ...set, nodes: [{ host: '10.0.0.1' }] }
  expect((await control.request('/dispatcher', { token: await control.key(), body })).status).toBe(
    201,
  )
  control.engine.sets = [setOf(7, { 1: 2.5 }), setOf(8, { 2: 1, 3: null })]
  pass(control, 5)
  control.engine.sets = [setOf(7, { 1: null }), setOf(8, { 3: 4 })]
  pass(control, 5)
  const nodes = async (token: string) =>
    (await control.request('/metrics/nodes', { token })).data<NodeHistoryView>().nodes
  expect(await nodes(await control.key())).toEqual([
    { node_id: 1, latencies_ms: [2.5, null] },
    // Node 2 is gone.
    { node_id: 3, latencies_ms: [null, 4] },
  ])
  const token = await control.key({ tenant_scope: 'tenant', tenant_slug: 'other' })
  expect(await nodes(token)).toEqual([{ node_id: 1, latencies_ms: [2.5, null] }])
  expect((await control.request('/metrics/history', { token })).status).toBe(403)
  const poor = await control.key({ scopes: ['calls:read'] })
  expect((await control.request('/metrics/history', { token: poor })).status).toBe(403)
  expect((await control.request('/metrics/nodes', { token: poor })).status).toBe(403)
})
