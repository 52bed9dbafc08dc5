/** The OCS goes away, comes back, and refuses, on real sockets; time is virtual. */
import { join } from 'node:path'
import { afterEach, expect, test } from 'vitest'
import { ExternalCharging } from '../../../../engine/charging/external/external-charging.ts'
import type { LocalStore } from '../../../../schema/open.ts'
import { endedCall, freshStore, openCall, start } from '../../../support/books.ts'
import { FakeOcs, until } from '../../../support/fake-ocs.ts'
import { journalOf } from '../../../support/journals.ts'
import { ManualTime } from '../../../support/manual-time.ts'
import { temporaryFolder } from '../../../support/temporary-folder.ts'

const folder = temporaryFolder()
let files = 0

/** Charges each call once, as an OCS does, and counts what it took. */
class Bank {
  readonly charged = new Map<unknown, unknown>()
  readonly ocs = new FakeOcs(({ body }) => {
    const isDuplicate = this.charged.has(body.call_uuid)
    if (!isDuplicate) this.charged.set(body.call_uuid, body.billsec)
    return { kind: 'answer', status: 200, body: { cost: '0.50', duplicate: isDuplicate } }
  })
}

const cleanUp: (() => void | Promise<void>)[] = []
afterEach(async () => {
  for (const work of cleanUp.splice(0).toReversed()) await work()
})

async function openBank(): Promise<Bank> {
  const bank = new Bank()
  await bank.ocs.start()
  cleanUp.push(() => bank.ocs.stop())
  return bank
}

function newPath(): string {
  files += 1
  return join(folder, `outbox-${files}.db`)
}

function process(path: string, url: string, time = new ManualTime(start)) {
  const store = freshStore(path)
  const log: string[] = []
  const charging = new ExternalCharging({
    store,
    journal: journalOf(store, time.schedule),
    node: 'main',
    url,
    token: undefined,
    timeoutMs: 1_000,
    failMode: 'closed',
    now: time.now,
    wallNow: time.wallNow,
    schedule: time.schedule,
    random: () => 0.5,
    log: (_, message) => log.push(message),
  })
  /** As `kill -9` does: what was not written is lost, what was is there. */
  const kill = () => {
    void charging.stop()
    store.close()
  }
  cleanUp.push(() => {
    if (store.sqlite.open) kill()
  })
  const eventually = (condition: () => boolean) =>
    until(() => {
      if (condition()) return true
      time.advance(100)
      return false
    })
  return { store, charging, time, log, kill, eventually }
}

const count = (store: LocalStore, table: string) =>
  Number(store.sqlite.prepare(`SELECT count(*) FROM ${table}`).pluck().get())

test('while the OCS is away records wait; when it is back each is charged once', async () => {
  const bank = await openBank()
  await bank.ocs.stop()
  const { charging, store, eventually, log } = process(newPath(), bank.ocs.url)
  await charging.start()
  const stored = Array.from({ length: 250 }, (_, index) =>
    charging.report(endedCall(`call-${index}`, index)),
  )
  await eventually(() => count(store, 'cdr') === 250 && log.length > 0)
  await Promise.all(stored)
  expect(count(store, 'cdr_outbox')).toBe(250)
  await bank.ocs.start()
  await eventually(() => count(store, 'cdr_outbox') === 0)
  expect(bank.charged.size).toBe(250)
  expect([...bank.charged.values()].toSorted((a, b) => Number(a) - Number(b))).toEqual(
    Array.from({ length: 250 }, (_, index) => index),
  )
  expect(count(store, 'cdr WHERE cost_micros = 500000')).toBe(250)
  expect(log).toEqual([
    'charging: the OCS does not answer; CDRs wait',
    'charging: the OCS answers again',
  ])
})

