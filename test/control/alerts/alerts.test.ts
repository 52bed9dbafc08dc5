/** Alerts as people get them, in virtual time, on the database of the project. */
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import {
  alertRig,
  deadServer,
  destinationOf,
  nodeEvent,
  storeNodes,
  textsOf,
} from '../../support/alert-rig.ts'
import { start } from '../../support/books.ts'
import { ManualTime } from '../../support/manual-time.ts'
import { readRows, runSql } from '../../support/stored.ts'
import { openTestStore, type TestStore } from '../../support/test-store.ts'
import { withGroupsTold } from '../../support/told-late.ts'

const minute = 60_000
const hour = 60 * minute

let store: TestStore
let time: ManualTime

beforeEach(async () => {
  time = new ManualTime(start)
  store = await openTestStore(start)
  await storeNodes(store, 100)
})

afterEach(() => store.close())

/** Time passes in steps, and what it has begun ends before the next one. */
async function pass(ms: number, stepMs = Math.max(1_000, ms / 400)): Promise<void> {
  for (let passed = 0; passed < ms; passed += stepMs) {
    time.advance(stepMs)
    await store.settled()
  }
}

/** Time passes until it holds: for a minute at most. */
async function passUntil(holds: () => boolean): Promise<void> {
  for (let second = 0; second < 60 && !holds(); second += 1) await pass(1_000)
  expect(holds()).toBe(true)
}

const downOf = (node: number) =>
  `Node ${destinationOf(node)} of dispatcher set 1 is out of service: no answer`
const down = downOf(1)

