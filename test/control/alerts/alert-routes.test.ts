/** Alert channels, rules and the log by REST; receivers are real and on loopback. */
import { Webhook } from 'standardwebhooks'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { openAlertSender } from '../../../control/alerts/alert-sender.ts'
import { Alerts } from '../../../control/alerts/alerts.ts'
import { httpReceiver, mailServer } from '../../support/alert-receivers.ts'
import { nodeEvent } from '../../support/alert-rig.ts'
import { apiWith, openControl } from '../../support/control.ts'
import { transaction } from '../../../schema/sql/query.ts'
import { readRows } from '../../support/stored.ts'
import { eventually } from '../../support/waiting.ts'

const schedule = (work: () => void, delayMs: number) => {
  const timer = setTimeout(work, delayMs)
  return () => clearTimeout(timer)
}

const closers: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closers.splice(0).toReversed()) await close()
})

async function open({ allowPrivate = true } = {}) {
  const base = await openControl()
  const { store, randomBytes } = base.deps
  const clocks = { now: Date.now, steadyNow: Date.now }
  const sender = openAlertSender({
    ...clocks,
    schedule,
    allowPrivate,
    resolve: async () => [{ address: '127.0.0.1', family: 4 }],
    publicUrl: 'https://pbx.example',
    installation: undefined,
  })
  const alerts = new Alerts({
    ...clocks,
    store,
    sender,
    schedule,
    randomBytes,
    random: Math.random,
    instance: { name: 'a' },
    disks: async () => [],
    instances: () => [{ name: 'a', state: 'serving', heartbeatAt: 0 }],
    log: () => undefined,
  })
  alerts.start()
  closers.push(() => alerts.stop())
  const settings = { ...base.deps.settings, allowsPrivateTargets: allowPrivate }
  const app = apiWith({ ...base.deps, ...clocks, alerts, settings })
  const token = await base.key()
  const call = (method: string, path: string, body?: unknown, as = token) =>
    base.request(`/api/v1${path}`, { app, token: as, method, body })
  const write = (...events: Parameters<typeof nodeEvent>[]) =>
    transaction(store, () => alerts.sink.writeAll(events.map((each) => nodeEvent(...each))))
  return { ...base, alerts, call, write }
}

let world: Awaited<ReturnType<typeof open>>
beforeEach(async () => {
  world = await open()
})

const mailOf = (port: number) => ({
  name: 'noc',
  kind: 'email',
  to: ['noc@example.com', 'night@example.com'],
  from: 'pbx@example.com',
  smtp_host: 'mail.example.com',
  smtp_port: port,
  smtp_tls: 'none',
})

test('a node that goes and comes back is told by e-mail, and the log says so', async () => {
  const { call, write } = world
  const server = await mailServer()
  closers.push(server.close)
  const made = await call('POST', '/alert-channels', mailOf(server.port))
  expect(made.status).toBe(201)
  const { id } = made.data<{ id: number }>()
  const rule = { name: 'Nodes', on: 'node_down', channels: ['noc'], group_seconds: 0 }
  expect((await call('POST', '/alert-rules', rule)).status).toBe(201)
  await write(['10.0.0.1', 'down'])
  await eventually(() => expect(server.mails).toHaveLength(1))
  const [mail] = server.mails
  expect(mail?.to).toEqual(['noc@example.com', 'night@example.com'])
  expect(mail?.from).toBe('pbx@example.com')
  expect(mail?.text).toMatch(/^Subject: \[warning\] Nodes: Node sip:10\.0\.0\.1 of dispatcher/m)
  expect(mail?.text).toMatch(/^Message-ID: <alert-[0-9a-f.]+@example\.com>/im)
  expect(mail?.text).toContain('https://pbx.example/console/nodes')
  expect(mail?.text).toMatch(/Since \d{4}-\d\d-\d\d \d\d:\d\d UTC\./)
  await write(['10.0.0.1', 'up'])
  await eventually(() => expect(server.mails).toHaveLength(2))
  expect(server.mails[1]?.text).toContain('Subject: [over] Nodes: Over: Node')
  await eventually(async () => {
    const [alert] = (await call('GET', '/alerts')).data<Record<string, unknown>[]>()
    expect(alert).toMatchObject({ rule: 'Nodes', state: 'closed', closed_by: 'recovery' })
    expect(alert?.['deliveries']).toEqual(
      ['opened', 'recovered'].map(
        (tells) =>
          expect.objectContaining({
            tells,
            channel: 'noc',
            channel_id: id,
            state: 'sent',
          }) as unknown,
      ),
    )
  })
  const { id: alertId } = (await call('GET', '/alerts?state=closed')).data<
    { id: number }[]
  >()[0] ?? {
    id: 0,
  }
  expect((await call('GET', `/alerts/${alertId}`)).data<{ id: number }>().id).toBe(alertId)
  expect((await call('GET', '/alerts?state=open')).data<unknown[]>()).toEqual([])
})

