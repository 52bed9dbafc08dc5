/**
 * An OCS of another make, on real sockets: it answers, goes away, comes back, and refuses. Time is
 * virtual.
 */
import { join } from 'node:path'
import { afterEach, describe, expect, test } from 'vitest'
import { ExternalCharging } from '../../../../engine/charging/external/external-charging.ts'
import type { LocalStore } from '../../../../schema/storage/store.ts'
import { endedCall, freshStore, openCall, start } from '../../../support/books.ts'
import { type Behaviour, FakeOcs, type SeenRequest, until } from '../../../support/fake-ocs.ts'
import { journalOf } from '../../../support/journals.ts'
import { ManualTime } from '../../../support/manual-time.ts'
import { temporaryFolder } from '../../../support/temporary-folder.ts'

const cleanUp: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const work of cleanUp.splice(0).toReversed()) await work()
})

const granted: Behaviour = {
  kind: 'answer',
  status: 200,
  body: { customer_id: 7, rate_prefix: '49', currency: 'EUR', granted_seconds: 60 },
}
const charged: Behaviour = {
  kind: 'answer',
  status: 200,
  body: { cost: 0.6417, currency: 'EUR', balance_after: 1, duplicate: false },
}

async function ocsThat(behave: (request: SeenRequest) => Behaviour): Promise<FakeOcs> {
  const ocs = new FakeOcs(behave)
  await ocs.start()
  cleanUp.push(() => ocs.stop())
  return ocs
}

/** Charges each call once, as an OCS does, and counts what it took. */
async function openBank() {
  const taken = new Map<unknown, unknown>()
  const ocs = await ocsThat(({ body }) => {
    const isDuplicate = taken.has(body.call_uuid)
    if (!isDuplicate) taken.set(body.call_uuid, body.billsec)
    return { kind: 'answer', status: 200, body: { cost: '0.50', duplicate: isDuplicate } }
  })
  return { charged: taken, ocs }
}

const folder = temporaryFolder()
let files = 0
const newPath = (): string => join(folder, `outbox-${(files += 1)}.db`)

type Rig = ReturnType<typeof chargingBy>

