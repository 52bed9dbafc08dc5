import { expect, test } from 'vitest'
import type { SetStatus } from '../../../schema/contracts/engine.ts'
import type {
  TelemetryView,
  TenantTelemetryView,
  HistoryView,
  NodeHistoryView,
} from '../../../control/observe/telemetry/telemetry-view.ts'
import { metrics } from '../../../control/observe/telemetry/metrics.ts'
import { lastKnown } from '../../../control/observe/telemetry/telemetry.ts'
import { RecentLoad } from '../../../control/observe/telemetry/recent-load.ts'
import { DatabaseUnavailable } from '../../../schema/sql/failure.ts'
import { Storage } from '../../../schema/storage/storage.ts'
import { nodeStatus } from '../../support/engine-views.ts'
import { openControl, type TestControl } from '../../support/control.ts'
import { readFileSync } from 'node:fs'
import { FloodGuard } from '../../../engine/flood-guard/flood-guard.ts'

const path = '/api/v1/metrics/telemetry'

const set: SetStatus = {
  setId: 7,
  nodes: [
    nodeStatus({
      nodeId: 1,
      destination: 'sip:10.0.0.1:5060;transport=udp',
      latencyMs: 2.5,
      activeCalls: 3,
      probes: { sent: 12, answered: 11, failed: 1 },
    }),
    nodeStatus({
      nodeId: 2,
      destination: 'sip:"odd"\\:5060;transport=udp',
      state: 'probing',
      probes: { sent: 3, answered: 0, failed: 3 },
    }),
  ],
}

async function busy(): Promise<TestControl> {
  const control = await openControl()
  control.engine.sets = [set]
  control.engine.figures = {
    active_calls: 3,
    calls_total: 8,
    calls_answered_total: 6,
    calls_busy_total: 2,
    billed_seconds_total: 90,
    registered_contacts: 5,
    registered_extensions: 4,
    sip_clientTransactions: 9,
    guard_dropped_flood_total: 1,
  }
  control.engine.postDialDelay = () => ({ boundsMs: [50, 100], counts: [4, 2, 1], sumMs: 420 })
  control.engine.mos = () => ({ buckets: [{ le: 4.5, count: 2 }], sum: 8.5, calls: 2 })
  return control
}

test('telemetry adds up calls, nodes, registrations and billing', async () => {
  const control = await busy()
  const answer = await control.request(path, {
    token: await control.key({ scopes: ['metrics:read'] }),
  })
  expect(answer.status).toBe(200)
  const { calls, nodes, registrations, billing, engine, database } = answer.data<TelemetryView>()
  expect(calls).toMatchObject({ active: 3, total: 8, answered: 6 })
  expect(calls).toMatchObject({ asr_percent: 75, acd_seconds: 15, billed_seconds: 90 })
  expect(calls.by_disposition).toMatchObject({ ANSWERED: 6, BUSY: 2, 'NO ANSWER': 0 })
  expect(calls.post_dial_delay).toEqual({
    count: 7,
    average_ms: 60,
    sum_ms: 420,
    buckets: [
      { le_ms: 50, count: 4 },
      { le_ms: 100, count: 6 },
      { le_ms: null, count: 7 },
    ],
  })
  expect(calls.mos).toEqual({ count: 2, average: 4.25, sum: 8.5, buckets: [{ le: 4.5, count: 2 }] })
  expect(nodes.map(({ set_id, state, probes }) => [set_id, state, probes.failed])).toEqual([
    [7, 'active', 1],
    [7, 'probing', 3],
  ])
  expect(registrations).toEqual({ contacts: 5, extensions: 4 })
  expect(billing).toMatchObject({ authorizations_total: 0, moved: [], waiting_writes: 0 })
  expect(engine).toEqual({ sip_clientTransactions: 9, guard_dropped_flood_total: 1 })
  expect(database.bytes).toBeGreaterThan(0)
})

test('media relays are in the metrics', async () => {
  const control = await busy()
  const relay = {
    name: '10.0.0.9:2223',
    weight: 2,
    isAlive: true,
    latencyMs: 0.5,
    sessions: 7,
    outstanding: 1,
    requests: 40,
    timeouts: 2,
    errors: 3,
    restarts: 1,
  }
  const silent = { ...relay, name: '[::1]:2223', isAlive: false, latencyMs: null, sessions: null }
  control.engine.relays = () => [relay, silent]
  const { text } = await control.request('/metrics', { token: await control.key() })
  expect(text.match(/^tollgate_relay_(?:alive|latency|sessions).*$/gm)).toEqual([
    'tollgate_relay_alive{relay="10.0.0.9:2223"} 1',
    'tollgate_relay_alive{relay="[::1]:2223"} 0',
    'tollgate_relay_latency_seconds{relay="10.0.0.9:2223"} 0.0005',
    'tollgate_relay_sessions{relay="10.0.0.9:2223"} 7',
  ])
})