test('Slack, PagerDuty and a webhook get what their documents say', async () => {
  const { call, write } = world
  const receiver = await httpReceiver()
  closers.push(receiver.close)
  const { url } = receiver
  const key = '0123456789abcdef0123456789abcdef'
  const channels = [
    { name: 'slack', kind: 'slack', secret: `${url}/services/T/B/x` },
    { name: 'pd', kind: 'pagerduty', url: `${url}/v2/enqueue`, secret: key },
    { name: 'hook', kind: 'webhook', url: `${url}/hook` },
  ]
  const secrets: unknown[] = []
  for (const channel of channels) {
    const made = await call('POST', '/alert-channels', channel)
    expect([channel.name, made.status]).toEqual([channel.name, 201])
    secrets.push(made.data<{ secret?: string }>().secret)
  }
  expect(secrets).toEqual([undefined, undefined, expect.stringMatching(/^whsec_/)])
  const names = channels.map(({ name }) => name)
  const rule = { name: 'N', on: 'node_down', severity: 'critical', channels: names }
  await call('POST', '/alert-rules', { ...rule, group_seconds: 0 })
  await write(['<b>&', 'down'])
  await eventually(() => expect(receiver.posts).toHaveLength(3))
  await write(['<b>&', 'up'])
  await eventually(() => expect(receiver.posts).toHaveLength(6))
  const bodiesAt = (path: string) =>
    receiver.posts.filter((post) => post.path === path).map(({ body }) => JSON.parse(body) as never)
  const [slack] = bodiesAt('/services/T/B/x') as { text: string }[]
  expect(slack?.text).toMatch(/^:rotating_light: \*\[critical\] N: Node sip:&lt;b&gt;&amp;/)
  const events = bodiesAt('/v2/enqueue') as Record<string, string>[]
  expect(events.map(({ event_action }) => event_action)).toEqual(['trigger', 'resolve'])
  expect(events.map(({ routing_key }) => routing_key)).toEqual([key, key])
  expect(new Set(events.map(({ dedup_key }) => dedup_key)).size).toBe(1)
  const hook = receiver.posts.find(({ path }) => path === '/hook')
  const verified = new Webhook(String(secrets[2])).verify(
    hook?.body ?? '',
    hook?.headers as Record<string, string>,
  )
  expect(verified).toMatchObject({
    type: 'alert.changed',
    data: { rule: 'N', severity: 'critical', alerts: [{ state: 'open' }] },
  })
})

test('a test says at once whether it was delivered, and why not', async () => {
  const { call } = world
  const server = await mailServer({ authOptional: true })
  closers.push(server.close)
  const { data } = await call('POST', '/alert-channels', mailOf(server.port))
  const { id } = data<{ id: number }>()
  const tested = await call('POST', `/alert-channels/${id}/test`)
  expect([tested.status, tested.data()]).toEqual([200, { is_delivered: true, error: null }])
  expect(server.mails[0]?.text).toContain('Subject: [test] This is a test')
  await server.close()
  closers.pop()
  const failed = await call('POST', `/alert-channels/${id}/test`)
  expect(failed.data()).toEqual({
    is_delivered: false,
    error: expect.stringContaining('ECONNREFUSED') as unknown,
  })
  expect((await call('POST', '/alert-channels/99/test')).status).toBe(404)
})

