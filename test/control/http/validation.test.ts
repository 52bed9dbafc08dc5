import { Hono } from 'hono'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { z } from 'zod'
import { MAX_BODY_BYTES } from '../../../control/http/body.ts'
import type { ControlEnv } from '../../../control/http/control-env.ts'
import { errorHandler } from '../../../control/http/front.ts'
import { openApiDocument } from '../../../control/http/openapi-document.ts'
import { describeRoute, routeNotes, validate } from '../../../control/http/validate.ts'
import { openControl } from '../../support/control.ts'
import { runSql } from '../../support/stored.ts'

const KEYS = '/api/v1/application-keys'

async function opened() {
  const control = await openControl()
  const token = await control.key()
  const post = (body: unknown, headers: Record<string, string> = {}) =>
    control.request(KEYS, { token, body, headers, method: 'POST' })
  const get = (query: string) => control.request(`${KEYS}?${query}`, { token })
  return { ...control, token, post, get }
}

test.each([
  ['no JSON', '{"name":'],
  ['text behind JSON', '{"name":"a"} x'],
  ['a raw NUL', '{"name":"a\0"}'],
  ['an XML document', '<name>a</name>'],
])('%s is 400 malformed_json in the envelope', async (_, body) => {
  const { post } = await opened()
  const answer = await post(body)
  expect(answer.body).toMatchObject({
    success: false,
    error: expect.any(String),
    statusCode: 400,
    code: 'malformed_json',
    request_id: answer.headers.get('x-correlation-id'),
  })
})

test('every problem of a body is told, each with its path', async () => {
  const { post } = await opened()
  const answer = await post({ name: 7, scopes: ['x', 'y'], a: 1, b: 2 })
  const { details } = answer.body as { details: { path: string; message: string }[] }
  expect(details.map(({ path }) => path).toSorted()).toEqual([
    'a',
    'b',
    'name',
    'scopes.0',
    'scopes.1',
  ])
})

test('of a body full of unknown fields the first hundred are told, and no more are looked at', async () => {
  const { post } = await opened()
  const unknown = Array.from({ length: 2_000 }, (_, n) => [`scopez${n.toString(36)}`, 0] as const)
  const answer = await post(JSON.stringify(Object.fromEntries(unknown)))
  const { details } = answer.body as { details: { path: string; message: string }[] }
  expect([answer.status, details.length]).toEqual([400, 100])
  expect(details.map(({ message }) => message)).toContain('Unknown field: did you mean "scopes"?')
})

test('an escaped NUL is 400 at its path, in values and in names', async () => {
  const { post } = await opened()
  const inValue = await post('{"name":"a","scopes":["\\u0000"]}')
  expect(inValue.body).toMatchObject({ statusCode: 400, details: [{ path: 'scopes.0' }] })
  const inName = await post('{"na\\u0000me":"a"}')
  expect(inName.body).toMatchObject({
    statusCode: 400,
    details: [{ path: 'na\0me', message: 'contains a NUL character' }],
  })
})

test('half a surrogate pair is 400 at its path, a whole one is kept', async () => {
  const { post } = await opened()
  const half = String.raw`{"name":"a","description":"x\ud83d"}`
  expect((await post(half)).body).toMatchObject({
    details: [{ path: 'description', message: 'contains half a surrogate pair' }],
  })
  const whole = String.raw`{"name":"a","description":"x\ud83d\ude00"}`
  expect((await post(whole)).body).toMatchObject({ data: { description: 'x😀' } })
})

test('deep nesting is 400 and no more work than any other body', async () => {
  const { post } = await opened()
  const deep = `${'{"a":'.repeat(10_000)}1${'}'.repeat(10_000)}`
  expect((await post(deep)).status).toBe(400)
  expect((await post(`{"name":${'['.repeat(33)}${']'.repeat(33)}}`)).status).toBe(400)
})

test.each(['text/plain', 'application/x-www-form-urlencoded', 'text/json', ''])(
  'a body of type "%s" is 415',
  async (type) => {
    const { post } = await opened()
    const answer = await post('{"name":"a"}', { 'content-type': type })
    expect([answer.status, answer.code]).toEqual([415, 'unsupported_media_type'])
  },
)

test('a body that says it is compressed is 415: nothing here unpacks it', async () => {
  const { post } = await opened()
  const status = async (encoding: string) =>
    (await post({ name: 'a' }, { 'Content-Encoding': encoding })).status
  expect([await status('gzip'), await status('identity')]).toEqual([415, 201])
})

test('a body of 64 KiB is read, one byte more is 413', async () => {
  const { post } = await opened()
  const body = (size: number) => `{"name":"${'x'.repeat(size - '{"name":""}'.length)}"}`
  expect((await post(body(MAX_BODY_BYTES))).status).toBe(400)
  const large = await post(body(MAX_BODY_BYTES + 1))
  expect([large.status, large.code]).toEqual([413, 'body_too_large'])
})

