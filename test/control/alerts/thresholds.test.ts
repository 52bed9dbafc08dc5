/** Rules with a threshold, in virtual time, on what the database of the project has. */
import { expect, test } from 'vitest'
import type { CertificateStatus } from '../../../schema/contracts/certificates.ts'
import { alertRig, textsOf } from '../../support/alert-rig.ts'
import { start } from '../../support/books.ts'
import { ManualTime } from '../../support/manual-time.ts'
import { hasPostgres } from '../../support/postgres.ts'
import { settling, sharedDatabase } from '../../support/shared-database.ts'
import { runSql } from '../../support/stored.ts'
import { openToolRig, storeRecord, type ToolRig } from '../../support/tools-rig.ts'

/** A platform whose calls are forgotten, with a rule of it, or of a tenant. */
async function open(rule: Readonly<Record<string, unknown>>, tenantId: number | null = null) {
  const tools = await openToolRig()
  const { store } = tools
  await runSql(store, 'DELETE FROM cdr')
  for (const name of ['north', 'other'])
    await runSql(
      store,
      `INSERT INTO carrier (name, created_at, updated_at) VALUES ('${name}', 0, 0)`,
    )
  const time = new ManualTime(tools.now())
  const rig = alertRig(store, time)
  await rig.channel({}, tenantId)
  await rig.rule({ group_seconds: 0, ...rule }, tenantId)
  rig.alerts.start()
  /** Resolves with what was told in these minutes. */
  const pass = async (minutes: number) => {
    const known = rig.sent.length
    for (let second = 0; second < minutes * 60; second += 5) {
      tools.tick(5_000)
      time.advance(5_000)
      await store.settled()
    }
    expect(rig.problems).toEqual([])
    return textsOf(rig.sent.slice(known)).flat()
  }
  return { ...tools, alerts: rig.alerts, pass, calls: callsOf(tools) }
}

const callsOf = (tools: ToolRig) => {
  let count = 0
  return async (many: number, columns: Parameters<typeof storeRecord>[3], tenantId = 1) => {
    for (let each = 0; each < many; each += 1)
      await storeRecord(tools, tenantId, `call ${(count += 1)}`, { carrier: 'north', ...columns })
  }
}

const failed = { disposition: 'FAILED', sip_code: 503, billsec: 0, cost_micros: 0 } as const

test('ASR: too few calls say nothing, many failed ones open an alert, later ones close it', async () => {
  const rig = await open({ on: 'asr_below', threshold: 40, least_calls: 10, window_seconds: 600 })
  await rig.calls(8, failed)
  expect(await rig.pass(2)).toEqual([])
  await rig.calls(3, {})
  expect(await rig.pass(2)).toEqual([
    'Carrier north answers 27.3 % of 11 calls in 10 min (least: 40 %)',
  ])
  // Within the margin it stays.
  await rig.calls(2, {})
  await rig.calls(1, { ...failed, carrier: 'other' })
  expect(await rig.pass(2)).toEqual([])
  await rig.calls(6, {})
  expect(await rig.pass(2)).toEqual([expect.stringMatching(/^over: Carrier north answers/)])
})

test('ASR: an alert ends when nothing is measured any more', async () => {
  const rig = await open({ on: 'asr_below', threshold: 40, least_calls: 5, window_seconds: 300 })
  await rig.calls(9, failed)
  expect(await rig.pass(2)).toHaveLength(1)
  expect(await rig.pass(6)).toEqual([expect.stringMatching(/^over: /)])
})

test('MOS: calls whose quality is not known count nothing', async () => {
  const rig = await open({ on: 'mos_below', threshold: 3.5, least_calls: 3, window_seconds: 600 })
  await rig.calls(2, { mos_score: 2 })
  await rig.calls(5, { mos_score: null })
  expect(await rig.pass(2)).toEqual([])
  await rig.calls(2, { mos_score: 4 })
  const [told, ...others] = await rig.pass(2)
  expect([told, others]).toEqual([
    '4 calls by carrier north in 10 min have a mean MOS of 3 (least: 3.5)',
    [],
  ])
  await rig.calls(8, { mos_score: 4.4 })
  expect(await rig.pass(2)).toEqual([expect.stringMatching(/^over: 4 calls by carrier north/)])
})

test('spend: a customer who spends much is told with the sum, and what was before does not count', async () => {
  const rig = await open({ on: 'spend_above', threshold: 5, window_seconds: 600 })
  await rig.calls(9, { cost_micros: 1_000_000, start_stamp: rig.now() - 3_600_000 })
  await rig.calls(4, { cost_micros: 1_000_000 })
  expect(await rig.pass(2)).toEqual([])
  await rig.calls(1, { cost_micros: 2_000_000 })
  expect(await rig.pass(2)).toEqual([
    'Customer acme customer has spent 6.00 USD in 10 min (limit: 5)',
  ])
  expect(await rig.pass(12)).toEqual([expect.stringMatching(/^over: Customer acme customer/)])
})

test('spend: a tenant is told of its own customers alone, whoever pays the calls of its phones', async () => {
  const rig = await open({ on: 'spend_above', threshold: 5 }, 1)
  await runSql(rig.store, 'UPDATE customer SET tenant_id = NULL')
  await rig.calls(9, { cost_micros: 1_000_000 })
  expect(await rig.pass(2)).toEqual([])
  await runSql(rig.store, 'UPDATE customer SET tenant_id = 1')
  expect(await rig.pass(2)).toHaveLength(1)
})