test('no answer shows a secret, and none goes to another server than it was given for', async () => {
  const { call, store } = world
  const body = { ...mailOf(2525), smtp_tls: 'starttls', smtp_user: 'pbx', secret: 'hunter-two' }
  const { data } = await call('POST', '/alert-channels', body)
  const { id } = data<{ id: number }>()
  const answers = [
    await call('GET', '/alert-channels'),
    await call('GET', `/alert-channels/${id}`),
    await call('PATCH', `/alert-channels/${id}`, { name: 'night' }),
    await call('GET', '/changes'),
    await call('GET', '/audit'),
  ]
  for (const answer of answers) expect(answer.text).not.toContain('hunter-two')
  const [row] = await readRows<{ secret: string }>(store, 'SELECT secret FROM alert_channel')
  expect(row?.secret).toMatch(/^enc1:/)
  for (const move of [
    { smtp_host: 'evil.example.com' },
    { smtp_port: 2526 },
    { smtp_tls: 'tls' },
  ]) {
    const moved = await call('PATCH', `/alert-channels/${id}`, move)
    expect([moved.status, moved.body]).toEqual([
      400,
      expect.objectContaining({
        details: [
          { path: 'secret', message: expect.stringContaining('required again') as unknown },
        ],
      }),
    ])
  }
  const move = { smtp_host: 'other.example.com', secret: 'another' }
  expect((await call('PATCH', `/alert-channels/${id}`, move)).status).toBe(200)
})

test.each([
  [{ kind: 'email', to: ['a\r\nBcc: x@example.com'] }, 'to.0'],
  [{ kind: 'email', to: ['a@example.com'], from: 'x' }, 'from'],
  [{ kind: 'email' }, 'to'],
  [{ kind: 'email', to: ['a@example.com'], url: 'https://a.example' }, 'url'],
  [{ kind: 'email', to: ['a@example.com'], smtp_port: 25 }, 'smtp_port'],
  [{ kind: 'email', to: ['a@b.example'], smtp_host: '10.0.0.1', from: 'a@b.example' }, 'smtp_host'],
  [{ kind: 'slack' }, 'secret'],
  [{ kind: 'slack', secret: 'http://127.0.0.1/x' }, 'secret'],
  [{ kind: 'pagerduty', secret: 'no key' }, 'secret'],
  [{ kind: 'webhook' }, 'url'],
  [{ kind: 'webhook', url: 'http://169.254.169.254/' }, 'url'],
  [{ kind: 'webhook', url: 'https://a.example', secret: 'weak' }, 'secret'],
])('a channel is refused that nobody may be sent to: %j', async (body, path) => {
  const { call } = await open({ allowPrivate: false })
  const refused = await call('POST', '/alert-channels', { name: 'x', ...body })
  expect([refused.status, refused.body]).toEqual([
    400,
    expect.objectContaining({ details: [expect.objectContaining({ path }) as unknown] }),
  ])
})

test.each([
  [{ on: 'asr_below' }, 'threshold'],
  [{ on: 'asr_below', threshold: 101 }, 'threshold'],
  [{ on: 'node_down', threshold: 1 }, 'threshold'],
  [{ on: 'node_down', least_severity: 'high' }, 'least_severity'],
  [{ on: 'balance_below', threshold: 1, node: 'sip:x' }, 'node'],
  [{ on: 'node_down', channels: ['nobody'] }, 'channels.0'],
  [
    { on: 'node_down', quiet_hours: { from: '22:00', to: '22:00', time_zone: 'UTC' } },
    'quiet_hours.to',
  ],
])('a rule is refused that would look at nothing: %j', async (body, path) => {
  const { call } = world
  const slack = { name: 'noc', kind: 'slack', secret: 'https://hooks.example/x' }
  await call('POST', '/alert-channels', slack)
  const refused = await call('POST', '/alert-rules', { name: 'x', channels: ['noc'], ...body })
  expect([refused.status, refused.body]).toEqual([
    400,
    expect.objectContaining({ details: [expect.objectContaining({ path }) as unknown] }),
  ])
})

