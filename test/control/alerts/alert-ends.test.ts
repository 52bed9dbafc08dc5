/** Alerts whose subject or rule is gone end, and say why, on the database of the project. */
import { expect, test } from 'vitest'
import type { CertificateStatus } from '../../../schema/contracts/certificates.ts'
import type { HeardInstance } from '../../../control/alerts/alert-ends.ts'
import type { OutgoingEvent } from '../../../schema/contracts/engine.ts'
import { alertRig, textsOf } from '../../support/alert-rig.ts'
import { ManualTime } from '../../support/manual-time.ts'
import { runSql } from '../../support/stored.ts'
import { openToolRig, storeRecord } from '../../support/tools-rig.ts'

const hour = 3_600_000
const nodeOf = (host: string) => `sip:${host}:5060;transport=udp`

/** Rules are of the platform, or of the tenant acme (1), which owns set 1. */
async function open(rule: Readonly<Record<string, unknown>>, tenantId: number | null = null) {
  const tools = await openToolRig()
  const { store, root } = tools
  const time = new ManualTime(tools.now())
  let instances: readonly HeardInstance[] | undefined
  const heard = (name: string): HeardInstance => ({
    name,
    state: 'serving',
    heartbeatAt: time.now(),
  })
  const rig = alertRig(store, time, {
    disks: () => [],
    instances: () => instances ?? [heard('a')],
  })
  await rig.channel({}, tenantId)
  const ruleId = await rig.rule({ group_seconds: 0, ...rule }, tenantId)
  rig.alerts.start()
  const request = async (method: string, path: string, body?: object) => {
    const answer = await tools.request(`/api/v1${path}`, { token: root, method, body })
    expect([answer.status, answer.text]).toEqual([
      expect.toBeOneOf([200, 201, 202, 204]),
      answer.text,
    ])
    await rig.alerts.reload()
    return answer
  }
  /** Resolves with what was told in these seconds. */
  const pass = async (seconds: number) => {
    const known = rig.sent.length
    for (let second = 0; second < seconds; second += 5) {
      tools.tick(5_000)
      time.advance(5_000)
      await store.settled()
    }
    expect(rig.problems).toEqual([])
    return textsOf(rig.sent.slice(known)).flat()
  }
  const hear = (...list: readonly HeardInstance[]) => void (instances = list)
  return { ...tools, ...rig, tools, ruleId, request, pass, hear, heard, time }
}

const nodeDown = (setId: number, host: string): OutgoingEvent => ({
  type: 'dispatcher.node.down',
  tenantId: null,
  data: { set_id: setId, destination: nodeOf(host), reason: 'no answer' },
})

const nodeText = (host: string) =>
  `Node ${nodeOf(host)} of dispatcher set 1 is out of service: no answer`

test.each([
  [
    'is removed',
    'DELETE',
    '/dispatcher/1/nodes/2',
    undefined,
    'The node has left the dispatcher set',
  ],
  [
    'is given another address',
    'PATCH',
    '/dispatcher/1/nodes/2',
    { host: '10.0.0.9' },
    'The node has left the dispatcher set',
  ],
  [
    'is switched off',
    'PATCH',
    '/dispatcher/1/nodes/2',
    { is_enabled: false },
    'The node has left the dispatcher set',
  ],
  ['loses its set', 'DELETE', '/dispatcher/1', undefined, 'The dispatcher set was deleted'],
])('an alert of a node that %s ends with a text', async (_, method, path, body, why) => {
  const rig = await open({ on: 'node_down' })
  await rig.write(nodeDown(1, '10.0.0.2'))
  expect(await rig.pass(130)).toEqual([nodeText('10.0.0.2')])
  await rig.request(method, path, body)
  expect(await rig.pass(70)).toEqual([`over: ${nodeText('10.0.0.2')}. ${why}`])
  const { data } = JSON.parse((await rig.request('GET', '/alerts')).text)
  expect(data).toMatchObject([{ state: 'closed', closed_by: 'removal', closed_because: why }])
  expect(await rig.pass(130)).toEqual([])
})

