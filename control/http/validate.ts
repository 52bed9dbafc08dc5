/**
 * Validates requests with Zod: valid input is typed, invalid input is a 400 with a path for every
 * problem. Schemas are `z.strictObject`, so that unknown fields are rejected instead of ignored.
 */
import type { Context, Env, Hono, MiddlewareHandler } from 'hono'
import { matchedRoutes } from 'hono/route'
import { isUtf8 } from 'node:buffer'
import { z } from 'zod'
import { nearMiss } from '../../schema/rules/names.ts'
import { ApiError, badRequest, type RequestProblem } from './api-error.ts'
import { parseJson, readBody } from './body.ts'
import type { Operation } from './operation.ts'
import { withKnownTenant } from './tenant-spelling.ts'

type Target = 'json' | 'query' | 'param'

/** The types that Hono needs for `c.req.valid(target)`. */
interface ValidatedTypes<T extends Target, S extends z.ZodType> {
  in: { [key in T]: z.input<S> }
  out: { [key in T]: z.output<S> }
}

/** Validates one part of the request. An absent body counts as `{}`. */
export function validate<T extends Target, S extends z.ZodType>(
  target: T,
  schema: S,
): MiddlewareHandler<Env, string, ValidatedTypes<T, S>> {
  const check: MiddlewareHandler<Env, string, ValidatedTypes<T, S>> = async (c, next) => {
    const given = withKnownTenant(schema, await read[target](c))
    const parsed = await schema.safeParseAsync(given)
    if (!parsed.success) throw badRequest(headline[target], problemsOf(parsed.error, schema))
    c.req.addValidatedData(target, parsed.data as object)
    await next()
  }
  describeHandler(check, { [target]: schema })
  return check
}

const headline: Readonly<Record<Target, string>> = {
  json: 'The body is not valid',
  query: 'The query is not valid',
  param: 'The path is not valid',
}

const read: Readonly<Record<Target, (c: Context<Env>) => unknown>> = {
  json: readJson,
  query: (c) => withoutNul(once(c.req.queries())),
  param: (c) => withoutNul(c.req.param()),
}

async function readJson(c: Context): Promise<unknown> {
  const body = await readBody(c)
  if (body.length === 0) return {}
  const encoding = c.req.header('content-encoding')
  if (encoding !== undefined && encoding.toLowerCase() !== 'identity')
    throw new ApiError(415, 'unsupported_media_type', 'The body must not be compressed')
  const mediaType = (c.req.header('content-type') ?? '').split(';', 1)[0]?.trim().toLowerCase()
  if (mediaType !== 'application/json' && !mediaType?.endsWith('+json'))
    throw new ApiError(415, 'unsupported_media_type', 'The body must be application/json')
  // Decoding would replace invalid bytes with U+FFFD and lose information.
  if (!isUtf8(body)) throw notJson({ path: '', message: 'is not valid UTF-8' })
  const parsed = parseJson(body.toString('utf8'))
  if (parsed.kind === 'value') return parsed.value
  throw notJson(parsed.problem)
}

function notJson(problem: RequestProblem): ApiError {
  const code = problem.path === '' ? 'malformed_json' : 'validation_failed'
  return new ApiError(400, code, 'The body is not valid JSON', { details: [problem] })
}

/** Refuses two values of one name: one would be ignored, and the client cannot know which. */
function once(values: Record<string, string[]>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(values).map(([path, [value = '', ...more]]) => {
      if (more.length === 0) return [path, value]
      throw badRequest(headline.query, [{ path, message: 'is given more than once' }])
    }),
  )
}

function withoutNul(values: Record<string, string>): Record<string, string> {
  for (const [path, value] of Object.entries(values))
    if (value.includes('\0'))
      throw badRequest('The request is invalid', [{ path, message: 'contains a NUL character' }])
  return values
}

/** Maximum problems reported: a body can have a hundred thousand, and each costs time. */
const MAX_PROBLEMS = 100

/**
 * Returns one detail per problem, for the first hundred. An unknown field is named itself, not only
 * the object that contains it; with `schema`, a similar known name is suggested.
 */