/** A process of the database at `path`. */
function chargingBy(
  url: string,
  failMode: 'closed' | 'open' = 'closed',
  path?: string,
  time = new ManualTime(start),
) {
  const store = freshStore(path)
  const log: string[] = []
  const charging = new ExternalCharging({
    store,
    journal: journalOf(store, time.schedule),
    instance: 'main',
    url,
    token: 'node-token',
    timeoutMs: 1_000,
    failMode,
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
  cleanUp.push(async () => {
    if (store.sqlite.open) kill()
  })
  /** Lets time and sockets work, a tenth of a second at a time, until the condition holds. */
  const eventually = (condition: () => boolean) =>
    until(() => {
      if (condition()) return true
      time.advance(100)
      return false
    })
  return { charging, store, time, log, kill, eventually }
}

const ask = (callUuid: string, customerId: number | null = null) => ({
  callUuid,
  caller: '+1555 0001',
  callee: '4930&x=1',
  customerId,
  startedAt: start,
})

const count = (store: LocalStore, table: string) =>
  Number(store.sqlite.prepare(`SELECT count(*) FROM ${table}`).pluck().get())

const waiting = (store: LocalStore) => count(store, 'cdr_outbox')

const cdrs = (store: LocalStore) =>
  store.sqlite.prepare('SELECT call_uuid, cost_micros, currency FROM cdr ORDER BY id').all()

const grantOf = (granted_seconds: number) =>
  ({ kind: 'answer', status: 200, body: { granted_seconds } }) as const

// ---- authorize and extend ----------------------------------------------------------------------

test('a 200 grants, with what the OCS tells about the payer', async () => {
  const ocs = await ocsThat(() => granted)
  const { charging } = chargingBy(ocs.url)
  expect(await charging.authorize(ask('a', 7))).toEqual({
    kind: 'granted',
    grantedSeconds: 60,
    account: {
      customerId: 7,
      tenantId: null,
      ratePrefix: '49',
      currency: 'EUR',
      isUnauthorizedByOcs: false,
    },
  })
  const [request] = ocs.seen
  expect(request?.url.pathname).toBe('/api/ocs/authorize')
  expect(Object.fromEntries(request?.url.searchParams ?? [])).toEqual({
    caller: '+1555 0001',
    callee: '4930&x=1',
    call_uuid: 'a',
    customer_id: '7',
  })
  expect(request?.headers.authorization).toBe('Bearer node-token')
})

test('a path in OCS_URL is kept, and an OCS that says nothing but 200 grants without limit', async () => {
  const ocs = await ocsThat(() => ({ kind: 'answer', status: 200 }))
  const { charging } = chargingBy(`${ocs.url}/tenant-a/`)
  const verdict = { kind: 'granted', grantedSeconds: Infinity }
  expect(await charging.authorize(ask('a'))).toMatchObject(verdict)
  expect(ocs.seen[0]?.url.pathname).toBe('/tenant-a/api/ocs/authorize')
})

test('a negative number of granted seconds limits no call', async () => {
  const { charging } = chargingBy((await ocsThat(() => grantOf(-1))).url)
  expect(await charging.authorize(ask('a'))).toMatchObject({ grantedSeconds: Infinity })
})

test.each([201, 204, 402, 404, 500])('any other answer, such as %i, denies', async (status) => {
  const ocs = await ocsThat(() => ({ kind: 'answer', status }))
  const { charging } = chargingBy(ocs.url, 'open')
  const code = `ocs_status_${status}`
  expect(await charging.authorize(ask('a'))).toEqual({ kind: 'denied', code, account: null })
})

const head = (status: string, ...fields: readonly string[]): string =>
  [`HTTP/1.1 ${status}`, ...fields, '', ''].join('\r\n')
const half = '{"code":"insufficient_funds"'

const refusals: Readonly<Record<string, { readonly bytes: string; readonly isClosed: boolean }>> = {
  'whose body does not come': {
    bytes: head('402 Payment Required', 'Content-Length: 40'),
    isClosed: false,
  },
  'whose body stops half-way': {
    bytes: head('402 Payment Required', 'Content-Length: 40') + half,
    isClosed: false,
  },
  'that is cut off in its body': {
    bytes: head('402 Payment Required', 'Content-Length: 40') + half,
    isClosed: true,
  },
  'whose chunk is no chunk': {
    bytes: `${head('402 Payment Required', 'Transfer-Encoding: chunked')}zz\r\n`,
    isClosed: true,
  },
  'in HTTP/1.0 without a length': {
    bytes: head('402 Payment Required').replace('/1.1', '/1.0') + half,
    isClosed: false,
  },
  'that is longer than is read': {
    bytes: head('402 Payment Required', 'Content-Length: 200000') + 'x'.repeat(100_000),
    isClosed: false,
  },
  'that is a page for people': {
    bytes: `${head('402 Payment Required', 'Content-Length: 6')}<html>`,
    isClosed: false,
  },
}

describe.each(Object.entries(refusals))('a refusal %s', (_, answer) => {
  const refused = async (failMode: 'closed' | 'open') => {
    const ocs = await ocsThat(() => ({ kind: 'write', ...answer }))
    const rig = chargingBy(ocs.url, failMode)
    return { ...rig, ocs }
  }
  const soon = async <T>({ time }: Rig, answer: Promise<T>): Promise<T> => {
    let isOver = false
    const over = () => (isOver = true)
    answer.then(over, over)
    const asked = time.now()
    // Less than the time of an answer, however long the sockets take.
    await until(() => {
      if (time.now() - asked < 500) time.advance(20)
      return isOver
    })
    return answer
  }

  test.each(['closed', 'open'] as const)(
    'refuses or ends the call by its status (%s)',
    async (mode) => {
      const rig = await refused(mode)
      const denied = { kind: 'denied', code: 'ocs_status_402' }
      expect(await soon(rig, rig.charging.authorize(ask('a')))).toMatchObject(denied)
      expect(await soon(rig, rig.charging.extend('a', 50))).toEqual(denied)
      expect(rig.ocs.seen).toHaveLength(2)
    },
  )

  test('of a CDR stops no other CDR', async () => {
    const { ocs, charging, store, eventually, log } = await refused('closed')
    ocs.behave(({ body }) => (body.call_uuid === 'bad' ? { kind: 'write', ...answer } : charged))
    await charging.start()
    for (const uuid of ['bad', 'good-1', 'good-2']) void charging.report(endedCall(uuid, 1))
    await eventually(() => log.includes('charging: the OCS refused a CDR') && waiting(store) === 1)
    expect(store.sqlite.prepare('SELECT call_uuid, last_error FROM cdr_outbox').all()).toEqual([
      { call_uuid: 'bad', last_error: 'status 402' },
    ])
    expect(log).not.toContain('charging: the OCS does not answer; CDRs wait')
  })
})

test.each(['101 Switching Protocols', '302 Found'])(
  'a %s is not followed, and denies',
  async (status) => {
    const fields = ['Location: /elsewhere', 'Connection: upgrade', 'Upgrade: x']
    const bytes = head(status, ...fields, 'Content-Length: 0')
    const ocs = await ocsThat(() => ({ kind: 'write', bytes, isClosed: false }))
    const { charging } = chargingBy(ocs.url, 'open')
    expect(await charging.authorize(ask('a'))).toMatchObject({
      kind: 'denied',
      code: `ocs_status_${status.slice(0, 3)}`,
    })
    expect(ocs.seen).toHaveLength(1)
  },
)

test.each(['1.0', '1.1'])(
  'a 200 that is cut off before it says whether it grants is no answer (HTTP/%s)',
  async (version) => {
    const bytes = `${head('200 OK', ...(version === '1.1' ? ['Content-Length: 40'] : []))}{"authorized":fal`
    const ocs = await ocsThat(() => ({
      kind: 'write',
      bytes: bytes.replace('/1.1', `/${version}`),
      isClosed: true,
    }))
    expect(await chargingBy(ocs.url).charging.authorize(ask('a'))).toMatchObject({
      kind: 'unreachable',
    })
  },
)

test('no answer in time refuses the call with fail mode closed', async () => {
  const ocs = await ocsThat(() => ({ kind: 'hang' }))
  const { charging, time } = chargingBy(ocs.url)
  const verdict = charging.authorize(ask('a'))
  await until(() => ocs.seen.length === 1)
  time.advance(1_000)
  expect(await verdict).toEqual({ kind: 'unreachable', retryAfterSeconds: 5 })
})

test('no answer lets the call through with fail mode open, and marks it', async () => {
  const ocs = await ocsThat(() => ({ kind: 'drop' }))
  const { charging } = chargingBy(ocs.url, 'open')
  expect(await charging.authorize(ask('a', 7))).toMatchObject({
    kind: 'granted',
    grantedSeconds: Infinity,
    account: { customerId: 7, isUnauthorizedByOcs: true },
  })
})

test('connections are kept, and one that the OCS closed meanwhile is no failure', async () => {
  const ocs = await ocsThat(() => granted)
  const { charging } = chargingBy(ocs.url)
  await charging.authorize(ask('a'))
  await charging.authorize(ask('b'))
  expect(ocs.connections).toBe(1)
  ocs.dropConnections()
  expect(await charging.authorize(ask('c'))).toMatchObject({ kind: 'granted' })
})

test('an extension asks for more and gets the whole grant since the answer', async () => {
  const body = { granted_seconds: 115 }
  const ocs = await ocsThat(() => ({ kind: 'answer', status: 200, body }))
  const { charging } = chargingBy(ocs.url)
  expect(await charging.extend('a', 54.2)).toEqual({ kind: 'granted', grantedSeconds: 115 })
  expect(ocs.seen[0]).toMatchObject({
    method: 'POST',
    body: { call_uuid: 'a', used_seconds: 55 },
  })
})

test('an extension that is denied, or gets no answer with fail mode closed, is denied', async () => {
  const ocs = await ocsThat(() => ({
    kind: 'answer',
    status: 402,
    body: { code: 'insufficient_funds' },
  }))
  const { charging } = chargingBy(ocs.url)
  expect(await charging.extend('a', 50)).toEqual({ kind: 'denied', code: 'insufficient_funds' })
  ocs.behave(() => ({ kind: 'drop' }))
  expect(await charging.extend('a', 50)).toEqual({ kind: 'denied', code: 'ocs_unreachable' })
  const open = chargingBy(ocs.url, 'open')
  expect(await open.charging.extend('a', 50)).toEqual({ kind: 'granted', grantedSeconds: 110 })
})

test('one lost connection does not end a call: an extension is asked twice', async () => {
  const ocs = await ocsThat(() => ({ kind: 'drop' }))
  ocs.behave(() => (ocs.seen.length === 1 ? { kind: 'drop' } : granted))
  const { charging } = chargingBy(ocs.url)
  expect(await charging.extend('a', 50)).toEqual({ kind: 'granted', grantedSeconds: 60 })
})

// ---- records -----------------------------------------------------------------------------------

test('a call that is free of charge is stored, and the OCS hears nothing of it', async () => {
  const ocs = await ocsThat(() => charged)
  const { charging, store, time } = chargingBy(ocs.url)
  await charging.start()
  const stored = charging.report(endedCall('a', 85, { isFree: true }))
  time.advance(100)
  await stored
  expect(store.sqlite.prepare('SELECT call_uuid FROM cdr').pluck().all()).toEqual(['a'])
  expect(store.sqlite.prepare('SELECT call_uuid FROM cdr_outbox').all()).toEqual([])
})

test('an ended call is stored, delivered, and gets its cost from the OCS', async () => {
  const ocs = await ocsThat(() => charged)
  const { charging, store, eventually } = chargingBy(ocs.url)
  await charging.start()
  const stored = charging.report(endedCall('a', 85))
  await eventually(() => waiting(store) === 0 && ocs.seen.length > 0)
  await stored
  expect(ocs.seen[0]).toMatchObject({
    method: 'POST',
    body: {
      call_uuid: 'a',
      caller: '+15550001',
      callee: '4930123',
      billsec: 85,
      disposition: 'ANSWERED',
      start_stamp: '2026-01-05T10:00:00.000Z',
    },
  })
  expect(cdrs(store)).toEqual([{ call_uuid: 'a', cost_micros: 641_700, currency: 'EUR' }])
})

test('a call that the OCS refused is stored and not reported to it; one it did not answer is', async () => {
  const ocs = await ocsThat(() => ({ kind: 'answer', status: 402 }))
  const { charging, store, eventually } = chargingBy(ocs.url)
  await charging.authorize(ask('refused'))
  ocs.behave(() => ({ kind: 'drop' }))
  await charging.authorize(ask('unknown'))
  const stored = ['refused', 'unknown'].map((uuid) => charging.report(endedCall(uuid, 0)))
  await eventually(() => cdrs(store).length === 2)
  await Promise.all(stored)
  expect(store.sqlite.prepare('SELECT call_uuid FROM cdr_outbox').pluck().all()).toEqual([
    'unknown',
  ])
})

test('while the OCS is away records wait; when it is back each is charged once', async () => {
  const bank = await openBank()
  await bank.ocs.stop()
  const { charging, store, eventually, log } = chargingBy(bank.ocs.url)
  await charging.start()
  const stored = Array.from({ length: 250 }, (_, index) =>
    charging.report(endedCall(`call-${index}`, index)),
  )
  await eventually(() => count(store, 'cdr') === 250 && log.length > 0)
  await Promise.all(stored)
  expect(waiting(store)).toBe(250)
  await bank.ocs.start()
  await eventually(() => waiting(store) === 0)
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
  const { charging, time, eventually } = chargingBy(bank.ocs.url)
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

test('a run whose clock was a year ahead leaves no record that waits for a year', async () => {
  const bank = await openBank()
  await bank.ocs.stop()
  const path = newPath()
  const first = chargingBy(bank.ocs.url, 'closed', path, new ManualTime(start + 365 * 86_400_000))
  await first.charging.start()
  const stored = first.charging.report(endedCall('a', 30))
  first.time.advance(100)
  await stored
  first.kill()
  await bank.ocs.start()
  const second = chargingBy(bank.ocs.url, 'closed', path)
  await second.charging.start()
  await second.eventually(() => waiting(second.store) === 0)
  expect([...bank.charged]).toEqual([['a', 30]])
})

test('a record that was delivered but not acknowledged in time is charged once', async () => {
  const bank = await openBank()
  const { charging, store, time, eventually } = chargingBy(bank.ocs.url)
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
  await eventually(() => waiting(store) === 0)
  expect(bank.ocs.seen.map(({ body }) => body.billsec)).toEqual([30, 30])
  expect(store.sqlite.prepare('SELECT cost_micros FROM cdr').pluck().all()).toEqual([500_000])
})

test('a record that the OCS refuses is kept and tried again later; the others pass it', async () => {
  const bank = await openBank()
  const { charging, store, eventually, time } = chargingBy(bank.ocs.url)
  bank.ocs.behave(({ body }) =>
    body.call_uuid === 'bad' ? { kind: 'answer', status: 409 } : { kind: 'answer', status: 200 },
  )
  await charging.start()
  void charging.report(endedCall('bad', 1))
  for (let index = 0; index < 30; index += 1) void charging.report(endedCall(`good-${index}`, 1))
  await eventually(() => waiting(store) === 1 && bank.ocs.seen.length >= 31)
  const tries = () => bank.ocs.seen.filter(({ body }) => body.call_uuid === 'bad').length
  await eventually(() => tries() >= 4)
  expect(store.sqlite.prepare('SELECT call_uuid, last_error FROM cdr_outbox').all()).toEqual([
    { call_uuid: 'bad', last_error: 'status 409' },
  ])
  expect(time.now() - start).toBeGreaterThan(1_000 * 0.75 * (1 + 2 + 4))
})

test('a call that a crash cut off before its answer is reported as failed, one that goes on at its end', async () => {
  const bank = await openBank()
  const path = newPath()
  const first = chargingBy(bank.ocs.url, 'closed', path)
  const { answeredAt: _, ...call } = openCall('dialled', start)
  first.charging.begun(call)
  for (const uuid of ['goes on', 'given up'])
    void first.charging.answered(openCall(uuid, start), 'before')
  first.time.advance(20)
  for (const uuid of ['goes on', 'given up']) first.charging.changed(uuid, 'after')
  first.time.advance(20)
  first.kill()
  const second = chargingBy(bank.ocs.url, 'closed', path, new ManualTime(start + 5_000))
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
  await second.eventually(() => bank.charged.size === 3 && waiting(second.store) === 0)
  expect(Object.fromEntries(bank.charged)).toEqual({ dialled: 0, 'given up': 1, 'goes on': 20 })
  expect(safe).toBe(1)
  const rows = second.store.sqlite.prepare('SELECT call_uuid, disposition, is_recovered FROM cdr')
  expect(rows.raw().all()).toEqual([
    ['dialled', 'FAILED', 1],
    ['given up', 'ANSWERED', 1],
    ['goes on', 'ANSWERED', 0],
  ])
})

test('a run that is killed at any moment of the delivery loses and doubles nothing', async () => {
  const bank = await openBank()
  const path = newPath()
  const time = new ManualTime(start)
  const uuids = Array.from({ length: 40 }, (_, index) => `call-${index}`)
  for (let run = 0; run < 12; run += 1) {
    const { charging, store, kill } = chargingBy(bank.ocs.url, 'closed', path, time)
    await charging.start()
    if (run === 0) {
      const stored = uuids.map((uuid) => charging.report(endedCall(uuid, 7)))
      // They are more than one batch.
      time.advance(99)
      await until(() => {
        time.advance(1)
        return count(store, 'cdr') === uuids.length
      })
      await Promise.all(stored)
    }
    const seen = bank.ocs.seen.length
    await until(() => {
      time.advance(run % 3)
      return bank.ocs.seen.length >= seen + run || waiting(store) === 0
    })
    kill()
  }
  const { charging, store, eventually } = chargingBy(bank.ocs.url, 'closed', path, time)
  await charging.start()
  await eventually(() => waiting(store) === 0)
  expect(new Set(bank.charged.keys())).toEqual(new Set(uuids))
  expect(count(store, 'cdr')).toBe(40)
})