test('an alert of a tenant ends when its set gets another owner, that of the platform stays', async () => {
  const rig = await open({ on: 'node_down' }, 1)
  await rig.channel({ name: 'all' })
  await rig.rule({ on: 'node_down', name: 'all', group_seconds: 0, channels: ['all'] })
  await rig.write(nodeDown(1, '10.0.0.2'))
  expect(await rig.pass(30)).toHaveLength(2)
  await runSql(rig.store, 'UPDATE dispatcher_set SET tenant_id = 2 WHERE set_id = 1')
  expect(await rig.pass(70)).toEqual([
    `over: ${nodeText('10.0.0.2')}. The dispatcher set has another owner now`,
  ])
  await rig.write({ ...nodeDown(1, '10.0.0.2'), type: 'dispatcher.node.up' })
  expect(await rig.pass(30)).toEqual([`over: ${nodeText('10.0.0.2')}`])
})

const offText = 'The alert rule was switched off'
const elsewhere = 'The alert rule looks at something else now'

test.each([
  ['switched off', 'at once', 'PATCH', { is_enabled: false }, offText],
  ['deleted', 'at once', 'DELETE', undefined, 'The alert rule was deleted'],
  ['turned to something else', 'after them', 'PATCH', { on: 'carrier_down' }, elsewhere],
])(
  'a rule that is %s during quiet hours ends its alerts with a text, %s',
  async (_, when, method, body, why) => {
    const rig = await open({ on: 'node_down' })
    const at = (minutes: number) =>
      new Date(rig.now() + minutes * 60_000).toISOString().slice(11, 16)
    const path = `/alert-rules/${rig.ruleId}`
    const quiet_hours = { from: at(2), to: at(8), time_zone: 'UTC', holds_critical: true }
    await rig.request('PATCH', path, { quiet_hours })
    await rig.write(nodeDown(1, '10.0.0.1'), nodeDown(1, '10.0.0.2'))
    expect(await rig.pass(130)).toHaveLength(2)
    await rig.request(method, path, body)
    const ends = ['10.0.0.1', '10.0.0.2'].map((host) => `over: ${nodeText(host)}. ${why}`)
    expect(await rig.pass(70)).toEqual(when === 'at once' ? ends : [])
    expect(await rig.pass(400)).toEqual(when === 'at once' ? [] : ends)
    await rig.write({ ...nodeDown(1, '10.0.0.2'), type: 'dispatcher.node.up' })
    expect(await rig.pass(70)).toEqual([])
  },
)

test('what has lasted too short to be told when its rule goes is told to nobody', async () => {
  const rig = await open({ on: 'node_down', for_seconds: 600 })
  await rig.write(nodeDown(1, '10.0.0.2'))
  await rig.pass(30)
  await rig.request('DELETE', `/alert-rules/${rig.ruleId}`)
  expect(await rig.pass(700)).toEqual([])
  expect(JSON.parse((await rig.request('GET', '/alerts')).text)).toMatchObject({ data: [] })
})

test('a rule that has come to look at another node ends what it has told', async () => {
  const rig = await open({ on: 'node_down', node: nodeOf('10.0.0.2') })
  await rig.write(nodeDown(1, '10.0.0.2'))
  expect(await rig.pass(30)).toHaveLength(1)
  await rig.request('PATCH', `/alert-rules/${rig.ruleId}`, { node: nodeOf('10.0.0.1') })
  await rig.write({ ...nodeDown(1, '10.0.0.2'), type: 'dispatcher.node.up' })
  expect(await rig.pass(30)).toEqual([`over: ${nodeText('10.0.0.2')}`])
})

