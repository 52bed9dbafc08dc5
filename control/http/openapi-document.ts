/**
 * Builds the OpenAPI 3.1 document. Paths, scopes and request bodies come from what the routes
 * enforce (`routeNotes`); summaries and responses from what they say with `describeRoute`.
 */
import { z } from 'zod'
import type { ErrorStatus } from './api-error.ts'
import { type DocumentedAnswer, type AnswerSchema, type Operation, tags } from './operation.ts'
import type { RouteNote } from './validate.ts'

type Json = Record<string, unknown>

const meta = z
  .strictObject({
    page: z.int(),
    limit: z.int().describe('The page size that was applied.'),
    total: z.int(),
    truncated: z
      .literal(true)
      .optional()
      .describe('The list was cut here. Filter it to see older entries.'),
  })
  .meta({ id: 'PageMeta' })

/** Collects the schemas of `components`. */
class Schemas {
  readonly all: Record<string, Json> = {}

  /** Returns a schema as JSON Schema and moves its named parts to `components`. */
  of(schema: z.ZodType, io: 'input' | 'output'): Json {
    const { $schema: _, $defs, ...json } = z.toJSONSchema(schema, { io, unrepresentable: 'any' })
    for (const [name, definition] of Object.entries($defs ?? {}))
      this.all[name] = relocated(definition) as Json
    return relocated(json) as Json
  }

  named(name: string, schema: z.ZodType, io: 'input' | 'output'): Json {
    this.all[name] = this.of(schema, io)
    return { $ref: `#/components/schemas/${name}` }
  }
}

/** Points references to `$defs` at the components of the document. */
function relocated(json: unknown): unknown {
  if (Array.isArray(json)) return json.map(relocated)
  if (typeof json !== 'object' || json === null) return json
  return Object.fromEntries(
    Object.entries(json).map(([key, value]) =>
      key === '$ref' && typeof value === 'string'
        ? [key, value.replace('#/$defs/', '#/components/schemas/')]
        : [key, relocated(value)],
    ),
  )
}

/** A request that the platform sends, as the receiver has to read and answer it. */
export interface ReceiverRequest {
  readonly summary: string
  readonly description: string
  readonly body: z.ZodType
  readonly example: unknown
  readonly answer: z.ZodType
  readonly answerExample: unknown
}

/** @param sent requests to receivers, by their names. */
export function openApiDocument(
  notes: readonly RouteNote[],
  version: string,
  sent: Readonly<Record<string, ReceiverRequest>> = {},
): Json {
  const schemas = new Schemas()
  const error = schemas.named('Error', errorSchema, 'output')
  const paths: Record<string, Json> = {}
  for (const note of notes) {
    const operation = note.operation
    if (operation === undefined) continue
    const path = (paths[pathOf(note.path)] ??= {})
    path[note.method.toLowerCase()] = operationObject(note, operation, schemas)
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'Tollgate',
      version,
      description:
        'The control API of the telephony platform: keys, users, tenants, routing, calls and ' +
        'billing. Paths without `/api/v1` are aliases.',
      license: { name: 'MIT', identifier: 'MIT' },
    },
    servers: [{ url: '/', description: 'This process.' }],
    tags: Object.entries(tags).map(([name, description]) => ({ name, description })),
    paths,
    webhooks: Object.fromEntries(
      Object.entries(sent).map(([name, request]) => [name, sentObject(request, schemas)]),
    ),
    components: {
      schemas: schemas.all,
      responses: errorResponses(error, usedIn(paths)),
      headers: commonHeaders,
      parameters: {
        Tenant: tenantHeader,
        IdempotencyKey: repetitionHeader,
        IfMatch: versionHeader,
      },
      securitySchemes,
    },
  }
}

const sentObject = (request: ReceiverRequest, schemas: Schemas): Json => ({
  post: {
    summary: request.summary,
    description: request.description,
    tags: ['Webhooks'],
    requestBody: {
      required: true,
      content: {
        'application/json': {
          schema: schemas.of(request.body, 'output'),
          example: request.example,
        },
      },
    },
    responses: {
      200: {
        description: 'A decision.',
        content: {
          'application/json': {
            schema: schemas.of(request.answer, 'output'),
            example: request.answerExample,
          },
        },
      },
      204: { description: 'The call goes on as without the webhook.' },
    },
  },
})

const pathOf = (path: string): string => path.replaceAll(/:(\w+)/g, '{$1}')