test('whoever may not read something is not told of it by a rule', async () => {
  const { call, key } = world
  const slack = { name: 'noc', kind: 'slack', secret: 'https://hooks.example/x' }
  await call('POST', '/alert-channels', slack)
  const writer = await key({ name: 'writer', scopes: ['webhooks:read', 'webhooks:write'] })
  const rule = { name: 'r', on: 'balance_below', threshold: 1, channels: ['noc'] }
  expect((await call('POST', '/alert-rules', rule, writer)).status).toBe(403)
  const reader = await key({ name: 'reader', scopes: ['webhooks:*', 'wallets:read'] })
  expect((await call('POST', '/alert-rules', rule, reader)).status).toBe(201)
})

test('a channel stays while a rule uses it; undo takes back a change of a rule', async () => {
  const { call } = world
  const slack = { name: 'noc', kind: 'slack', secret: 'https://hooks.example/x' }
  const { id } = (await call('POST', '/alert-channels', slack)).data<{ id: number }>()
  const rule = { name: 'r', on: 'node_down', channels: ['noc'], severity: 'critical' }
  const made = (await call('POST', '/alert-rules', rule)).data<{ id: number }>()
  expect((await call('DELETE', `/alert-channels/${id}`)).status).toBe(409)
  const changed = await call('PATCH', `/alert-rules/${made.id}`, {
    severity: 'info',
    quiet_hours: { from: '22:00', to: '07:00', time_zone: 'Europe/Berlin' },
  })
  expect(changed.status).toBe(200)
  const change = changed.headers.get('x-change-id') ?? ''
  const undone = await call('POST', `/changes/${change}/undo`, { reason: 'a mistake' })
  expect(undone.status).toBe(200)
  const [back] = (await call('GET', '/alert-rules')).data<Record<string, unknown>[]>()
  expect(back).toMatchObject({ severity: 'critical', channels: ['noc'], quiet_hours: null })
  expect((await call('DELETE', `/alert-rules/${made.id}`)).status).toBe(200)
  expect((await call('DELETE', `/alert-channels/${id}`)).status).toBe(200)
})

test('a tenant sees and uses its own channels and alerts alone', async () => {
  const { call, tenant, key, write } = world
  const slack = { kind: 'slack', secret: 'https://hooks.example/x' }
  const noc = (await call('POST', '/alert-channels', { ...slack, name: 'noc' })).data<{
    id: number
  }>()
  await call('POST', '/alert-rules', { name: 'r', on: 'node_down', channels: ['noc'] })
  await write(['1', 'down'])
  await tenant('acme')
  const acme = await key({ name: 'acme', tenant_scope: 'tenant', tenant_slug: 'acme' })
  await eventually(async () =>
    expect((await call('GET', '/alerts')).data<unknown[]>()).toHaveLength(1),
  )
  for (const path of ['/alerts', '/alert-rules', '/alert-channels'])
    expect((await call('GET', path, undefined, acme)).data<unknown[]>()).toEqual([])
  expect((await call('POST', `/alert-channels/${noc.id}/test`, undefined, acme)).status).toBe(404)
  const rule = { name: 'r', on: 'node_down', channels: [noc.id] }
  expect((await call('POST', '/alert-rules', rule, acme)).status).toBe(400)
  const global = { name: 'r', on: 'disk_low', threshold: 5, channels: ['own'] }
  await call('POST', '/alert-channels', { ...slack, name: 'own' }, acme)
  const refused = await call('POST', '/alert-rules', global, acme)
  expect([refused.status, refused.text]).toEqual([
    400,
    expect.stringContaining('concerns the platform'),
  ])
})
