/**
 * The rules for every body, list and address that the OpenAPI document has, and what no schema can
 * say.
 */
import { beforeAll, expect, test } from 'vitest'
import { documentOf } from '../support/documented.ts'
import { problemsOf } from '../support/json-schema.ts'
import { onSqlite } from '../support/on-sqlite.ts'
import { bodiesOf, fillOwned, ownPath } from '../support/owned-world.ts'
import { collectionOf, operations } from '../support/ownership-rules.ts'
import { openResources, type TestResources } from '../support/resources.ts'

type Json = Readonly<Record<string, unknown>>

let world: TestResources
let document: Json
let ownKey: string

beforeAll(async () => {
  world = await openResources()
  ;({ document } = documentOf(world.app))
  ;({ ownKey } = await fillOwned(world))
})

/** Asks with a key that may do everything; of rates a minute, it asks again later. */
const ask = (method: string, path: string, body?: unknown) => {
  world.tick(100)
  return world.call(method, path, body)
}

const pathsIn = (body: unknown): readonly string[] =>
  (Object(body) as { details?: { path: string }[] }).details?.map(({ path }) => path) ?? []

/** `body` with this value in the place of the leaf; of a list, in its first element. */
function placed(body: unknown, [name, ...rest]: readonly string[], value: unknown): unknown {
  if (name === undefined) return value
  if (Array.isArray(body)) return [placed(body[0] ?? {}, [name, ...rest], value)]
  const object = Object(body) as Json
  return { ...object, [name]: placed(object[name], rest, value) }
}

/** One of these is wrong for nearly every field. */
const values = [true, -1, 0.5, 1e12, '', 'x'.repeat(5_000), [{}]]

onSqlite('no database')(
  'what the document does not allow in a field is refused, with the path of the field',
  async () => {
    const wrong: string[] = []
    for (const { method, path, fields } of bodiesOf(document)) {
      // A change has the same fields.
      if (method === 'patch') continue
      const { body = {} } = operations[collectionOf(path)] ?? {}
      const address = ownPath(path, ownKey)
      for (const [field, schemas] of fields)
        for (const value of values) {
          if (schemas.some((schema) => problemsOf(value, schema, document).length === 0)) continue
          const sent = placed(method === 'post' ? body : {}, field.split('.'), value)
          const answer = await ask(method.toUpperCase(), address, sent)
          const paths = pathsIn(answer.body).map((each) => each.replaceAll(/\.\d+/g, ''))
          const isTold = paths.some((each) => `${field}.`.startsWith(`${each}.`))
          const what = `${method} ${path} ${field} ${JSON.stringify(value).slice(0, 20)}`
          if (answer.status !== 400 || !isTold)
            wrong.push([what, answer.status, paths.join()].join(' | '))
        }
    }
    expect(wrong).toEqual([])
  },
)

test('an unknown field of a body, and an unknown word of a query, is refused by its name', async () => {
  for (const { method, path } of bodiesOf(document)) {
    const { body = {} } = operations[collectionOf(path)] ?? {}
    const sent = { ...(method === 'post' && body), color: 'red' }
    const answer = await ask(method.toUpperCase(), ownPath(path, ownKey), sent)
    expect([path, answer.status, pathsIn(answer.body)]).toEqual([
      path,
      400,
      expect.arrayContaining(['color']),
    ])
  }
  for (const path of lists()) {
    const answer = await ask('GET', `${path}?color=red`)
    expect([path, answer.status, pathsIn(answer.body)]).toEqual([
      path,
      400,
      expect.arrayContaining(['color']),
    ])
  }
})

/** Addresses of which a page may be asked for, of rows that no period has to be named for. */
const lists = (): readonly string[] =>
  Object.entries(document['paths'] as Record<string, Record<string, Json>>).flatMap(
    ([path, { get }]) => {
      const parameters = (get?.['parameters'] ?? []) as { name?: string; required?: boolean }[]
      const isList = parameters.some(({ name }) => name === 'page')
      const isOfAll = !parameters.some(({ required }) => required === true)
      return isList && isOfAll && !path.startsWith('/api/client') ? [path] : []
    },
  )

test('every list is paged, with its total, and what is searched is taken as it stands', async () => {
  type Page = { readonly data: readonly Json[]; readonly meta: Json }
  const paths = lists()
  expect(paths.length).toBeGreaterThan(12)
  for (const path of paths) {
    const { body, status, text } = await ask('GET', path)
    expect([path, status, text]).toEqual([path, 200, text])
    const all = body as Page
    const { total } = all.meta
    const isWhole = all.data.length < 50
    const count = isWhole ? all.data.length : (expect.any(Number) as number)
    expect([path, all.meta]).toEqual([path, { page: 1, limit: 50, total: count }])
    const first = (await ask('GET', `${path}?limit=1`)).body as Page
    const second = (await ask('GET', `${path}?limit=1&page=2`)).body as Page
    expect([path, ...first.data, ...second.data]).toEqual([path, ...all.data.slice(0, 2)])
    expect([path, second.meta]).toEqual([path, { page: 2, limit: 1, total }])
    for (const wrong of ['page=0', 'page=1.5', 'page=', 'page=1e3', 'limit=0', 'limit=x'])
      expect([path, (await ask('GET', `${path}?${wrong}`)).status]).toEqual([path, 400])
    const found = await ask('GET', `${path}?search=%25`)
    if (found.status === 200) expect([path, found.body]).toMatchObject([path, { data: [] }])
  }
})

test('what is not there is not found, whatever it is called', async () => {
  const gets = Object.entries(document['paths'] as Record<string, Record<string, Json>>)
  // Pages of the console and files have no rows. What a browser is sent to by an identity provider
  // goes back to the console, which says what is wrong.
  const items = gets.filter(
    ([path, { get }]) =>
      get && path.startsWith('/api/v1') && path.includes('{') && !path.includes('/auth/callback/'),
  )
  for (const [path] of items)
    for (const id of ['0', '-1', '1e3', 'x', '9'.repeat(30), "' OR 1=1 --"]) {
      const asked = path.replaceAll(/\{\w+\}/g, encodeURIComponent(id))
      expect([asked, (await ask('GET', asked)).status]).toEqual([
        asked,
        expect.toBeOneOf([400, 404]),
      ])
    }
})