function operationObject(note: RouteNote, operation: Operation, schemas: Schemas): Json {
  const { id, tag, summary, answer, instances, hasRanges = false } = operation
  const refusals = new Set<ErrorStatus>([...refusalsOf(note), ...(operation.refusals ?? [])])
  if (instances === 'call') refusals.add(503)
  const made = answerObject(answer, schemas, instances)
  const responses: Json = { [answer.status]: withVersion(withChange(made, note), note) }
  if (hasRanges)
    responses[206] = { ...answerObject(answer, schemas, instances), description: 'A part.' }
  for (const status of [...refusals].toSorted((a, b) => a - b))
    responses[status] = { $ref: `#/components/responses/${errors[status].name}` }
  const body = requestBody(note, operation, schemas)
  return {
    operationId: id,
    tags: [tag],
    summary,
    security: securityOf(note),
    parameters: parametersOf(note, schemas),
    ...(body !== undefined && { requestBody: body }),
    responses,
  }
}

/**
 * A role name in a security requirement is the scope that the credential must have (OpenAPI 3.1
 * §4.8.30).
 */
function securityOf({ access }: RouteNote): Json[] {
  if (access === undefined || access.kind === 'public') return []
  if (access.kind === 'customer') return [{ session: [] }]
  const scopes = access.kind === 'scope' ? [access.scope] : []
  return [{ key: scopes }, { keyHeader: scopes }, { session: scopes }]
}

function parametersOf(note: RouteNote, schemas: Schemas): Json[] {
  const inPath = [...note.path.matchAll(/:(\w+)/g)].map(([, name = '']) => ({
    name,
    in: 'path',
    required: true,
    schema: /^id$|Id$/.test(name) ? { type: 'integer', minimum: 1 } : { type: 'string' },
    example: /^id$|Id$/.test(name) ? 1 : '0b4c1c1e-7f0a-4a37-9d1f-0f6a5f5e9c11',
  }))
  const query = note.query === undefined ? {} : schemas.of(note.query, 'input')
  const required = new Set(Array.isArray(query['required']) ? query['required'] : [])
  const inQuery = Object.entries((query['properties'] ?? {}) as Json).map(([name, schema]) => ({
    name,
    in: 'query',
    required: required.has(name),
    schema,
  }))
  const headers = [
    ...(isForTenants(note) ? [{ $ref: '#/components/parameters/Tenant' }] : []),
    ...(note.isRepeatable === true ? [{ $ref: '#/components/parameters/IdempotencyKey' }] : []),
    ...(isConditional(note) ? [{ $ref: '#/components/parameters/IfMatch' }] : []),
  ]
  return [...inPath, ...inQuery, ...headers]
}

const isConditional = ({ isVersioned, method }: RouteNote): boolean =>
  isVersioned === true && method !== 'GET'

const isForTenants = ({ access }: RouteNote): boolean =>
  access?.kind === 'scope' || access?.kind === 'authenticated'

function requestBody(note: RouteNote, operation: Operation, schemas: Schemas): Json | undefined {
  const { body, bodyType, id } = operation
  if (note.json === undefined && bodyType === undefined) return undefined
  const name = `${id.charAt(0).toUpperCase()}${id.slice(1)}Body`
  const schema =
    note.json === undefined
      ? { type: typeof body === 'string' ? 'string' : 'object' }
      : schemas.named(name, note.json, 'input')
  return {
    required: true,
    content: { [bodyType ?? 'application/json']: { schema, example: body } },
  }
}

/** Requests whose change is recorded take a reason. */
function withChange({ headers, ...answer }: Json, { query }: RouteNote): Json {
  const changeId = { 'X-Change-Id': { $ref: '#/components/headers/ChangeId' } }
  const isEntered = query instanceof z.ZodObject && 'reason' in query.shape
  return { ...answer, headers: { ...(headers as Json), ...(isEntered && changeId) } }
}

/** A thing that is removed has no version any more. */
function withVersion({ headers, ...answer }: Json, { isVersioned, method }: RouteNote): Json {
  const version = { ETag: { $ref: '#/components/headers/ETag' } }
  const isShown = isVersioned === true && method !== 'DELETE'
  return { ...answer, headers: { ...(headers as Json), ...(isShown && version) } }
}

function answerObject(
  { status, content }: DocumentedAnswer,
  schemas: Schemas,
  instances: Operation['instances'],
): Json {
  const unreachable =
    instances === undefined
      ? {}
      : { 'X-Unreachable-Nodes': { $ref: '#/components/headers/UnreachableNodes' } }
  const location = status === 201 ? { Location: { $ref: '#/components/headers/Location' } } : {}
  return {
    description: status === 201 ? 'Created.' : status === 202 ? 'Accepted.' : 'Success.',
    headers: { ...headerReferences, ...location, ...unreachable },
    content: Object.fromEntries(
      Object.entries(content).map(([type, { schema, example }]) => [
        type,
        {
          schema: schema === undefined ? { type: 'string' } : answerSchema(schema, schemas),
          example,
        },
      ]),
    ),
  }
}