describe('events', () => {
  test('what happens within the time of a group is one message, and its end is another', async () => {
    const rig = alertRig(store, time)
    await rig.channel()
    await rig.rule({ on: 'node_down', group_seconds: 60 })
    rig.alerts.start()
    await rig.write(nodeEvent(1, 'down'), nodeEvent(2, 'down'))
    await pass(30_000)
    expect(rig.sent).toEqual([])
    await rig.write(nodeEvent(3, 'down'))
    await pass(40_000)
    expect(textsOf(rig.sent)).toEqual([[1, 2, 3].map(downOf)])
    await rig.write(nodeEvent(2, 'up'))
    await pass(70_000)
    expect(textsOf(rig.sent).at(1)).toEqual([`over: ${downOf(2)}`])
    await pass(hour)
    expect(rig.sent).toHaveLength(2)
    expect(rig.problems).toEqual([])
  })

  test('a node of which several instances tell is told of once', async () => {
    const rig = alertRig(store, time)
    await rig.channel()
    await rig.rule({ on: 'node_down', group_seconds: 0 })
    rig.alerts.start()
    for (let instance = 0; instance < 3; instance += 1) {
      await rig.write(nodeEvent(1, 'down'))
      await pass(5_000)
    }
    expect(textsOf(rig.sent)).toEqual([[down]])
    expect(await readRows(store, 'SELECT state, events FROM alert')).toEqual([
      { state: 'open', events: 3 },
    ])
  })

  test('what is over before it has lasted long enough is told to nobody', async () => {
    const rig = alertRig(store, time)
    await rig.channel()
    await rig.rule({ on: 'node_down', for_seconds: 120, group_seconds: 0 })
    rig.alerts.start()
    await rig.write(nodeEvent(1, 'down'))
    await pass(100_000)
    await rig.write(nodeEvent(1, 'up'))
    await pass(hour)
    expect(rig.sent).toEqual([])
    await rig.write(nodeEvent(1, 'down'))
    await pass(130_000)
    expect(textsOf(rig.sent)).toEqual([[down]])
  })

  test('in quiet hours messages wait, but for critical ones', async () => {
    const rig = alertRig(store, time)
    await rig.channel()
    const at = (ms: number) => new Date(start + ms).toISOString().slice(11, 16)
    const quiet_hours = { from: at(0), to: at(8 * hour), time_zone: 'UTC' }
    const rule = { on: 'node_down', group_seconds: 0, quiet_hours }
    await rig.rule({ ...rule, name: 'warning' })
    await rig.rule({ ...rule, name: 'critical', severity: 'critical' })
    rig.alerts.start()
    await pass(minute)
    await rig.write(nodeEvent(1, 'down'))
    await pass(7 * hour)
    expect(rig.sent.map(({ message }) => message.rule)).toEqual(['critical'])
    await pass(1.1 * hour)
    expect(rig.sent.map(({ message }) => message.rule)).toEqual(['critical', 'warning'])
  })

  test('whoever ends the quiet hours of a rule is told of what they have held', async () => {
    const rig = alertRig(store, time)
    await rig.channel()
    const at = (ms: number) => new Date(start + ms).toISOString().slice(11, 16)
    const quiet_hours = { from: at(0), to: at(8 * hour), time_zone: 'UTC' }
    const [held, urgent] = [
      await rig.rule({ on: 'node_down', group_seconds: 0, quiet_hours }),
      await rig.rule({ on: 'node_down', group_seconds: 0, quiet_hours, name: 'urgent' }),
    ]
    rig.alerts.start()
    await pass(minute)
    await rig.write(nodeEvent(1, 'down'))
    await pass(hour)
    expect(rig.sent).toEqual([])
    await runSql(store, `UPDATE alert_rule SET quiet_hours = NULL WHERE id = ${held}`)
    await runSql(store, `UPDATE alert_rule SET severity = 'critical' WHERE id = ${urgent}`)
    await rig.alerts.reload()
    // What happens now is told now, with all that has waited for the end.
    await rig.write(nodeEvent(2, 'down'))
    await pass(10_000)
    expect(textsOf(rig.sent)).toEqual([
      [downOf(1), downOf(2)],
      [downOf(1), downOf(2)],
    ])
    expect(new Set(rig.sent.map(({ message }) => message.rule))).toEqual(
      new Set(['node_down', 'urgent']),
    )
  })

  test('what quiet hours have held is told soon after their end, though nothing happens', async () => {
    const rig = alertRig(store, time)
    await rig.channel()
    const at = (ms: number) => new Date(start + ms).toISOString().slice(11, 16)
    const quiet_hours = { from: at(0), to: at(8 * hour), time_zone: 'UTC' }
    const id = await rig.rule({ on: 'node_down', group_seconds: 0, quiet_hours })
    await rig.rule({ on: 'node_down', group_seconds: 0, quiet_hours, name: 'unchanged' })
    rig.alerts.start()
    await pass(minute)
    await rig.write(nodeEvent(1, 'down'))
    await pass(hour)
    await runSql(store, `UPDATE alert_rule SET quiet_hours = NULL WHERE id = ${id}`)
    await rig.alerts.reload()
    await pass(2 * minute)
    expect(textsOf(rig.sent)).toEqual([[down]])
    await pass(8 * hour)
    // In longer steps the work of a minute and a turn meet each time, and one of them waits.
    await pass(minute)
    expect(rig.sent.map(({ message }) => message.rule)).toEqual(['node_down', 'unchanged'])
  })

  test('a dead mail server delays what is told, and loses and doubles nothing', async () => {
    let isDead = true
    const rig = alertRig(store, time, {
      answer: async () => (isDead ? deadServer : { kind: 'sent' }),
    })
    await rig.channel()
    await rig.rule({ on: 'node_down', group_seconds: 10 })
    rig.alerts.start()
    for (let node = 0; node < 100; node += 1) {
      await rig.write(nodeEvent(node, 'down'))
      await pass(1_000)
    }
    await pass(hour)
    const failures = rig.sent.length
    expect(failures).toBeGreaterThan(20)
    isDead = false
    await pass(4 * hour)
    const arrived = rig.sent.slice(failures)
    const told = textsOf(arrived).flat()
    expect(told).toHaveLength(100)
    expect(new Set(told).size).toBe(100)
    // A message keeps its id.
    expect(new Set(rig.sent.map(({ key }) => key)).size).toBe(arrived.length)
    await pass(80 * hour)
    expect(rig.sent.length).toBe(failures + arrived.length)
  })

  test('a receiver that stays dead gets ten attempts within four days', async () => {
    const rig = alertRig(store, time, { answer: async () => deadServer })
    await rig.channel()
    await rig.rule({ on: 'node_down', group_seconds: 0 })
    rig.alerts.start()
    await rig.write(nodeEvent(1, 'down'))
    await pass(96 * hour, 5 * minute)
    expect(rig.sent).toHaveLength(10)
    expect(await readRows(store, 'SELECT state, last_error FROM alert_message')).toEqual([
      { state: 'failed', last_error: 'connect ECONNREFUSED' },
    ])
    expect(await rig.alerts.backlog()).toEqual({ waiting: 0, failed: 1 })
  })

  test('PagerDuty gets an event for each alert, and its end never before its beginning', async () => {
    let isDead = true
    const rig = alertRig(store, time, {
      answer: async () => (isDead ? deadServer : { kind: 'sent' }),
    })
    const pagerDuty = { name: 'pd', kind: 'pagerduty', to: undefined }
    await rig.channel({ ...pagerDuty, secret: '0123456789abcdef0123456789abcdef' })
    await rig.rule({ on: 'node_down', group_seconds: 0, channels: ['pd'] })
    rig.alerts.start()
    await rig.write(nodeEvent(1, 'down'), nodeEvent(2, 'down'))
    await pass(10_000)
    await rig.write(nodeEvent(1, 'up'))
    await pass(10_000)
    isDead = false
    rig.sent.length = 0
    await pass(hour)
    const items = rig.sent.flatMap(({ message }) => message.items)
    const ofFirst = items.filter(({ text }) => text === down)
    expect(ofFirst.map(({ kind }) => kind)).toEqual(['opened', 'recovered'])
    expect(new Set(ofFirst.map(({ key }) => key)).size).toBe(1)
    expect(items).toHaveLength(3)
  })

  test('what was written before a crash is told after the next start, once', async () => {
    const first = alertRig(store, time)
    await first.channel()
    await first.rule({ on: 'node_down', group_seconds: 0 })
    // It dies before it has looked at the event.
    await first.write(nodeEvent(1, 'down'))
    const second = alertRig(store, time, { instance: 'b' })
    await second.alerts.reload()
    second.alerts.start()
    await pass(minute)
    expect(textsOf(second.sent)).toEqual([[down]])
    const third = alertRig(store, time, { instance: 'c' })
    await third.alerts.reload()
    third.alerts.start()
    await pass(minute)
    expect(third.sent).toEqual([])
  })

  test('what is due before the claims of the last run are released is told right after', async () => {
    let release = (): void => undefined
    const released = new Promise<void>((resolve) => (release = resolve))
    const rig = alertRig(withGroupsTold(store, released), time)
    await rig.channel()
    await rig.rule({ on: 'node_down', group_seconds: 0 })
    rig.alerts.start()
    await rig.write(nodeEvent(1, 'down'))
    await pass(5_000)
    expect(rig.sent).toEqual([])
    release()
    await pass(5_000)
    expect(textsOf(rig.sent)).toEqual([[down]])
  })

  test('a message that arrives while the instance stops is noted, and not sent again', async () => {
    let arrive = (): void => undefined
    const first = alertRig(store, time, {
      answer: () => new Promise((resolve) => (arrive = () => resolve({ kind: 'sent' }))),
    })
    await first.channel()
    await first.rule({ on: 'node_down', group_seconds: 0 })
    first.alerts.start()
    await first.write(nodeEvent(1, 'down'))
    await passUntil(() => first.sent.length === 1)
    const stopped = first.alerts.stop()
    arrive()
    await stopped
    const second = alertRig(store, time, { instance: 'b' })
    await second.alerts.reload()
    second.alerts.start()
    await pass(5 * minute)
    expect(second.sent).toEqual([])
  })

  test('whoever asks for a stop that has begun waits for it', async () => {
    let arrive = (): void => undefined
    const rig = alertRig(store, time, {
      answer: () => new Promise((resolve) => (arrive = () => resolve({ kind: 'sent' }))),
    })
    await rig.channel()
    await rig.rule({ on: 'node_down', group_seconds: 0 })
    rig.alerts.start()
    await rig.write(nodeEvent(1, 'down'))
    await passUntil(() => rig.sent.length === 1)
    const ended: string[] = []
    const stops = ['first', 'second'].map(async (name) => {
      await rig.alerts.stop()
      ended.push(name)
    })
    await store.settled()
    expect(ended).toEqual([])
    arrive()
    await Promise.all(stops)
    expect(ended).toEqual(['first', 'second'])
  })

  test('a stop does not wait for a receiver that says nothing', async () => {
    const rig = alertRig(store, time, { answer: () => new Promise(() => undefined) })
    await rig.channel()
    await rig.rule({ on: 'node_down', group_seconds: 0 })
    rig.alerts.start()
    await rig.write(nodeEvent(1, 'down'))
    await passUntil(() => rig.sent.length === 1)
    const stopped = rig.alerts.stop()
    await pass(5_000)
    await stopped
  })

  test('a clock that was ahead before a restart delays nothing', async () => {
    const ahead = new ManualTime(start + 400 * 24 * hour)
    const first = alertRig(store, ahead)
    await first.channel()
    await first.rule({ on: 'node_down', group_seconds: 0, for_seconds: 60 })
    await first.rule({ on: 'node_down', name: 'grouped', group_seconds: 60 })
    first.alerts.start()
    await first.write(nodeEvent(1, 'down'))
    for (let second = 0; second < 5; second += 1) {
      ahead.advance(1_000)
      await store.settled()
    }
    first.die()
    const second = alertRig(store, time, { key: 'b' })
    await second.alerts.reload()
    second.alerts.start()
    await pass(5 * minute)
    expect(textsOf(second.sent)).toEqual([[down], [down]])
  })

  test('an event that is rolled back is told to nobody', async () => {
    const rig = alertRig(store, time)
    await rig.channel()
    await rig.rule({ on: 'node_down', group_seconds: 0 })
    rig.alerts.start()
    const { transaction } = await import('../../../schema/sql/query.ts')
    await transaction(store, async () => {
      await rig.alerts.sink.writeAll([nodeEvent(1, 'down')])
      throw new Error('rolled back')
    }).catch(() => undefined)
    await pass(minute)
    expect(rig.sent).toEqual([])
  })

  test('a rule of a tenant is told of its own nodes alone, one of the platform of all', async () => {
    await runSql(
      store,
      `INSERT INTO tenant (id, name, slug, created_at)
      VALUES (1, 'acme', 'acme', 0), (2, 'beta', 'beta', 0)`,
    )
    await runSql(store, 'UPDATE dispatcher_set SET tenant_id = 1')
    const rig = alertRig(store, time)
    await rig.channel()
    await rig.channel({ name: 'acme' }, 1)
    await rig.channel({ name: 'beta' }, 2)
    const rule = { on: 'node_down', group_seconds: 0 }
    await rig.rule(rule)
    await rig.rule({ ...rule, channels: ['acme'] }, 1)
    await rig.rule({ ...rule, channels: ['beta'] }, 2)
    rig.alerts.start()
    await rig.write(nodeEvent(1, 'down'))
    await pass(minute)
    expect(rig.sent.map(({ channel }) => channel).toSorted()).toEqual(['acme', 'noc'])
  })
})

