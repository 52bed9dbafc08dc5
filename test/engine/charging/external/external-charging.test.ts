import { afterEach, describe, expect, test } from 'vitest'
import { ExternalCharging } from '../../../../engine/charging/external/external-charging.ts'
import type { LocalStore } from '../../../../schema/open.ts'
import { endedCall, freshStore, start } from '../../../support/books.ts'
import { type Behaviour, FakeOcs, type SeenRequest, until } from '../../../support/fake-ocs.ts'
import { journalOf } from '../../../support/journals.ts'
import { ManualTime } from '../../../support/manual-time.ts'

const cleanUp: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const work of cleanUp.splice(0)) await work()
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

interface Rig {
  readonly charging: ExternalCharging
  readonly store: LocalStore
  readonly time: ManualTime
  readonly log: string[]
  /** Lets time and sockets work, ten milliseconds at a time, until the condition holds. */
  eventually(condition: () => boolean): Promise<void>
}

function chargingBy(
  url: string,
  failMode: 'closed' | 'open' = 'closed',
  store = freshStore(),
  time = new ManualTime(start),
): Rig {
  const log: string[] = []
  const charging = new ExternalCharging({
    store,
    journal: journalOf(store, time.schedule),
    node: 'main',
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
  cleanUp.push(async () => void charging.stop())
  const eventually = (condition: () => boolean) =>
    until(() => {
      if (condition()) return true
      time.advance(100)
      return false
    })
  return { charging, store, time, log, eventually }
}

const ask = (callUuid: string, customerId: number | null = null) => ({
  callUuid,
  caller: '+1555 0001',
  callee: '4930&x=1',
  customerId,
  startedAt: start,
})

const waiting = (store: LocalStore) =>
  store.sqlite.prepare('SELECT count(*) FROM cdr_outbox').pluck().get()

const cdrs = (store: LocalStore) =>
  store.sqlite.prepare('SELECT call_uuid, cost_micros, currency FROM cdr ORDER BY id').all()

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

test('a path in OCS_URL is kept', async () => {
  const ocs = await ocsThat(() => granted)
  await chargingBy(`${ocs.url}/tenant-a/`).charging.authorize(ask('a'))
  expect(ocs.seen[0]?.url.pathname).toBe('/tenant-a/api/ocs/authorize')
})

test('an OCS of another make that says nothing but 200 grants without limit', async () => {
  const ocs = await ocsThat(() => ({ kind: 'answer', status: 200 }))
  const { charging } = chargingBy(ocs.url)
  expect(await charging.authorize(ask('a'))).toMatchObject({
    kind: 'granted',
    grantedSeconds: Infinity,
  })
})

test.each([201, 204, 402, 403, 404, 500, 503])(
  'any other answer, such as %i, denies',
  async (status) => {
    const ocs = await ocsThat(() => ({ kind: 'answer', status }))
    const { charging } = chargingBy(ocs.url, 'open')
    expect(await charging.authorize(ask('a'))).toEqual({
      kind: 'denied',
      code: `ocs_status_${status}`,
      account: null,
    })
  },
)

test('the code of a denial is the one that the OCS names', async () => {
  const body = { success: false, code: 'insufficient_funds' }
  const ocs = await ocsThat(() => ({ kind: 'answer', status: 402, body }))
  const { charging } = chargingBy(ocs.url)
  expect(await charging.authorize(ask('a'))).toMatchObject({ code: 'insufficient_funds' })
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
  const soon = async <T>({ time }: Rig, asked: Promise<T>): Promise<T> => {
    let isOver = false
    const over = () => (isOver = true)
    asked.then(over, over)
    // Less than the time of an answer, however long the sockets take.
    await until(() => {
      if (time.now() - start < 500) time.advance(20)
      return isOver
    })
    return asked
  }

  test.each(['closed', 'open'] as const)('refuses the call by its status (%s)', async (mode) => {
    const rig = await refused(mode)
    expect(await soon(rig, rig.charging.authorize(ask('a')))).toMatchObject({
      kind: 'denied',
      code: 'ocs_status_402',
    })
  })

  test.each(['closed', 'open'] as const)('ends the call by its status (%s)', async (mode) => {
    const rig = await refused(mode)
    expect(await soon(rig, rig.charging.extend('a', 50))).toEqual({
      kind: 'denied',
      code: 'ocs_status_402',
    })
    expect(rig.ocs.seen).toHaveLength(1)
  })

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

test.each(['101 Switching Protocols', '302 Found', '308 Permanent Redirect', '502 Bad Gateway'])(
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

test('a closed port is no answer', async () => {
  const ocs = await ocsThat(() => granted)
  await ocs.stop()
  const { charging } = chargingBy(ocs.url)
  expect(await charging.authorize(ask('a'))).toMatchObject({ kind: 'unreachable' })
  await ocs.start()
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

test('a record counts as stored without waiting for the OCS', async () => {
  const ocs = await ocsThat(() => ({ kind: 'hang' }))
  const { charging, store, time } = chargingBy(ocs.url)
  await charging.start()
  const stored = charging.report(endedCall('a', 85))
  time.advance(100)
  await stored
  expect(waiting(store)).toBe(1)
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

test('a record reported twice is stored once and delivered once', async () => {
  const ocs = await ocsThat(() => charged)
  const { charging, store, eventually } = chargingBy(ocs.url)
  await charging.start()
  const both = [charging.report(endedCall('a', 85)), charging.report(endedCall('a', 85))]
  await eventually(() => waiting(store) === 0 && ocs.seen.length > 0)
  await Promise.all(both)
  expect(ocs.seen).toHaveLength(1)
  expect(cdrs(store)).toHaveLength(1)
})
