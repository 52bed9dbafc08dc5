import { expect, test } from 'vitest'
import { type Answer, openControl } from '../../support/control.ts'
import { failing, readRows, readValue } from '../../support/stored.ts'

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

/** What the repeated response about a key has in common with the first. */
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

test('the same key with another body is 409', async () => {
  const { create, total } = await opened()
  await create('order-1')
  const other = await create('order-1', { name: 'ci 2' })
  expect([other.status, other.code]).toEqual([409, 'idempotency_conflict'])
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

test('a concurrent request with another body is 409', async () => {
  const { create } = await opened()
  const [first, other] = await Promise.all([create('order-1'), create('order-1', { name: 'ci 2' })])
  expect([first.status, other.status]).toEqual([201, 409])
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
