/** The life of findings: opened, marked, closed, told; by one search of whichever instance. */
import { expect, test } from 'vitest'
import { FindingWatch } from '../../../../control/observe/causes/finding-watch.ts'
import { readRows, runSql } from '../../../support/stored.ts'
import { noteChange, openToolRig } from '../../../support/tools-rig.ts'

const minute = 60_000
const first = 'sip:10.0.0.1:5060;transport=udp'
const other = 'sip:10.0.0.3:5060;transport=udp'

interface Kept {
  readonly id: number
  readonly subject: string
  readonly state: string
  readonly opened_at: string
  readonly closed_at: string | null
  readonly acknowledged: { readonly by: string } | null
}

async function openWatch() {
  const rig = await openToolRig()
  await runSql(rig.store, 'DELETE FROM cdr')
  const tenant = await rig.key({ name: 'acme key', tenant_slug: 'acme' })
  const hook = async (slug: string, token: string) => {
    const body = { url: `https://${slug}.example/`, events: ['finding.opened', 'finding.closed'] }
    const made = await rig.request('/api/v1/webhooks', { token, body })
    expect([made.status, made.text]).toEqual([201, made.text])
  }
  await hook('platform', rig.root)
  await hook('acme', tenant)
  const set = (state: 'active' | 'probing', node = first) =>
    rig.engine.dispatcher.setState(node === first ? 1 : 2, node, state)
  const list = async (query = '', token = rig.root) =>
    (await rig.request(`/api/v1/findings?kinds=node${query}`, { token })).data<{
      findings: readonly Kept[]
      complete: boolean
      cursor: string | null
    }>()
  const mark = (id: number | undefined, how: string, body: object = {}, token = rig.root) =>
    rig.request(`/api/v1/findings/${id}/${how}`, { token, body })
  const told = async () =>
    (
      await readRows<{ url: string; body: string }>(
        rig.store,
        `SELECT url, body FROM webhook_delivery AS d JOIN webhook_event AS e ON e.id = d.event_id
          JOIN webhook_endpoint AS w ON w.id = d.endpoint_id ORDER BY d.id`,
      )
    ).map(({ url, body }) => {
      const { type, data } = JSON.parse(body) as { type: string; data: { subject: string } }
      return `${/\/\/(\w+)/.exec(url)?.[1]} ${type} ${data.subject}`
    })
  /** A minute passes, with its search. */
  const pass = async (minutes = 1) => {
    for (let passed = 0; passed < minutes; passed += 1) {
      rig.tick(minute)
      await rig.findings.tick()
    }
  }
  await pass()
  return { ...rig, tenant, set, list, mark, told, pass }
}

test('a finding is opened when a search finds it, and closed when five minutes of searches do not', async () => {
  const rig = await openWatch()
  expect((await rig.list()).findings).toEqual([])
  await rig.set('probing')
  await noteChange(rig, { at: rig.now() })
  expect((await rig.list()).findings).toEqual([])
  await rig.pass()
  const opened = rig.now()
  expect((await rig.list()).findings).toMatchObject([
    {
      kind: 'node',
      tenant: 'acme',
      subject: `node ${first}`,
      state: 'open',
      opened_at: new Date(opened).toISOString(),
      closed_at: null,
    },
  ])
  // It comes and goes: that is one finding.
  await rig.set('active')
  await rig.pass(4)
  await rig.set('probing')
  await rig.pass(2)
  await rig.set('active')
  await rig.pass(5)
  expect((await rig.list('&state=open')).findings).toHaveLength(1)
  await rig.pass(1)
  expect((await rig.list('&state=open')).findings).toEqual([])
  expect((await rig.list('&state=closed')).findings).toMatchObject([
    { state: 'closed', closed_at: new Date(rig.now()).toISOString() },
  ])
  const subject = `node ${first}`
  expect(await rig.told()).toEqual([
    `platform finding.opened ${subject}`,
    `acme finding.opened ${subject}`,
    `platform finding.closed ${subject}`,
    `acme finding.closed ${subject}`,
  ])
})