test('an OCS that is away is asked by one record at a time, less and less often', async () => {
  const bank = await openBank()
  bank.ocs.behave(() => ({ kind: 'drop' }))
  const { charging, time, eventually } = process(newPath(), bank.ocs.url)
  await charging.start()
  for (let index = 0; index < 20; index += 1) void charging.report(endedCall(`call-${index}`, 1))
  await eventually(() => bank.ocs.seen.length >= 8)
  const askedAt: number[] = []
  for (let tries = bank.ocs.seen.length; askedAt.length < 5; tries = bank.ocs.seen.length) {
    await eventually(() => bank.ocs.seen.length > tries)
    askedAt.push(time.now())
  }
  const gaps = askedAt.slice(1).map((at, index) => at - (askedAt[index] ?? 0))
  expect(gaps).toEqual(gaps.toSorted((a, b) => a - b))
  expect(Math.max(...gaps)).toBeLessThanOrEqual(30_000)
  // The eight that met the first silence together count as one.
  expect(gaps[0]).toBeLessThan(2_000)
})

test('records that were not delivered are delivered by the next run', async () => {
  const bank = await openBank()
  await bank.ocs.stop()
  const path = newPath()
  const first = process(path, bank.ocs.url)
  await first.charging.start()
  const stored = first.charging.report(endedCall('a', 30))
  first.time.advance(100)
  await stored
  first.kill()
  await bank.ocs.start()
  const second = process(path, bank.ocs.url)
  await second.charging.start()
  await second.eventually(() => count(second.store, 'cdr_outbox') === 0)
  expect([...bank.charged]).toEqual([['a', 30]])
})

test('a run whose clock was a year ahead leaves no record that waits for a year', async () => {
  const bank = await openBank()
  await bank.ocs.stop()
  const path = newPath()
  const first = process(path, bank.ocs.url, new ManualTime(start + 365 * 86_400_000))
  await first.charging.start()
  const stored = first.charging.report(endedCall('a', 30))
  first.time.advance(100)
  await stored
  first.kill()
  await bank.ocs.start()
  const second = process(path, bank.ocs.url)
  await second.charging.start()
  await second.eventually(() => count(second.store, 'cdr_outbox') === 0)
  expect([...bank.charged]).toEqual([['a', 30]])
})

test('a record that was delivered but not acknowledged in time is charged once', async () => {
  const bank = await openBank()
  const { charging, store, time, eventually } = process(newPath(), bank.ocs.url)
  bank.ocs.behave(({ body }) => {
    bank.charged.set(body.call_uuid, body.billsec)
    bank.ocs.behave(() => ({ kind: 'answer', status: 200, body: { cost: 0.5, duplicate: true } }))
    return { kind: 'hang' }
  })
  await charging.start()
  const stored = charging.report(endedCall('a', 30))
  await eventually(() => bank.ocs.seen.length === 1)
  time.advance(1_000)
  await stored
  await eventually(() => count(store, 'cdr_outbox') === 0)
  expect(bank.ocs.seen.map(({ body }) => body.billsec)).toEqual([30, 30])
  expect(store.sqlite.prepare('SELECT cost_micros FROM cdr').pluck().all()).toEqual([500_000])
})

test('a record that the OCS refuses is kept and tried again later; the others pass it', async () => {
  const bank = await openBank()
  const { charging, store, eventually, time } = process(newPath(), bank.ocs.url)
  bank.ocs.behave(({ body }) =>
    body.call_uuid === 'bad' ? { kind: 'answer', status: 409 } : { kind: 'answer', status: 200 },
  )
  await charging.start()
  void charging.report(endedCall('bad', 1))
  for (let index = 0; index < 30; index += 1) void charging.report(endedCall(`good-${index}`, 1))
  await eventually(() => count(store, 'cdr_outbox') === 1 && bank.ocs.seen.length >= 31)
  const tries = () => bank.ocs.seen.filter(({ body }) => body.call_uuid === 'bad').length
  await eventually(() => tries() >= 4)
  expect(store.sqlite.prepare('SELECT call_uuid, last_error FROM cdr_outbox').all()).toEqual([
    { call_uuid: 'bad', last_error: 'status 409' },
  ])
  expect(time.now() - start).toBeGreaterThan(1_000 * 0.75 * (1 + 2 + 4))
})

