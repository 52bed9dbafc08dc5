import { expect, test, describe } from 'vitest'
import { type Answer, openControl } from '../../support/control.ts'
import { failing, readRows, readValue } from '../../support/stored.ts'
import { errorHandler } from '../../../control/http/front.ts'
import { randomBytes } from 'node:crypto'
import { Hono } from 'hono'
import { readBody } from '../../../control/http/body.ts'
import type { ControlEnv } from '../../../control/http/control-env.ts'
import { Idempotency, repeatable } from '../../../control/auth/idempotency.ts'
import type { InstanceIdentity } from '../../../schema/contracts/instances.ts'
import { registerInstance } from '../../../schema/instances/instance-registry.ts'
import type { Store } from '../../../schema/storage/store.ts'
import { all, execute } from '../../../schema/sql/query.ts'
import { deferred } from '../../support/deferred.ts'
import { serve } from '../../support/in-memory-http.ts'
import { hasPostgres } from '../../support/postgres.ts'
import { sharedDatabase } from '../../support/shared-database.ts'

const KEYS = '/api/v1/application-keys'

const day = 24 * 3_600_000

async function opened() {
  const control = await openControl()
  const admin = await control.key({ name: 'admin' })
  const create = (idempotencyKey: string, body: unknown = { name: 'ci' }, token = admin) =>
    control.request(KEYS, { token, body, headers: { 'Idempotency-Key': idempotencyKey } })
  const total = async () => {
    const { data } = await control.request(`${KEYS}?search=ci`, { token: admin })
    return data<unknown[]>().length
  }
  return { ...control, admin, create, total }
}

/** The part of the response about a key that a repetition has, too. */
const withoutToken = ({ data }: Answer): object => {
  const { token: _, token_omitted: __, ...rest } = data<Record<string, unknown>>()
  return rest
}

test('the same request with the same key is carried out once and answered the same', async () => {
  const { create, total } = await opened()
  const first = await create('order-1')
  const again = await create('order-1')
  expect(first.status).toBe(201)
  expect(again.status).toBe(201)
  expect(withoutToken(again)).toEqual(withoutToken(first))
  for (const name of ['location', 'cache-control', 'content-type'])
    expect(again.headers.get(name)).toBe(first.headers.get(name))
  expect([first, again].map(({ headers }) => headers.get('idempotency-replayed'))).toEqual([
    null,
    'true',
  ])
  expect(await total()).toBe(1)
})

test('the same key with another body is 409, at the same time and later', async () => {
  const { create, total } = await opened()
  const [first, other] = await Promise.all([create('order-1'), create('order-1', { name: 'ci 2' })])
  expect([first.status, other.status]).toEqual([201, 409])
  expect((await create('order-1', { name: 'ci 2' })).code).toBe('idempotency_conflict')
  expect(await total()).toBe(1)
})

test('of requests that arrive at once one is carried out and the others get its answer', async () => {
  const { create, total } = await opened()
  const answers = await Promise.all(Array.from({ length: 20 }, () => create('order-1')))
  expect(new Set(answers.map((answer) => JSON.stringify(withoutToken(answer)))).size).toBe(1)
  expect(answers.filter(({ text }) => text.includes('"token":'))).toHaveLength(1)
  expect(answers.filter(({ headers }) => !headers.has('idempotency-replayed'))).toHaveLength(1)
  expect(await total()).toBe(1)
})

test('a refusal of the operation is kept too, one of the door is not', async () => {
  const { create } = await opened()
  await create('order-1')
  expect((await create('order-2')).status).toBe(409)
  const again = await create('order-2')
  expect([again.code, again.headers.get('idempotency-replayed')]).toEqual(['name_taken', 'true'])

  expect((await create('order-3', { name: '' })).status).toBe(400)
  expect((await create('order-3', { name: 'ci 3' })).status).toBe(201)
})

test('after a server error the same key tries again', async () => {
  const { create, store } = await opened()
  const end = await failing(store, 'INSERT', 'application_key')
  expect((await create('order-1')).status).toBe(500)
  await end()
  expect((await create('order-1')).status).toBe(201)
})