test('what was not looked for has not been missed: a gap in the searches closes nothing', async () => {
  const rig = await openWatch()
  await rig.set('probing')
  await rig.pass()
  await rig.set('active')
  await rig.pass(3)
  // All instances are down for an hour.
  rig.tick(60 * minute)
  await rig.findings.tick()
  expect((await rig.list('&state=open')).findings).toHaveLength(1)
  await rig.pass(4)
  expect((await rig.list('&state=open')).findings).toHaveLength(1)
  await rig.pass()
  expect((await rig.list('&state=open')).findings).toEqual([])
})

test('several instances search once a minute together, and tell of each finding once', async () => {
  const rig = await openWatch()
  const second = new FindingWatch(rig.deps)
  await rig.set('probing')
  rig.tick(minute)
  await Promise.all([rig.findings.tick(), second.tick(), rig.findings.tick(), second.tick()])
  await rig.set('probing', other)
  rig.tick(minute / 2)
  await second.tick()
  // The last search was half a minute ago.
  expect((await rig.list()).findings).toHaveLength(1)
  expect((await rig.told()).filter((text) => text.startsWith('platform'))).toHaveLength(1)
})

test('a search that dies before it is kept is made again, and tells of nothing twice', async () => {
  const rig = await openWatch()
  await rig.set('probing')
  const dying = new FindingWatch({
    ...rig.deps,
    webhooks: { write: () => Promise.reject(new Error('the process dies')) },
  })
  rig.tick(minute)
  await dying.tick()
  expect((await rig.list()).findings).toEqual([])
  await rig.pass()
  expect((await rig.list()).findings).toHaveLength(1)
  expect(await rig.told()).toHaveLength(2)
})

test('a person acknowledges, snoozes with a reason and reopens; the audit log says who', async () => {
  const rig = await openWatch()
  await rig.set('probing')
  await rig.pass()
  const [found] = (await rig.list()).findings
  const acknowledged = await rig.mark(found?.id, 'acknowledge', { note: 'I look at it' })
  expect(acknowledged.data()).toMatchObject({
    state: 'acknowledged',
    acknowledged: { by: 'root', note: 'I look at it' },
  })
  const until = new Date(rig.now() + 60 * minute).toISOString()
  expect((await rig.mark(found?.id, 'snooze', { until, reason: 'maintenance' })).data()).toEqual({
    ...acknowledged.data<object>(),
    state: 'snoozed',
    acknowledged: null,
    snoozed: { at: new Date(rig.now()).toISOString(), by: 'root', until, reason: 'maintenance' },
  })
  expect((await rig.list('&state=open,acknowledged')).findings).toEqual([])
  expect((await rig.list('&state=snoozed')).findings).toHaveLength(1)
  const anomalies = await rig.request('/api/v1/anomalies?kinds=node', { token: rig.root })
  expect(anomalies.data()).toMatchObject({ findings: [{ id: found?.id, state: 'snoozed' }] })
  await rig.pass(61)
  expect((await rig.list('&state=open')).findings).toHaveLength(1)
  await rig.mark(found?.id, 'acknowledge')
  expect((await rig.mark(found?.id, 'reopen')).data()).toMatchObject({ state: 'open' })
  const audit = await rig.request('/api/v1/audit?limit=10', { token: rig.root })
  expect(audit.text).toContain('POST /api/v1/findings/:id/snooze')
  expect(audit.text).toContain('maintenance')
})

test('a snooze holds for the finding that comes back before it ends; an acknowledgement does not', async () => {
  const rig = await openWatch()
  await rig.set('probing')
  await rig.set('probing', other)
  await rig.pass()
  const { findings } = await rig.list()
  const idOf = (node: string) => findings.find(({ subject }) => subject === `node ${node}`)?.id
  await rig.mark(idOf(first), 'snooze', { duration: 86_400, reason: 'known' })
  await rig.mark(idOf(other), 'acknowledge')
  await rig.set('active')
  await rig.set('active', other)
  await rig.pass(6)
  await rig.set('probing')
  await rig.set('probing', other)
  await rig.pass()
  const states = (await rig.list('&state=open,acknowledged,snoozed')).findings
  expect(new Map(states.map(({ subject, state }) => [subject, state]))).toEqual(
    new Map([
      [`node ${first}`, 'snoozed'],
      [`node ${other}`, 'open'],
    ]),
  )
})