export function problemsOf(error: z.ZodError, schema?: z.ZodType): RequestProblem[] {
  return error.issues
    .slice(0, MAX_PROBLEMS)
    .flatMap((issue): Problem[] =>
      issue.code === 'unrecognized_keys'
        ? issue.keys.slice(0, MAX_PROBLEMS).map((key) => ({ path: [...issue.path, key], key }))
        : [{ path: issue.path, message: issue.message }],
    )
    .slice(0, MAX_PROBLEMS)
    .map(({ path, key, message = '' }) => ({
      path: pathOf(path),
      message: key === undefined ? message : `${unknownField}${suggestion(key, schema)}`,
    }))
}

interface Problem {
  readonly path: readonly PropertyKey[]
  readonly message?: string
  /** The unknown field. */
  readonly key?: string
}

export const unknownField = 'Unknown field'

function suggestion(key: string, schema: z.ZodType | undefined): string {
  const meant = schema && nearMiss(key, fieldsOf(schema))
  return meant === undefined ? '' : `: did you mean ${JSON.stringify(meant)}?`
}

const fields = new WeakMap<z.ZodType, ReadonlySet<string>>()

/** Returns every field name of a schema, at any depth. */
function fieldsOf(schema: z.ZodType): ReadonlySet<string> {
  const known = fields.get(schema)
  if (known !== undefined) return known
  const names = new Set<string>()
  collectNames(z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any' }), names)
  fields.set(schema, names)
  return names
}

function collectNames(shown: unknown, into: Set<string>): void {
  if (typeof shown !== 'object' || shown === null) return
  for (const [key, value] of Object.entries(shown)) {
    if (key === 'properties') for (const name of Object.keys(value as object)) into.add(name)
    collectNames(value, into)
  }
}

const pathOf = (path: readonly PropertyKey[]): string => path.map(String).join('.')

interface HandlerNote {
  /** Who is admitted. A route without it on any handler is a mistake. */
  readonly access?: Access
  readonly json?: z.ZodType
  readonly query?: z.ZodType
  readonly param?: z.ZodType
  /** Honours `Idempotency-Key`. */
  readonly isRepeatable?: true
  /** Shows an `ETag`; a change honours `If-Match`. */
  readonly isVersioned?: true
  /** Further properties in the OpenAPI document. */
  readonly operation?: Operation
}

export type Access =
  | { readonly kind: 'public' }
  /** Any valid credential, whatever its scopes. */
  | { readonly kind: 'authenticated' }
  | { readonly kind: 'customer' }
  | { readonly kind: 'scope'; readonly scope: string }

export interface RouteNote extends HandlerNote {
  readonly method: string
  readonly path: string
}

/**
 * Notes of a route, kept with the middleware that enforces them: the scope it requires and the
 * schemas it validates. The OpenAPI document and the test that every route names its scope read
 * these notes, so both match what runs.
 */
const notes = new WeakMap<object, HandlerNote>()

export function describeHandler(handler: object, note: HandlerNote): void {
  notes.set(handler, note)
}

/** Describes a route in the OpenAPI document. */
export function describeRoute(operation: Operation): MiddlewareHandler {
  const pass: MiddlewareHandler = (_, next) => next()
  describeHandler(pass, { operation })
  return pass
}

/** Whether a handler of the route of this request honours `Idempotency-Key`. */
export const isRepeatable = (c: Context): boolean =>
  matchedRoutes(c).some(({ handler }) => notes.get(handler)?.isRepeatable === true)

/** Whether a handler of the route of this request honours `If-Match`. */
export const isVersioned = (c: Context): boolean =>
  matchedRoutes(c).some(({ handler }) => notes.get(handler)?.isVersioned === true)

/**
 * Returns every route of an app with the notes of all its handlers, without middleware mounted on
 * every path.
 */
export function routeNotes(app: Pick<Hono, 'routes'>): RouteNote[] {
  const routes = new Map<string, RouteNote>()
  for (const { method, path, handler } of app.routes) {
    if (method === 'ALL' || path === '/*') continue
    const name = `${method} ${path}`
    routes.set(name, { ...routes.get(name), ...notes.get(handler), method, path })
  }
  return [...routes.values()]
}
