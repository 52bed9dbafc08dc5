import { expect, test } from 'vitest'
import { Hono } from 'hono'
import { KnownPathsRouter } from '../../../control/http/paths.ts'

/** Ambiguous on purpose, as the API's own routes are. */
function routed(router: KnownPathsRouter<never> | undefined): Hono {
  const app = router === undefined ? new Hono() : new Hono({ router })
  return app
    .use((c, next) => {
      c.header('X-Front', 'passed')
      return next()
    })
    .get('/things/active', (c) => c.text('active'))
    .get('/things/:id', (c) => c.text(`thing ${c.req.param('id')}`))
    .get('/:kind/:name/details', (c) => c.text(`${c.req.param('kind')} ${c.req.param('name')}`))
    .post('/things', (c) => c.text('made', 201))
    .all('/any/*', (c) => c.text(`any ${c.req.path}`))
}

const requests = [
  'GET /things/active',
  'GET /things/7',
  'GET /things/:id',
  'POST /things',
  'GET /things',
  'GET /things/7/details',
  'GET /any/x',
  'PUT /any/*',
  'HEAD /things/active',
  'GET /nothing',
]

test('every request gets the answer that it gets from hono’s own router, the second time too', async () => {
  const known = routed(new KnownPathsRouter())
  const plain = routed(undefined)
  for (const request of [...requests, ...requests]) {
    const [method = '', path = ''] = request.split(' ')
    const [answer, expected] = await Promise.all(
      [known, plain].map(async (app) => {
        const response = await app.request(path, { method })
        return [response.status, response.headers.get('x-front'), await response.text()]
      }),
    )
    expect(answer).toEqual(expected)
  }
})

test('a declared path is itself for every method, not a value in the place of a parameter', async () => {
  const app = new Hono({ router: new KnownPathsRouter() })
    .post('/things/import', (c) => c.text('imported'))
    .get('/things/:id', (c) => c.text(c.req.param('id')))
  const statuses = ['POST /things/import', 'GET /things/import', 'GET /things/7'].map(
    async (request) => {
      const [method = '', path = ''] = request.split(' ')
      return (await app.request(path, { method })).status
    },
  )
  expect(await Promise.all(statuses)).toEqual([200, 404, 200])
})