test('pages hold 50 by default and 200 at most; the effective limit is told', async () => {
  const { get } = await opened()
  expect((await get('')).body).toMatchObject({ meta: { page: 1, limit: 50, total: 1 } })
  expect((await get('limit=5000')).body).toMatchObject({ meta: { limit: 200 } })
  expect((await get('page=999999999')).body).toMatchObject({ data: [] })
})

test('a query parameter that is given twice is 400 at its name', async () => {
  const { get } = await opened()
  expect((await get('page=1&page=2')).body).toMatchObject({
    statusCode: 400,
    details: [{ path: 'page', message: 'is given more than once' }],
  })
})

test('a body that is not UTF-8 is 400, and nothing of it is stored', async () => {
  const { app, token, get } = await opened()
  const headers = { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' }
  const body = Buffer.from('{"name":"Z\xfcrich"}', 'latin1')
  const answer = await app.request(KEYS, { method: 'POST', headers, body })
  expect(await answer.json()).toMatchObject({ statusCode: 400, code: 'malformed_json' })
  expect((await get('search=rich')).body).toMatchObject({ data: [] })
})

/** Half a surrogate pair cannot be sent. */
const wellFormed = (text: string): string => Buffer.from(text).toString()

test('whatever stands in a query or a path, the answer is an envelope and no 500', async () => {
  const { request, token } = await opened()
  const nasty = fc.oneof(
    fc.string({ unit: 'binary', maxLength: 30 }),
    fc.constantFrom("' OR 1=1 --", '%00', '\0', '../../etc/passwd', '%', '%zz', '\u2028', '😀'),
  )
  await fc.assert(
    fc.asyncProperty(nasty, nasty, async (segment, search) => {
      const path = `${KEYS}/${encodeURIComponent(wellFormed(segment))}`
      const query = new URLSearchParams({ search }).toString()
      for (const answer of [
        await request(path, { token }),
        await request(`${KEYS}?${query}`, { token }),
        await request(`${KEYS}?search=${wellFormed(search)}`, { token }),
      ]) {
        expect([200, 400, 404]).toContain(answer.status)
        expect(answer.body).toHaveProperty('success')
      }
    }),
    { numRuns: 60 },
  )
})

test('a path that has no route is 404, a method that it has not is 405 with those it has', async () => {
  const { request } = await opened()
  const nowhere = await request('/api/v1/nowhere', { method: 'POST' })
  expect([nowhere.status, nowhere.code]).toEqual([404, 'not_found'])
  const put = await request(KEYS, { method: 'PUT' })
  expect([put.status, put.code]).toEqual([405, 'method_not_allowed'])
  expect(put.headers.get('allow')).toBe('GET, POST, HEAD, OPTIONS')
  expect((await request(`${KEYS}/x/rotate`)).headers.get('allow')).toBe('POST, OPTIONS')
})

test('an error of the program is 500, logged with its stack, and tells the caller nothing', async () => {
  const { request, token, store, logged } = await opened()
  await request('/api/v1/health', { token })
  await runSql(store, 'ALTER TABLE application_key RENAME TO secret_name')
  const answer = await request(KEYS, { token })
  expect(answer.body).toMatchObject({
    success: false,
    error: 'Internal error',
    statusCode: 500,
    code: 'internal_error',
  })
  expect(answer.text).not.toMatch(/sqlite|postgres|table|relation|secret|at /i)
  expect(JSON.stringify(logged)).toMatch(/no such table|does not exist/)
  expect(JSON.stringify(logged)).not.toContain(token)
})

test('an absent body counts as an empty object', async () => {
  const app = new Hono<ControlEnv>()
  const schema = z.strictObject({ size: z.int().default(3) })
  app.post('/', validate('json', schema), (c) => c.json(c.req.valid('json')))
  expect(await (await app.request('/', { method: 'POST' })).json()).toEqual({ size: 3 })
})

test('the bounds of a definition are those of the document, and are enforced', async () => {
  const app = new Hono<ControlEnv>().onError(errorHandler(() => undefined))
  const schema = z.strictObject({ size: z.int().min(2).max(5), name: z.string().max(3) })
  const answer = { status: 200, content: {} } as const
  const operation = { id: 'resize', tag: 'System', summary: 'Resizes', answer } as const
  app.post('/', describeRoute(operation), validate('json', schema), (c) => c.json({}))
  expect(openApiDocument(routeNotes(app), '0')).toMatchObject({
    components: {
      schemas: {
        ResizeBody: {
          properties: { size: { minimum: 2, maximum: 5 }, name: { maxLength: 3 } },
        },
      },
    },
  })
  const statuses = [
    { size: 2, name: 'abc' },
    { size: 5, name: '' },
    { size: 1, name: '' },
    { size: 6, name: '' },
    { size: 2, name: 'abcd' },
  ].map(async (body) => {
    const headers = { 'content-type': 'application/json' }
    const request = { method: 'POST', headers, body: JSON.stringify(body) }
    return (await app.request('/', request)).status
  })
  expect(await Promise.all(statuses)).toEqual([200, 200, 400, 400, 400])
})