describe('thresholds', () => {
  test('a disk that cannot be read keeps nothing else from being measured', async () => {
    const disks = () => {
      throw new Error('EIO')
    }
    const rig = alertRig(store, time, { disks })
    await rig.channel()
    await rig.rule({ on: 'disk_low', threshold: 10, group_seconds: 0 })
    await rig.rule({ on: 'certificate_expiring', threshold: 14, group_seconds: 0 })
    const notAfter = time.now() + 84 * hour
    rig.alerts.watchCertificates(() => [{ use: 'api', file: '/tls/api.pem', notAfter }])
    rig.alerts.start()
    await pass(2 * minute)
    expect(textsOf(rig.sent)).toEqual([
      ['The certificate /tls/api.pem (api) at instance a expires in 3 days'],
    ])
    expect(rig.problems).toContainEqual([
      'alert: an instance cannot be measured',
      { rule: 'disk_low', error: new Error('EIO') },
    ])
  })

  test('a rule that cannot be measured keeps no other from that, and nothing from ending', async () => {
    const rig = alertRig(store, time)
    await rig.channel()
    const carrier = "(id, name, created_at, updated_at) VALUES (3, 'north', 0, 0)"
    await runSql(store, `INSERT INTO carrier ${carrier}`)
    await rig.rule({ on: 'carrier_down', group_seconds: 0 })
    await rig.rule({ on: 'balance_below', threshold: 5, group_seconds: 0 })
    await rig.rule({ on: 'webhook_failing', threshold: 3, group_seconds: 0 })
    await runSql(
      store,
      `INSERT INTO webhook_endpoint (id, url, secret, events, created_at, updated_at, is_active,
        disabled_reason) VALUES (1, 'https://a.example', '', '[]', 0, 0, 0, 'gone')`,
    )
    const data = { carrier_id: 3, carrier: 'north', reason: 'no answer' }
    await rig.write({ type: 'carrier.down', tenantId: null, data })
    // As a server ends a statement that takes too long.
    await runSql(store, 'ALTER TABLE wallet RENAME COLUMN balance_micros TO balance')
    rig.alerts.start()
    await pass(minute / 2)
    await runSql(store, 'DELETE FROM alert_witness')
    await pass(5 * minute)
    expect(textsOf(rig.sent).flat()).toEqual([
      'Carrier north is out of service: no answer',
      'Webhook https://a.example was switched off: gone',
      'over: Carrier north is out of service: no answer. No instance sees it so any more',
    ])
    expect(rig.problems).toContainEqual([
      'alert: a rule cannot be measured',
      { rule: 'balance_below', error: expect.any(Error) },
    ])
  })

  test('a disk opens one alert while it trembles at its threshold', async () => {
    let freeBytes = 30
    const disks = () => [{ folder: '/data', freeBytes, totalBytes: 100 }]
    const rig = alertRig(store, time, { disks })
    await rig.channel()
    await rig.rule({ on: 'disk_low', threshold: 10, group_seconds: 0 })
    rig.alerts.start()
    await pass(3 * minute)
    expect(rig.sent).toEqual([])
    for (const free of [9.9, 10.2, 9.8, 10.5, 9, 10.9]) {
      freeBytes = free
      await pass(2 * minute)
    }
    expect(textsOf(rig.sent)).toEqual([
      ['The disk of /data at instance a has 9.9 % left (limit: 10 %)'],
    ])
    freeBytes = 11
    await pass(2 * minute)
    expect(textsOf(rig.sent).at(1)?.[0]).toMatch(/^over: The disk of \/data/)
  })

  test('a balance below its limit is told, and its end when it is clearly above', async () => {
    await runSql(
      store,
      `INSERT INTO rate_plan (id, name, currency, created_at)
      VALUES (1, 'plan', 'EUR', 0)`,
    )
    await runSql(
      store,
      `INSERT INTO customer (id, name, rate_plan_id, created_at, updated_at)
      VALUES (1, 'nova', 1, 0, 0), (2, 'luna', 1, 0, 0)`,
    )
    await runSql(
      store,
      `INSERT INTO wallet (customer_id, currency, balance_micros, updated_at)
      VALUES (1, 'EUR', 4990000, 0), (2, 'EUR', 50000000, 0)`,
    )
    const rig = alertRig(store, time)
    await rig.channel()
    await rig.rule({ on: 'balance_below', threshold: 5, group_seconds: 0 })
    rig.alerts.start()
    await pass(2 * minute)
    expect(textsOf(rig.sent)).toEqual([['Customer nova has 4.99 EUR left (limit: 5)']])
    await runSql(store, 'UPDATE wallet SET balance_micros = 5100000 WHERE customer_id = 1')
    await pass(2 * minute)
    expect(rig.sent).toHaveLength(1)
    await runSql(store, 'UPDATE wallet SET balance_micros = 9000000 WHERE customer_id = 1')
    await pass(2 * minute)
    expect(rig.sent).toHaveLength(2)
    expect(rig.problems).toEqual([])
  })
})