test('a tenant sees and marks what is its own, apart from the platform', async () => {
  const rig = await openWatch()
  await rig.set('probing')
  await rig.set('probing', other)
  await rig.pass()
  const { findings } = await rig.list('', rig.tenant)
  expect(findings.map(({ subject }) => subject)).toEqual([`node ${first}`])
  const stranger = await rig.key({ name: 'other key', tenant_slug: 'other' })
  expect((await rig.list('', stranger)).findings).toEqual([])
  const id = findings[0]?.id
  expect((await rig.mark(id, 'acknowledge', {}, stranger)).status).toBe(404)
  await rig.mark(id, 'acknowledge', {}, rig.tenant)
  expect((await rig.list('&state=acknowledged', rig.tenant)).findings).toHaveLength(1)
  expect((await rig.list('&state=acknowledged')).findings).toEqual([])
  const others = (await rig.list()).findings.find((each) => each.id !== id)?.id
  expect((await rig.mark(others, 'snooze', { duration: 60, reason: 'x' }, rig.tenant)).status).toBe(
    404,
  )
})

test('who may not read a kind neither sees nor marks it, and only calls:write marks', async () => {
  const rig = await openWatch()
  await rig.set('probing')
  await rig.pass()
  const id = (await rig.list()).findings[0]?.id
  const blind = await rig.key({ name: 'blind', scopes: ['cdrs:read', 'calls:write'] })
  const list = await rig.request('/api/v1/findings', { token: blind })
  expect(list.data()).toMatchObject({ findings: [] })
  expect(list.text).toContain('"kind":"node","needs":"dispatcher:read"')
  expect((await rig.mark(id, 'acknowledge', {}, blind)).status).toBe(404)
  const reader = await rig.key({ name: 'reader', scopes: ['*:read'] })
  expect((await rig.mark(id, 'acknowledge', {}, reader)).status).toBe(403)
})

test.each([
  [{ reason: 'x' }, 'either this or duration is required'],
  [{ reason: 'x', duration: 60, until: '2026-01-01T01:00:00Z' }, 'either this or duration'],
  [{ reason: 'x', duration: 31 * 86_400 }, 'duration'],
  [{ reason: 'x', until: '2026-03-01T00:00:00Z' }, 'at most 30 days'],
  [{ reason: 'x', until: '2020-01-01T00:00:00Z' }, 'in the future'],
  [{ duration: 60 }, 'reason'],
  [{ reason: '', duration: 60 }, 'reason'],
])('a snooze %j is refused: %s', async (body, text) => {
  const rig = await openWatch()
  await rig.set('probing')
  await rig.pass()
  const answer = await rig.mark((await rig.list()).findings[0]?.id, 'snooze', body)
  expect([answer.status, answer.text]).toEqual([400, expect.stringContaining(text)])
})

test('a closed finding takes no mark, and old ones are forgotten after 90 days', async () => {
  const rig = await openWatch()
  await rig.set('probing')
  await rig.pass()
  const id = (await rig.list()).findings[0]?.id
  await rig.set('active')
  await rig.pass(6)
  expect((await rig.mark(id, 'acknowledge')).code).toBe('finding_closed')
  rig.tick(91 * 86_400_000)
  await rig.findings.tick()
  expect((await rig.list()).findings).toEqual([])
})

test('the history is read a page at a time', async () => {
  const rig = await openWatch()
  for (let round = 0; round < 3; round += 1) {
    await rig.set('probing')
    await rig.pass()
    await rig.set('active')
    await rig.pass(6)
  }
  const page = await rig.list('&limit=2')
  expect([page.findings.length, page.complete]).toEqual([2, false])
  const rest = await rig.list(`&limit=2&cursor=${page.cursor}`)
  expect([rest.findings.length, rest.complete, rest.cursor]).toEqual([1, true, null])
})