test("a tenant's key sees its own calls and the nodes of its own sets, and no metrics", async () => {
  const control = await busy()
  await control.tenant('other')
  const token = await control.key({ tenant_scope: 'tenant', tenant_slug: 'other' })
  const seen = (await control.request(path, { token })).data<TenantTelemetryView>()
  expect(seen).toEqual({ at: '2026-01-01T00:00:00.000Z', calls: { active: 0 }, nodes: [] })
  const own = { endpoint_name: 'own', algorithm: 8, set_id: 7, tenant: 'other' }
  await control.request('/dispatcher', {
    token: await control.key(),
    body: { ...own, nodes: [{ host: '10.0.0.1' }] },
  })
  const after = (await control.request(path, { token })).data<TenantTelemetryView>()
  expect(after.nodes).toHaveLength(2)
  expect((await control.request('/metrics', { token })).status).toBe(403)
})

/** One line of the exposition format. */
const sample =
  /^(?<name>[a-z_:][a-z0-9_:]*)(?:\{(?<labels>(?:[a-z_]+="(?:[^"\\\n]|\\[\\"n])*",?)*)\})? (?<value>[-+.\deInf]+)$/

test('metrics are well-formed Prometheus text, each announced once', async () => {
  const control = await busy()
  const answer = await control.request('/metrics', { token: await control.key() })
  expect(answer.headers.get('content-type')).toBe('text/plain; version=0.0.4; charset=utf-8')
  const announced = new Set<string>()
  for (const line of answer.text.trimEnd().split('\n')) {
    if (line.startsWith('# HELP ')) continue
    const [, type] = /^# TYPE (\w+) (?:counter|gauge|histogram|summary)$/.exec(line) ?? []
    if (type !== undefined) {
      expect([type, announced.has(type)]).toEqual([type, false])
      announced.add(type)
      continue
    }
    const name = sample.exec(line)?.groups?.['name'] ?? `not a sample: ${line}`
    expect(announced).toContain(name.replace(/(?<=delay_seconds|mos)_(bucket|sum|count)$/, ''))
  }
  for (const { name } of metrics) expect(announced).toContain(name)
  // As `promtool check metrics` wants it: quantiles belong to summaries, units are not abbreviated.
  expect(answer.text.match(/^\w+(?=\{[^}]*quantile=)/gm)).toEqual(
    Array(2).fill('tollgate_event_loop_lag_seconds'),
  )
  expect(answer.text).toContain('# TYPE tollgate_event_loop_lag_seconds summary\n')
  expect([...announced].filter((name) => /_(?:ms|millis\w*)(?:_|$)/.test(name))).toEqual([])
  expect(answer.text).toContain('tollgate_sip_client_transactions 9\n')
  expect(answer.text).toContain(
    '# TYPE tollgate_guard_dropped_flood_total counter\ntollgate_guard_dropped_flood_total 1\n',
  )
  expect(answer.text).toContain('tollgate_post_dial_delay_seconds_bucket{le="+Inf"} 7\n')
  expect(answer.text).toContain(
    'tollgate_node_state{set_id="7",destination="sip:\\"odd\\"\\\\:5060;transport=udp",state="probing"} 1\n',
  )
})

test('calls per second are of the last ten seconds, and so is the wait for long turns', () => {
  let started = 100
  let now = 0
  let reads = 0
  const percentiles = new Map([
    [0, 1e6],
    [90, 4e6],
    [100, 40e6],
  ])
  const loopDelay = { count: 2_000, percentiles, reset: () => (reads += 1) }
  const recent = new RecentLoad({ loopDelay, now: () => now, startedCalls: () => started })
  expect(recent.callsPerSecond()).toBe(0)
  for (let second = 0; second < 5; second += 1) {
    started += 20
    recent.tick()
  }
  expect(recent.callsPerSecond()).toBe(20)
  for (let second = 0; second < 10; second += 1) {
    now += 2_000
    recent.tick()
  }
  expect(recent.callsPerSecond()).toBe(0)
  // A tenth of 2,000 turns took 40 ms, 8 s of ten: half of the time nothing waits for over 15 ms.
  expect(recent.loopLag()).toEqual({ p50: 15, p99: 39.5 })
  expect(reads).toBe(1)
})