function answerSchema({ form, schema }: AnswerSchema, schemas: Schemas): Json {
  if (form === 'bare') return schemas.of(schema, 'output')
  const success = z.literal(true)
  return schemas.of(
    form === 'data'
      ? z.strictObject({ success, data: schema })
      : z.strictObject({ success, data: z.array(schema), meta }),
    'output',
  )
}

/** Headers of responses and requests, and the security schemes. */

const integer = { type: 'integer', minimum: 0 }

const commonHeaders = {
  'X-Correlation-ID': {
    description:
      'Identifies the request in logs; quote it when reporting a problem. Taken from the ' +
      'request, or generated.',
    schema: { type: 'string' },
  },
  'X-RateLimit-Limit': {
    description: 'Requests allowed in any 60 seconds.',
    schema: integer,
    example: 1200,
  },
  'X-RateLimit-Remaining': {
    description: 'Requests left in the current window.',
    schema: integer,
    example: 1199,
  },
  'X-RateLimit-Reset': {
    description: 'Unix time in seconds at which the oldest request leaves the window.',
    schema: integer,
    example: 1767225660,
  },
  ChangeId: {
    description:
      'The change that was entered, for `POST /changes/{change_id}/undo`. Absent when nothing ' +
      'was changed.',
    schema: { type: 'string', format: 'uuid' },
  },
  ETag: {
    description:
      'The version of what is shown, for `If-Match`. Live states and figures are no part of it.',
    schema: { type: 'string' },
    example: '"2jmj7l5rSw0yVb_vlWAYkK"',
  },
  Location: { description: 'Path of the created resource.', schema: { type: 'string' } },
  UnreachableNodes: {
    description:
      'Nodes of the installation that were not heard, separated by commas: what they know ' +
      'is missing. Absent when all were heard.',
    schema: { type: 'string' },
    example: 'node-b, node-c',
  },
  RetryAfter: { description: 'Seconds to wait before retrying.', schema: integer, example: 12 },
}

const tenantHeader = {
  name: 'X-Tenant-Slug',
  in: 'header',
  required: false,
  schema: { type: 'string' },
  description: 'Acts on behalf of this tenant. A tenant credential can only name its own tenant.',
}

const repetitionHeader = {
  name: 'Idempotency-Key',
  in: 'header',
  required: false,
  schema: { type: 'string', maxLength: 255 },
  description:
    'Makes the request safe to retry: a repeated request within 24 hours gets the first ' +
    'response again, without a token or secret. A POST without this parameter refuses the ' +
    'header: 400 `idempotency_not_supported`.',
}

const versionHeader = {
  name: 'If-Match',
  in: 'header',
  required: false,
  schema: { type: 'string' },
  example: '"2jmj7l5rSw0yVb_vlWAYkK"',
  description:
    'The `ETag` of the version that was seen: if it is another one now, nothing is done, and 412 ' +
    'shows the present one. `*` is any version. A change without this parameter refuses the ' +
    'header: 400 `if_match_not_supported`.',
}

const securitySchemes = {
  key: {
    type: 'http',
    scheme: 'bearer',
    bearerFormat: 'application key',
    description: '`sbc_live_…`, `ak_…` or `bill_…`',
  },
  keyHeader: { type: 'apiKey', in: 'header', name: 'X-API-Key' },
  session: {
    type: 'http',
    scheme: 'bearer',
    bearerFormat: 'JWT',
    description: 'From `POST /auth/login` for staff, or `POST /client/auth/login` for customers.',
  },
}

const headerReferences = Object.fromEntries(
  Object.keys(commonHeaders)
    .filter((name) => name.startsWith('X-'))
    .map((name) => [name, { $ref: `#/components/headers/${name}` }]),
)

