import { gunzipSync } from 'node:zlib'
import { expect, test } from 'vitest'
import { routeNotes } from '../../../control/http/validate.ts'
import { openControl } from '../../support/control.ts'
import { documentOf } from '../../support/documented.ts'
import { lookUp, problemsOf } from '../../support/json-schema.ts'

type Json = Readonly<Record<string, unknown>>
interface Media {
  readonly schema: Json
  readonly example: unknown
}

const control = await openControl()
const routes = routeNotes(control.app)
const notes = routes.filter(({ operation }) => operation !== undefined)
const { document } = documentOf(control.app)

function* operationsOf(): Generator<{ name: string; operation: Json }> {
  for (const [path, methods] of Object.entries(document['paths'] as Record<string, Json>))
    for (const [method, operation] of Object.entries(methods))
      yield { name: `${method.toUpperCase()} ${path}`, operation: operation as Json }
}

function operationOf(method: string, path: string): Json {
  const wanted = `${method} ${path.replaceAll(/:(\w+)/g, '{$1}')}`
  const found = [...operationsOf()].find(({ name }) => name === wanted)
  if (found === undefined) throw new Error(`${wanted} is not in the document`)
  return found.operation
}

test('every route of the API is described', () => {
  const undescribed = routes.filter(({ operation }) => operation === undefined)
  expect(undescribed.map(({ method, path }) => `${method} ${path}`)).toEqual([])
})

test('every operation has a name of its own, a tag, a summary, security and errors', () => {
  const names = new Set<unknown>()
  for (const { name, operation } of operationsOf()) {
    expect([name, operation['operationId']]).toEqual([
      name,
      expect.stringMatching(/^[a-z][a-zA-Z]+$/),
    ])
    names.add(operation['operationId'])
    expect([name, operation['summary']]).toEqual([name, expect.stringMatching(/^[A-Z].{5,}/)])
    expect(operation['tags']).toHaveLength(1)
    expect(Array.isArray(operation['security'])).toBe(true)
    const statuses = Object.keys(operation['responses'] as Json)
    expect([name, statuses.filter((status) => status < '400' && status !== '206').length]).toEqual([
      name,
      1,
    ])
    expect(statuses).toEqual(expect.arrayContaining(['429', '500']))
  }
  expect(names.size).toBe(notes.length)
})

test('what a route demands stands in its security, with the scope', () => {
  for (const { method, path, access } of notes) {
    const { security } = operationOf(method, path) as { security: Record<string, string[]>[] }
    const scopes = new Set(security.flatMap((scheme) => Object.values(scheme).flat()))
    expect([path, [...scopes]]).toEqual([path, access?.kind === 'scope' ? [access.scope] : []])
    expect([path, security.length === 0]).toEqual([path, access?.kind === 'public'])
  }
})

test('every example is what its schema says, of answers and of errors', () => {
  const responses = Object.values(
    lookUp(document, '#/components/responses') as Record<string, Json>,
  )
  const all = [...operationsOf()].flatMap(({ operation }) =>
    Object.values(operation['responses'] as Record<string, Json>),
  )
  for (const response of [...all, ...responses])
    for (const media of Object.values((response['content'] ?? {}) as Record<string, Media>)) {
      expect(media.example).toBeDefined()
      expect(problemsOf(media.example, media.schema, document)).toEqual([])
    }
})

test('every example of a body would be accepted', async () => {
  for (const { method, path, json, operation } of notes) {
    const body = operation?.body
    if (json === undefined) continue
    const parsed = await json.safeParseAsync(body)
    expect([path, parsed.error?.issues]).toEqual([path, undefined])
    const { requestBody } = operationOf(method, path) as {
      requestBody: { content: Record<string, Media> }
    }
    const media = requestBody.content['application/json']
    expect([path, problemsOf(body, media?.schema ?? {}, document)]).toEqual([path, []])
  }
})

test('an answer that is not as documented fails the test that got it', async () => {
  const { engine, request, key } = await openControl()
  engine.figures = { active_calls: -1 }
  await expect(request('/metrics/telemetry', { token: await key() })).rejects.toThrow(
    'not as documented',
  )
})

test('GET /openapi.json is this document, of this version, without a credential', async () => {
  const answer = await control.request('/openapi.json')
  expect(answer.status).toBe(200)
  expect(answer.body).toMatchObject({ openapi: '3.1.0', info: { version: '0.0.0-test' } })
  expect(Object.keys((answer.body as { paths: object }).paths)).toEqual(
    Object.keys(document['paths'] as object),
  )
})

test('the page loads nothing from elsewhere, and what it loads is there', async () => {
  const page = await control.request('/docs')
  expect(page.headers.get('content-type')).toMatch(/^text\/html/)
  const policy = page.headers.get('content-security-policy') ?? ''
  expect(policy).toContain("script-src 'self';")
  expect(policy).not.toMatch(/https?:|\*/)
  expect(page.text).not.toMatch(/<script>|https?:|style=/)
  const sources = [...page.text.matchAll(/<(?:script|link) [^>]*(?:src|href)="(\/[^"]+)"/g)].map(
    ([, path = '']) => path,
  )
  expect(sources).toHaveLength(3)
  for (const path of sources) {
    const file = await control.app.request(path)
    expect([path, file.status, (await file.text()).length > 50]).toEqual([path, 200, true])
    expect(file.headers.get('content-type')).toMatch(/^text\/(?:css|javascript)/)
  }
  for (const path of ['/docs/package.json', '/docs/..%2Fpackage.json', '/docs/%2e%2e%2fx'])
    expect((await control.request(path)).status).toBe(404)
})

test('GET / needs no credential and links to what the API serves', async () => {
  const page = await control.request('/')
  expect([page.status, page.headers.get('content-type')]).toEqual([
    200,
    expect.stringMatching(/^text\/html/),
  ])
  expect(page.text).not.toMatch(/<script|https?:/)
  const links = [...page.text.matchAll(/href="(\/[^"]+)"/g)].map(([, path = '']) => path)
  expect(links).toEqual(expect.arrayContaining(['/docs', '/openapi.json', '/readyz']))
  for (const path of links)
    expect([path, (await control.app.request(path)).status]).toEqual([path, 200])
})

test.each([
  ['gzip, br', 'gzip'],
  ['br', null],
  ['gzip;q=0', null],
])('the document for Accept-Encoding %s is encoded as %s', async (accepted, encoding) => {
  const headers = { 'Accept-Encoding': accepted }
  const answer = await control.app.request('/openapi.json', { headers })
  expect(answer.headers.get('content-encoding')).toBe(encoding)
  expect(answer.headers.get('vary')).toContain('Accept-Encoding')
  const bytes = Buffer.from(await answer.arrayBuffer())
  const text = (encoding === null ? bytes : gunzipSync(bytes)).toString('utf8')
  expect(JSON.parse(text)).toHaveProperty('openapi', '3.1.0')
})