test('an answer is kept for 24 hours', async () => {
  const { create, tick, store } = await opened()
  await create('order-1')
  tick(day - 1)
  expect((await create('order-1')).headers.get('idempotency-replayed')).toBe('true')
  tick(1)
  expect((await create('order-1')).code).toBe('name_taken')
  tick(day)
  await create('order-2', { name: 'ci 2' })
  expect(await readValue(store, 'SELECT count(*) FROM idempotent_answer')).toBe(1)
})

test('the keys of two callers, and of two operations, are different keys', async () => {
  const { create, key, request, admin } = await opened()
  const first = await create('order-1')
  const other = await create('order-1', { name: 'ci 2' }, await key())
  expect(other.status).toBe(201)
  const { uuid } = first.data<{ uuid: string }>()
  const rotated = await request(`${KEYS}/${uuid}/rotate`, {
    token: admin,
    body: { name: 'ci' },
    headers: { 'Idempotency-Key': 'order-1' },
  })
  expect(rotated.status).toBe(400)
})

test('a token is shown once: the repeated response has the key without it, and says why', async () => {
  const { create, admin, request } = await opened()
  const first = await create('order-1')
  const { uuid } = first.data<{ uuid: string }>()
  const rotate = () =>
    request(`${KEYS}/${uuid}/rotate`, {
      token: admin,
      body: { grace_seconds: 60 },
      headers: { 'Idempotency-Key': 'order-2' },
    })
  const pairs = [
    [first, await create('order-1')],
    [await rotate(), await rotate()],
  ]
  for (const [shown, again] of pairs) {
    const { token } = shown?.data<{ token: string }>() ?? {}
    expect(token).toMatch(/^sbc_live_/)
    expect(again?.text).not.toContain(token?.slice(12))
    expect(again?.data()).toMatchObject({
      uuid,
      token_omitted:
        'The token was in the first answer to this Idempotency-Key only, and is not stored. Rotate the key for a new one',
    })
    expect(again?.data()).not.toHaveProperty('token')
  }
})

test('only the caller that can repeat the request can read the stored response', async () => {
  const { create, store, admin, request } = await opened()
  const { token } = (await create('order-1')).data<{ token: string }>()
  const rows = await readRows<{ sealed: Buffer }>(store, 'SELECT * FROM idempotent_answer')
  const kept = JSON.stringify(
    rows.map(({ sealed, ...row }) => ({ ...row, sealed: sealed.toString('latin1') })),
  )
  for (const secret of [token.slice(12), 'order-1', admin.slice(12)])
    expect(kept).not.toContain(secret)

  const self = await request(`${KEYS}/self`, { token: admin })
  const { uuid } = self.data<{ uuid: string }>()
  const rotated = await request(`${KEYS}/${uuid}/rotate`, {
    token: admin,
    body: { grace_seconds: 60 },
  })
  const renewed = await create('order-1', { name: 'ci' }, rotated.data<{ token: string }>().token)
  expect([renewed.status, renewed.code]).toEqual([409, 'idempotency_answer_sealed'])
})

test.each(['', ' ', 'x'.repeat(256)])('the Idempotency-Key "%s" is 400', async (key) => {
  const { create } = await opened()
  expect((await create(key)).status).toBe(400)
})

const minute = 60_000

const anyRun: InstanceIdentity = { name: 'sbc-9', epoch: 1 }

function instanceOn(store: Store, work: () => Promise<number> = async () => 201, run = anyRun) {
  const clock = { now: 0 }
  const carried: string[] = []
  const idempotency = new Idempotency(store, () => clock.now, randomBytes, run)
  const app = new Hono<ControlEnv>()
  app.onError(errorHandler(() => undefined))
  app.use((c, next) => {
    c.set('principal', { actor: 'user:ada', tenantId: null } as never)
    c.set('repetitions', idempotency)
    return next()
  })
  app.post('/orders', repeatable(), async (c) => {
    const body = String(await readBody(c))
    carried.push(body)
    return c.json({ order: body, number: carried.length }, (await work()) as 201)
  })
  const served = serve(app)
  const post = async (body = 'a') => {
    const headers = { 'Idempotency-Key': 'order-1' }
    const answer = await served.request('/orders', { method: 'POST', body, headers })
    const { code, order } = (await answer.json()) as { code?: string; order?: string }
    return { status: answer.status, code, order, again: answer.headers.get('retry-after') }
  }
  return { clock, carried, idempotency, post }
}