test('what waits for receivers of webhooks is measured', async () => {
  const control = await openControl()
  const token = await control.key()
  const read = async () => (await control.request(path, { token })).data<TelemetryView>().outbox
  expect(await read()).toEqual({
    call_reports: 0,
    webhook_deliveries: 0,
    webhook_oldest_seconds: null,
    alerts: 0,
    alerts_failed: 0,
  })
  const body = { url: 'https://hooks.example/x' }
  await control.request('/api/v1/webhooks', { token, body })
  await control.request('/api/v1/webhooks/1/test', { token, method: 'POST' })
  control.tick(2_500)
  expect(await read()).toMatchObject({ webhook_deliveries: 1, webhook_oldest_seconds: 2.5 })
  const text = (await control.request('/metrics', { token })).text
  expect(text).toContain('\ntollgate_outbox_webhook_deliveries 1\n')
  expect(text).toContain('\ntollgate_outbox_webhook_oldest_seconds 2.5\n')
})

const setOf = (setId: number, latencies: Readonly<Record<number, number | null>>): SetStatus => ({
  setId,
  nodes: Object.entries(latencies).map(([nodeId, latencyMs]) =>
    nodeStatus({
      nodeId: Number(nodeId),
      destination: `sip:10.0.0.${nodeId}:5060`,
      latencyMs,
    }),
  ),
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

const dashboard = readFileSync('control/grafana-dashboard.json', 'utf8')

/** The counts of the engine's guard arrive under its own names. */
function guardMetrics(): string[] {
  const guard = new FloodGuard({ now: () => 0, isExempt: () => false, log: () => undefined })
  return Object.keys(guard.telemetry()).map((name) => `tollgate_${name}`)
}

test('every metric that the Grafana dashboard names exists', () => {
  const known = new Set(
    metrics.flatMap(({ name, type }) =>
      type === 'histogram' ? [`${name}_bucket`, `${name}_sum`, `${name}_count`] : [name],
    ),
  )
  const named = dashboard.match(/\b(?:tollgate|process)_\w+/g) ?? []
  expect(named.length).toBeGreaterThan(25)
  const exists = new Set([...known, ...guardMetrics()])
  expect(named.filter((name) => !exists.has(name))).toEqual([])
})

const settingsPath = '/api/v1/settings'

test('an administrator of the platform sees the settings in force; a reader and a tenant do not', async () => {
  const control = await openControl()
  await control.tenant('acme')
  const ask = async (body: Readonly<Record<string, unknown>>) => {
    const answer = await control.request(settingsPath, { token: await control.key(body) })
    return [answer.status, answer.code]
  }
  const seen = await control.request(settingsPath, { token: await control.key() })
  const { settings } = seen.data<{
    settings: { name: string; is_secret: boolean; value: null }[]
  }>()
  expect(settings.find(({ name }) => name === 'DRAIN_SECONDS')).toMatchObject({
    value: '30',
    source: 'default',
    is_set: true,
  })
  expect(settings.filter(({ is_secret }) => is_secret).map(({ value }) => value)).not.toContain('')
  expect(await ask({ scopes: ['settings:view'] })).toEqual([200, undefined])
  expect(await ask({ scopes: ['*:read'] })).toEqual([403, 'insufficient_scope'])
  expect(await ask({ tenant_scope: 'tenant', tenant_slug: 'acme' })).toEqual([403, 'wrong_tenant'])
})

test('while the database is away, what was read last is told, and it is not asked', async () => {
  const storage = new Storage()
  const away = new DatabaseUnavailable('away')
  const results: unknown[] = [1, away, 2, new Error('a bug')]
  const read = lastKnown({ storage }, 0, async () => {
    const result = results.shift()
    if (typeof result !== 'number') throw result
    return result
  })
  expect([await read(), await read()]).toEqual([1, 1])
  storage.fileProblem = { code: 'database_gone', reason: 'gone' }
  expect([await read(), results.length]).toEqual([1, 2])
  storage.fileProblem = undefined
  expect(await read()).toBe(2)
  await expect(read()).rejects.toThrow('a bug')
})