test('calls, balances and webhooks of another tenant open no alert', async () => {
  for (const rule of [
    { on: 'asr_below', threshold: 90, least_calls: 1 },
    { on: 'mos_below', threshold: 5, least_calls: 1 },
    { on: 'spend_above', threshold: 1 },
    { on: 'balance_below', threshold: 1_000 },
    { on: 'webhook_failing', threshold: 1 },
  ]) {
    const rig = await open(rule, 2)
    await rig.calls(5, { mos_score: 1, cost_micros: 9_000_000, disposition: 'BUSY' })
    await failingWebhook(rig, await rig.key({ tenant_slug: 'acme' }))
    expect([rule.on, await rig.pass(2)]).toEqual([rule.on, []])
  }
})

async function failingWebhook(rig: ToolRig, token: string) {
  const body = { url: 'https://books.example/hook', events: ['*'] }
  const made = await rig.request('/api/v1/webhooks', { token, body })
  const { id } = made.data<{ id: number }>()
  const tested = await rig.request(`/api/v1/webhooks/${id}/test`, { token, body: {} })
  expect(tested.status).toBeLessThan(300)
  return (attempts: number) =>
    runSql(rig.store, `UPDATE webhook_delivery SET attempts = ${attempts}`)
}

test('a webhook that fails, one that is switched off for it, and one that works again', async () => {
  const rig = await open({ on: 'webhook_failing', threshold: 3 })
  const fail = await failingWebhook(rig, rig.root)
  await fail(2)
  expect(await rig.pass(2)).toEqual([])
  await fail(4)
  expect(await rig.pass(2)).toEqual(['Webhook https://books.example/hook has failed 4 times'])
  await runSql(rig.store, "UPDATE webhook_delivery SET state = 'delivered'")
  expect(await rig.pass(2)).toEqual([expect.stringMatching(/^over: Webhook/)])
  await runSql(rig.store, "UPDATE webhook_endpoint SET is_active = 0, disabled_reason = 'backlog'")
  expect(await rig.pass(2)).toEqual([
    'Webhook https://books.example/hook was switched off: backlog',
  ])
})

test('a certificate that expires is told once, and its end when it was renewed', async () => {
  const rig = await open({ on: 'certificate_expiring', threshold: 14 })
  const day = 86_400_000
  let notAfter = rig.now() + 20 * day
  const list = (): readonly CertificateStatus[] => [{ use: 'api', file: '/tls/api.pem', notAfter }]
  rig.alerts.watchCertificates(list)
  expect(await rig.pass(2)).toEqual([])
  notAfter = rig.now() + 13.5 * day
  expect(await rig.pass(3)).toEqual([
    'The certificate /tls/api.pem (api) at instance a expires in 13 days',
  ])
  notAfter = rig.now() + 90 * day
  expect(await rig.pass(2)).toEqual([expect.stringMatching(/^over: The certificate/)])
})

test('what a rule asks to last is told only then, and forgotten when it ends before', async () => {
  const rig = await open({ on: 'asr_below', threshold: 40, least_calls: 5, for_seconds: 600 })
  await rig.calls(9, failed)
  expect(await rig.pass(8)).toEqual([])
  await rig.calls(20, {})
  expect(await rig.pass(4)).toEqual([])
  await rig.calls(200, failed)
  expect(await rig.pass(12)).toHaveLength(1)
})

test.runIf(hasPostgres)('a standby that is behind is told with its seconds', async () => {
  const database = await sharedDatabase()
  const first = await database.open()
  // In place of the view of the server, which has no standby here.
  for (const statement of [
    'CREATE SCHEMA seen',
    'CREATE TABLE seen.lag (seconds double precision)',
    'INSERT INTO seen.lag VALUES (1)',
    `CREATE VIEW seen.pg_stat_replication AS SELECT 1 AS pid, 'standby-1' AS application_name,
      '10.0.0.7'::inet AS client_addr, make_interval(secs => seconds) AS replay_lag FROM seen.lag`,
    `DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET search_path = public, seen, pg_catalog',
      current_database()); END $$`,
  ])
    await runSql(first, statement)
  const { store, settled } = settling(await database.open())
  const time = new ManualTime(start)
  const rig = alertRig(store, time)
  await rig.channel()
  await rig.rule({ on: 'replication_lag', threshold: 10, group_seconds: 0 })
  rig.alerts.start()
  const told: (readonly string[])[] = []
  for (const seconds of [1, 42.5, 9.8, 2]) {
    await runSql(first, `UPDATE seen.lag SET seconds = ${seconds}`)
    const known = rig.sent.length
    for (let second = 0; second < 130; second += 5) {
      time.advance(5_000)
      await settled()
    }
    told.push(textsOf(rig.sent.slice(known)).flat())
  }
  const text = 'Standby standby-1 (10.0.0.7) is 42.5 s behind (limit: 10 s)'
  expect(told).toEqual([[], [text], [], [expect.stringMatching(/^over: Standby standby-1/)]])
  expect(rig.problems).toEqual([])
})