/** Returns the names of the error responses that operations refer to. */
const usedIn = (paths: Json): ReadonlySet<string> =>
  new Set(
    [...JSON.stringify(paths).matchAll(/#\/components\/responses\/(\w+)/g)].map(
      ([, name = '']) => name,
    ),
  )

const errorResponses = (error: Json, used: ReadonlySet<string>): Json =>
  Object.fromEntries(
    Object.entries(errors)
      .filter(([, { name }]) => used.has(name))
      .map(([status, { name, when, code }]) => [
        name,
        {
          description: when,
          headers: {
            ...headerReferences,
            ...(status === '412' && { ETag: { $ref: '#/components/headers/ETag' } }),
            ...(status === '429' && { 'Retry-After': { $ref: '#/components/headers/RetryAfter' } }),
          },
          content: {
            'application/json': {
              schema: error,
              example: {
                success: false,
                error: when,
                statusCode: Number(status),
                code,
                request_id: '5f0c9a52-8c0f-4a86-9f53-2d3f9d3f7c10',
              },
            },
          },
        },
      ]),
  )

/** The error responses: which ones a route can return, and their texts. */
const errorSchema = z.strictObject({
  success: z.literal(false),
  error: z.string().describe('Human-readable message.'),
  statusCode: z.int(),
  code: z
    .string()
    .regex(/^[a-z][a-z0-9_]*$/)
    .describe('Stable, machine-readable code.'),
  details: z
    .array(z.strictObject({ path: z.string(), message: z.string() }))
    .optional()
    .describe('One entry per problem.'),
  current: z
    .record(z.string(), z.unknown())
    .optional()
    .describe('Of 412: the resource as it is now, for those who may read it.'),
  request_id: z.string().describe('The `X-Correlation-ID` of the response.'),
})

interface ErrorText {
  readonly name: string
  readonly when: string
  readonly code: string
}

const errors: Readonly<Record<ErrorStatus, ErrorText>> = {
  400: { name: 'BadRequest', when: 'The request is invalid.', code: 'validation_failed' },
  401: {
    name: 'Unauthorized',
    when: 'The credential is missing, unknown, inactive or expired.',
    code: 'unauthorized',
  },
  402: {
    name: 'PaymentRequired',
    when: 'The balance does not cover the call.',
    code: 'insufficient_funds',
  },
  403: {
    name: 'Forbidden',
    when:
      'The credential lacks the required scope, or belongs to another tenant, domain or IP ' +
      'address.',
    code: 'insufficient_scope',
  },
  404: {
    name: 'NotFound',
    when: 'The resource does not exist, or the credential cannot see it.',
    code: 'not_found',
  },
  405: {
    name: 'MethodNotAllowed',
    when: 'The path does not support this method. `Allow` lists the supported ones.',
    code: 'method_not_allowed',
  },
  408: {
    name: 'RequestTimeout',
    when: 'The request took too long to arrive.',
    code: 'request_timeout',
  },
  409: {
    name: 'Conflict',
    when: 'The request conflicts with the current state of the resource.',
    code: 'duplicate',
  },
  412: {
    name: 'PreconditionFailed',
    when: 'It was changed meanwhile. `current` is what it is now, `ETag` its version.',
    code: 'precondition_failed',
  },
  413: { name: 'BodyTooLarge', when: 'The request body is too large.', code: 'body_too_large' },
  415: {
    name: 'UnsupportedMediaType',
    when: 'The content type of the request body is not supported.',
    code: 'unsupported_media_type',
  },
  416: {
    name: 'RangeNotSatisfiable',
    when: 'The requested bytes are beyond the end. `Content-Range` has the size.',
    code: 'range_not_satisfiable',
  },
  422: {
    name: 'Unprocessable',
    when: 'The request is valid but cannot be carried out.',
    code: 'unprocessable',
  },
  429: { name: 'TooManyRequests', when: 'The rate limit is exceeded.', code: 'rate_limited' },
  500: { name: 'InternalError', when: 'An unexpected error occurred.', code: 'internal_error' },
  501: {
    name: 'NotImplemented',
    when: 'This deployment does not support the operation.',
    code: 'not_supported',
  },
  502: { name: 'BadGateway', when: 'An upstream service failed.', code: 'bad_gateway' },
  503: { name: 'Unavailable', when: 'The service is temporarily unavailable.', code: 'not_ready' },
}

/** Returns the errors that the middleware and the checks of a route can cause. */
function refusalsOf(note: RouteNote): ErrorStatus[] {
  const { access, method, path } = note
  const found: ErrorStatus[] = [429, 500]
  // 503: the credential cannot be verified, because the database server does not answer.
  if (access !== undefined && access.kind !== 'public') found.push(401, 403, 503)
  // The customer edge rejects every other path.
  if (path !== '/health' && !path.startsWith('/api/client/')) found.push(403)
  if (note.json ?? note.query ?? note.param) found.push(400)
  if (note.param) found.push(404)
  if (note.json) found.push(415)
  // 503: the database cannot be written.
  if (method !== 'GET') found.push(400, 408, 413, 503)
  if (note.isRepeatable === true) found.push(409)
  if (isConditional(note)) found.push(412)
  return found
}
