/** Holds every answer that a test is given against the OpenAPI document. */
import { canonicalPath } from '../../control/http/paths.ts'
import type { ControlApp } from '../../control/app.ts'
import { routeNotes } from '../../control/http/validate.ts'
import { openApiDocument } from '../../control/http/openapi-document.ts'
import { lookUp, problemsOf } from './json-schema.ts'

type Json = Readonly<Record<string, unknown>>

interface Told {
  readonly method: string
  readonly path: string
  readonly status: number
  readonly mediaType: string
  readonly body: unknown
}

interface Route {
  readonly pattern: RegExp
  readonly methods: Readonly<Record<string, Json>>
}

export interface Documented {
  readonly document: Json
  /** One line for everything in which an answer is not what the document says. */
  problemsOf(told: Told): string[]
}

export function documentOf(app: Pick<ControlApp, 'routes'>): Documented {
  const document = openApiDocument(routeNotes(app), '0')
  const routes = Object.entries(document['paths'] as Record<string, Record<string, Json>>)
    .map(([path, methods]): Route => ({ pattern: patternOf(path), methods }))
    // A fixed path wins over one with parameters, as in the router.
    .toSorted((a, b) => parameters(a) - parameters(b))
  return {
    document,
    problemsOf: (told) => check(told, routes, document),
  }
}

const parameters = ({ pattern }: Route): number => pattern.source.split('[^/]').length

const patternOf = (path: string): RegExp =>
  new RegExp(`^${path.replaceAll('.', '\\.').replaceAll(/\{\w+\}/g, '[^/]+')}$`)

/** Any path may answer these: of the middleware, or because there is no such route. */
const everywhere = [403, 404, 405, 408, 413, 429, 500]

function check(told: Told, routes: readonly Route[], document: Json): string[] {
  const { method, path, status, body, mediaType } = told
  if (method === 'OPTIONS' || method === 'HEAD') return []
  // JSON-RPC and its errors are another specification's.
  if (path === '/mcp') return []
  const route = routes.find(
    ({ pattern, methods }) => pattern.test(path) && method.toLowerCase() in methods,
  )
  const operation = route?.methods[method.toLowerCase()]
  if (operation === undefined) return undocumented(told, document)
  const responses = operation['responses'] as Record<string, Json>
  const found = responses[status]
  if (found === undefined) return [`the status ${status} is not described`]
  const response = '$ref' in found ? lookUp(document, String(found['$ref'])) : found
  const content = (response['content'] as Record<string, { schema: Json }>)[mediaType]
  if (content === undefined) return [`the type ${mediaType} is not described`]
  return mediaType === 'application/json' ? problemsOf(body, content.schema, document) : []
}

function undocumented({ status, body }: Told, document: Json): string[] {
  if (status < 400) return []
  if (!everywhere.includes(status) && status !== 401 && status !== 400) return []
  return problemsOf(body, lookUp(document, '#/components/schemas/Error'), document)
}

/** Made once: every app of the tests has the same routes. */
let shared: Documented | undefined

/** Throws when an answer is not what the document of `app` says. */
export function expectDocumented(
  app: Pick<ControlApp, 'routes'>,
  path: string,
  told: Omit<Told, 'path'>,
) {
  shared ??= documentOf(app)
  const name = canonicalPath(new Request(`http://localhost${path}`))
  const problems = shared.problemsOf({ ...told, path: name })
  if (problems.length === 0) return
  throw new Error(
    `${told.method} ${name} answered ${told.status}, not as documented:\n${problems.slice(0, 5).join('\n')}`,
  )
}