describe.runIf(hasPostgres)('an Idempotency-Key at several instances', () => {
  const open = async (work?: () => Promise<number>) => {
    const database = await sharedDatabase()
    const store = await database.open()
    const claims = () => all(store, store.db.selectFrom('idempotent_claim').select('operation'))
    return { here: instanceOn(store, work), there: instanceOn(await database.open(), work), claims }
  }

  test('one instance carries it out, the other one answers that it is in progress, then the same answer', async () => {
    const [begun, end] = [deferred(), deferred()]
    const { here, there, claims } = await open(async () => {
      begun.resolve()
      await end.promise
      return 201
    })
    const first = here.post()
    await begun.promise
    expect(await there.post()).toMatchObject({
      status: 409,
      code: 'idempotency_in_progress',
      again: '1',
    })
    expect(await there.post('b')).toMatchObject({ status: 409, code: 'idempotency_conflict' })
    end.resolve()
    expect(await first).toMatchObject({ status: 201, order: 'a' })
    expect(await there.post()).toMatchObject({ status: 201, order: 'a' })
    expect(await there.post('b')).toMatchObject({ status: 409, code: 'idempotency_conflict' })
    expect([here.carried, there.carried, await claims()]).toEqual([['a'], [], []])
  })

  test('of many at once at two instances, one is carried out', async () => {
    const { here, there } = await open()
    const posts = Array.from({ length: 20 }, (_, n) => (n % 2 === 0 ? here : there).post())
    const answers = await Promise.all(posts)
    expect([...here.carried, ...there.carried]).toEqual(['a'])
    for (const { status, code } of answers)
      expect([[201, undefined].join(), [409, 'idempotency_in_progress'].join()]).toContain(
        [status, code].join(),
      )
  })

  test.each([500, 429])('after %d, another instance may carry it out', async (status) => {
    const results = [status, 201]
    const { here, there } = await open(async () => results.shift() ?? 500)
    expect((await here.post()).status).toBe(status)
    expect((await there.post()).status).toBe(201)
  })

  test('what an instance has begun when it dies is free after five minutes', async () => {
    const database = await sharedDatabase()
    const dead = instanceOn(await database.open(), () => new Promise(() => undefined))
    const alive = instanceOn(await database.open())
    void dead.post()
    await expect.poll(() => dead.carried).toEqual(['a'])
    expect((await alive.post()).status).toBe(409)
    alive.clock.now = 5 * minute
    expect((await alive.post()).status).toBe(201)
  })

  test('starts of other instances, and of one with another disk that takes its name, do not end it', async () => {
    const database = await sharedDatabase()
    const store = await database.open()
    const start = (name: string, installId: string): Promise<InstanceIdentity> =>
      registerInstance(store, { name, installId, address: '', version: '' })
    const run = await start('sbc-1', 'disk 1')
    const dead = instanceOn(await database.open(), () => new Promise(() => undefined), run)
    const alive = instanceOn(store, undefined, await start('sbc-2', 'disk 2'))
    void dead.post()
    await expect.poll(() => dead.carried).toEqual(['a'])
    await start('sbc-2', 'disk 2')
    await execute(store, store.db.updateTable('node').set({ heartbeat_at: 1 }))
    // One that has stood still for long may go on, and does what it has begun.
    await start('sbc-1', 'disk 3')
    expect((await alive.post()).status).toBe(409)
  })

  test('it is free at once when that instance starts again on its disk, which shows that the run before is dead', async () => {
    const database = await sharedDatabase()
    const store = await database.open()
    const instance = { name: 'sbc-1', installId: 'disk 1', address: '', version: '' }
    const dead = instanceOn(
      await database.open(),
      () => new Promise(() => undefined),
      await registerInstance(store, instance),
    )
    void dead.post()
    await expect.poll(() => dead.carried).toEqual(['a'])
    const next = instanceOn(store, undefined, await registerInstance(store, instance))
    expect((await next.post()).status).toBe(201)
    expect(next.carried).toEqual(['a'])
  })
})
