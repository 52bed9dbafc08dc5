/** Serves `/openapi.json`, and Swagger UI at `/docs` without any external resource. */
import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { fileURLToPath } from 'node:url'
import { gzipSync } from 'node:zlib'
import { Hono } from 'hono'
import { z } from 'zod'
import { openToAll } from './auth/requires.ts'
import type { ConsoleFiles } from './console/console-files.ts'
import { encodingFor } from './console/console-routes.ts'
import { notFound } from './http/api-error.ts'
import { type ControlEnv, requestHeader } from './http/control-env.ts'
import { routeNotes, validate, describeRoute } from './http/validate.ts'
import { openApiDocument } from './http/openapi-document.ts'
import { docsPage, docsScript, pagePolicy } from './http/openapi-pages.ts'
import { bare, either, text } from './http/operation.ts'
import { callQuestion, exampleCallQuestion, inviteDecision } from './resources/hook-schemas.ts'

/** Files of swagger-ui-dist, with their content types. */
const packaged = new Map([
  ['swagger-ui.css', 'text/css; charset=utf-8'],
  ['swagger-ui-bundle.js', 'text/javascript; charset=utf-8'],
])

/** A dashboard of Grafana for `GET /metrics`. */
const dashboard = 'grafana-dashboard.json'

const sentRequests = {
  'call.invite': {
    summary: 'A call asks where it goes',
    description:
      'A routing webhook gets this for each call of its scope, signed as Standard Webhooks say ' +
      '(`webhook-id`, `webhook-timestamp`, `webhook-signature`). An answer has at most 64 kB, no ' +
      'compression, and comes within `timeout_ms`; no redirect is followed. Anything else than ' +
      '200 with a decision or 204 is a failure: `fallback` holds.',
    body: callQuestion,
    example: exampleCallQuestion,
    answer: inviteDecision,
    answerExample: { set: 2, tags: { crm: 'gold' } },
  },
}

const fileParam = z.strictObject({ file: z.string().max(50) })

type DescribedApp = Pick<Hono<ControlEnv>, 'routes'>

/**
 * @param app whose routes are described as they are mounted at the first request for the document.
 * @param files of the console, whose style the page of the reference has; undefined while it has
 * not been built.
 */
export function openApiRoutes(app: DescribedApp, version: string, files: ConsoleFiles | undefined) {
  return new Hono<ControlEnv>()
    .route('/', getOpenApiDocumentRoute(app, version))
    .route('/', getDocsPageRoute(files))
    .route('/', getDocsFileRoute())
}

function getOpenApiDocumentRoute(app: DescribedApp, version: string) {
  let document: string | undefined
  let packed: Uint8Array<ArrayBuffer> | undefined
  const describe = (): string =>
    JSON.stringify(openApiDocument(routeNotes(app), version, sentRequests))
  return new Hono<ControlEnv>().get(
    '/openapi.json',
    describeRoute({
      id: 'getOpenApiDocument',
      tag: 'System',
      summary: 'Get this OpenAPI document',
      answer: bare(z.looseObject({ openapi: z.string() }), { openapi: '3.1.0' }),
    }),
    openToAll(),
    (c) => {
      document ??= describe()
      c.header('Content-Type', 'application/json')
      c.header('Vary', 'Accept-Encoding')
      if (encodingFor(requestHeader(c, 'accept-encoding') ?? '', ['gzip']) === 'plain')
        return c.body(document)
      c.header('Content-Encoding', 'gzip')
      packed ??= new Uint8Array(gzipSync(document))
      return c.body(packed)
    },
  )
}

function getDocsPageRoute(files: ConsoleFiles | undefined) {
  const page = docsPage(assetPath(files, '.css'), assetPath(files, '.svg'))
  return new Hono<ControlEnv>().get(
    '/docs',
    describeRoute({
      id: 'getDocsPage',
      tag: 'System',
      summary: 'Get the API reference as a web page',
      answer: text('text/html', '<!doctype html>'),
    }),
    openToAll(),
    (c) => {
      c.header('Content-Security-Policy', pagePolicy)
      return c.html(page)
    },
  )
}

const getDocsFileRoute = () =>
  new Hono<ControlEnv>().get(
    '/docs/:file',
    describeRoute({
      id: 'getDocsFile',
      tag: 'System',
      summary: 'Get a file of the API reference page',
      answer: either(
        text('text/javascript', ''),
        text('text/css', ''),
        bare(z.looseObject({ title: z.string() }), { title: 'Tollgate' }),
      ),
      refusals: [404],
    }),
    openToAll(),
    validate('param', fileParam),
    async (c) => {
      const { file } = c.req.valid('param')
      if (file === 'start.js') {
        c.header('Content-Type', 'text/javascript; charset=utf-8')
        return c.body(docsScript)
      }
      const type = file === dashboard ? 'application/json' : packaged.get(file)
      if (type === undefined) throw notFound('File')
      c.header('Content-Type', type)
      // The file changes only with the program.
      c.header('Cache-Control', 'public, max-age=3600')
      return c.body(await readFile(pathOf(file)))
    },
  )

/** The file is beside the bundle; for a run from the sources, it is in the package. */
function pathOf(file: string): string {
  const bundled = fileURLToPath(new URL(`docs/${file}`, import.meta.url))
  if (existsSync(bundled)) return bundled
  if (file === dashboard) return fileURLToPath(new URL(file, import.meta.url))
  return createRequire(import.meta.url).resolve(`swagger-ui-dist/${file}`)
}

/** The asset that the page names: those of earlier builds are beside it. */
function assetPath(files: ConsoleFiles | undefined, ending: string): string | undefined {
  const names = [...(files?.assets.keys() ?? [])].filter((each) => each.endsWith(ending))
  const name = names.find((each) => files?.page.includes(each) === true)
  return name === undefined ? undefined : `/console/assets/${name}`
}