test('an alert of the calls of a carrier ends when there is no such carrier any more', async () => {
  const rig = await open({ on: 'asr_below', threshold: 40, least_calls: 3 })
  const made = await rig.request('POST', '/routing/carriers', {
    name: 'north',
    gateways: [{ host: '192.0.2.9' }],
  })
  for (let call = 0; call < 5; call += 1)
    await storeRecord(rig.tools, 1, `call ${call}`, { carrier: 'north', disposition: 'FAILED' })
  const [text] = await rig.pass(70)
  expect(text).toMatch(/^Carrier north answers 0 % of 5 calls/)
  await rig.request('DELETE', `/routing/carriers/${made.data<{ id: number }>().id}`)
  expect(await rig.pass(130)).toEqual([`over: ${text}. There is no carrier of this name any more`])
})

test('an alert of a customer that is deleted ends with a text', async () => {
  const rig = await open({ on: 'balance_below', threshold: 5 })
  const made = await rig.request('POST', '/customers', { name: 'nova' })
  const text = 'Customer nova has 0.00 USD left (limit: 5)'
  expect(await rig.pass(70)).toEqual([text])
  await rig.request('DELETE', `/customers/${made.data<{ id: number }>().id}`)
  expect(await rig.pass(70)).toEqual([`over: ${text}. The customer was deleted`])
})

test('an alert of a webhook that is deleted ends with a text', async () => {
  const rig = await open({ on: 'webhook_failing', threshold: 3 })
  const url = 'https://books.example/hook'
  const made = await rig.request('POST', '/webhooks', { url, events: ['*'] })
  const { id } = made.data<{ id: number }>()
  await rig.request('POST', `/webhooks/${id}/test`, {})
  await runSql(rig.store, 'UPDATE webhook_delivery SET attempts = 4')
  const text = `Webhook ${url} has failed 4 times`
  expect(await rig.pass(70)).toEqual([text])
  await rig.request('DELETE', `/webhooks/${id}`)
  expect(await rig.pass(70)).toEqual([`over: ${text}. The webhook was deleted`])
})

test('a certificate that is not in use any more ends its alert with a text', async () => {
  const rig = await open({ on: 'certificate_expiring', threshold: 14 })
  let list: readonly CertificateStatus[] = [
    { use: 'api', file: '/tls/api.pem', notAfter: rig.now() + 3.5 * 24 * hour },
  ]
  rig.alerts.watchCertificates(() => list)
  const [text] = await rig.pass(70)
  expect(text).toMatch(/^The certificate \/tls\/api\.pem \(api\) at instance a expires in 3 days/)
  list = []
  expect(await rig.pass(70)).toEqual([`over: ${text}. The certificate is not in use any more`])
})

test('an instance that is gone for good keeps no alert open, one that restarts does', async () => {
  const rig = await open({ on: 'certificate_expiring', threshold: 14 })
  const notAfter = rig.now() + 3.5 * 24 * hour
  const other = alertRig(rig.store, rig.time, {
    instance: 'b',
    instances: () => [rig.heard('a'), rig.heard('b')],
  })
  await other.alerts.reload()
  other.alerts.watchCertificates(() => [{ use: 'api', file: '/tls/b.pem', notAfter }])
  rig.hear(rig.heard('a'), rig.heard('b'))
  other.alerts.start()
  // Whichever instance sends it.
  const text = 'The certificate /tls/b.pem (api) at instance b expires in 3 days'
  await rig.pass(80)
  expect(textsOf([...rig.sent, ...other.sent]).flat()).toContain(text)
  other.die()
  const stopped = { name: 'b', state: 'stopped', heartbeatAt: rig.time.now() } as const
  rig.hear(rig.heard('a'), stopped)
  expect(await rig.pass(130)).toEqual([])
  rig.hear(rig.heard('a'), { ...stopped, heartbeatAt: rig.time.now() - 1.1 * hour })
  expect(await rig.pass(70)).toEqual([`over: ${text}. Instance b is not heard any more`])
})