test('an answered call that a crash cut off is stored, reported, and charged once', async () => {
  const bank = await openBank()
  const path = newPath()
  const first = process(path, bank.ocs.url)
  void first.charging.answered(openCall('a', start))
  first.time.advance(100)
  first.charging.alive(['a'], start + 41_500)
  first.time.advance(100)
  first.kill()
  const second = process(path, bank.ocs.url)
  expect(await second.charging.start()).toMatchObject({ recoveredCalls: 1, saved: [] })
  await second.eventually(() => count(second.store, 'cdr_outbox') === 0)
  second.kill()
  const third = process(path, bank.ocs.url)
  expect(await third.charging.start()).toMatchObject({ recoveredCalls: 0, saved: [] })
  expect(bank.ocs.seen.map(({ body }) => [body.call_uuid, body.billsec, body.recovered])).toEqual([
    ['a', 42, true],
  ])
})

test('a call that a crash cut off before its answer is reported as failed, one that goes on at its end', async () => {
  const bank = await openBank()
  const path = newPath()
  const first = process(path, bank.ocs.url)
  const { answeredAt: _, ...call } = openCall('dialled', start)
  first.charging.begun(call)
  for (const uuid of ['goes on', 'given up'])
    void first.charging.answered(openCall(uuid, start), 'before')
  first.time.advance(20)
  for (const uuid of ['goes on', 'given up']) first.charging.changed(uuid, 'after')
  first.time.advance(20)
  first.kill()
  const second = process(path, bank.ocs.url, new ManualTime(start + 5_000))
  expect(await second.charging.start()).toMatchObject({
    recoveredCalls: 0,
    unansweredCalls: 1,
    saved: [
      { callUuid: 'goes on', state: 'after' },
      { callUuid: 'given up', state: 'after' },
    ],
  })
  expect(second.charging.resume('goes on')).toBe(true)
  expect(second.charging.resume('dialled')).toBe(false)
  second.charging.abandon('given up')
  second.charging.abandon('goes on')
  let safe = 0
  void second.charging.report(endedCall('goes on', 20), () => (safe += 1))
  second.time.advance(20)
  expect(safe).toBe(1)
  await second.eventually(() => bank.charged.size === 3 && count(second.store, 'cdr_outbox') === 0)
  expect(bank.charged).toEqual(
    new Map([
      ['dialled', 0],
      ['given up', 1],
      ['goes on', 20],
    ]),
  )
  expect(safe).toBe(1)
  expect(
    second.store.sqlite
      .prepare('SELECT call_uuid, disposition, sip_code, hangup_cause, is_recovered FROM cdr')
      .raw()
      .all(),
  ).toEqual([
    ['dialled', 'FAILED', 500, 'PROCESS_RESTART', 1],
    ['given up', 'ANSWERED', 200, 'PROCESS_RESTART', 1],
    ['goes on', 'ANSWERED', 200, 'NORMAL_CLEARING', 0],
  ])
})

test('a run that is killed at any moment of the delivery loses and doubles nothing', async () => {
  const bank = await openBank()
  const path = newPath()
  const time = new ManualTime(start)
  const uuids = Array.from({ length: 40 }, (_, index) => `call-${index}`)
  for (let run = 0; run < 12; run += 1) {
    const { charging, store, kill } = process(path, bank.ocs.url, time)
    await charging.start()
    if (run === 0) {
      const stored = uuids.map((uuid) => charging.report(endedCall(uuid, 7)))
      time.advance(100)
      await Promise.all(stored)
    }
    const seen = bank.ocs.seen.length
    await until(() => {
      time.advance(run % 3)
      return bank.ocs.seen.length >= seen + run || count(store, 'cdr_outbox') === 0
    })
    kill()
  }
  const { charging, store, eventually } = process(path, bank.ocs.url, time)
  await charging.start()
  await eventually(() => count(store, 'cdr_outbox') === 0)
  expect(new Set(bank.charged.keys())).toEqual(new Set(uuids))
  expect(count(store, 'cdr')).toBe(40)
})
