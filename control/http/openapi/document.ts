/**
 * Builds the OpenAPI 3.1 document. Paths, scopes and request bodies come from what the routes enforce
 * (`routeNotes`); summaries and responses come from `operations/`.
 */
import { z } from 'zod'
import type { ErrorStatus } from '../api-error.ts'
import type { RouteNote } from '../validate.ts'
import { errors, errorSchema, refusalsOf } from './errors.ts'
import { commonHeaders, tenantHeader, repetitionHeader, securitySchemes } from './headers.ts'
import {
  type Answer,
  type AnswerSchema,
  type Operation,
  type Operations,
  tags,
} from './operation.ts'

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

export function openApiDocument(
  notes: readonly RouteNote[],
  operations: Operations,
  version: string,
): Json {
  const schemas = new Schemas()
  const error = schemas.named('Error', errorSchema, 'output')
  const paths: Record<string, Json> = {}
  for (const note of notes) {
    const operation = operations[`${note.method} ${note.path}`]
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
        'The control API of the telephony platform: keys, users, tenants, routing, calls and billing. Paths without `/api/v1` are aliases.',
      license: { name: 'MIT', identifier: 'MIT' },
    },
    servers: [{ url: '/', description: 'This process.' }],
    tags: Object.entries(tags).map(([name, description]) => ({ name, description })),
    paths,
    components: {
      schemas: schemas.all,
      responses: errorResponses(error, usedIn(paths)),
      headers: commonHeaders,
      parameters: { Tenant: tenantHeader, IdempotencyKey: repetitionHeader },
      securitySchemes,
    },
  }
}

const pathOf = (path: string): string => path.replaceAll(/:(\w+)/g, '{$1}')

function operationObject(note: RouteNote, operation: Operation, schemas: Schemas): Json {
  const { id, tag, summary, answer, nodes, hasRanges = false } = operation
  const refusals = new Set<ErrorStatus>([...refusalsOf(note), ...(operation.refusals ?? [])])
  if (nodes === 'call') refusals.add(503)
  const made = answerObject(answer, schemas, nodes)
  const responses: Json = { [answer.status]: withChange(made, note) }
  if (hasRanges)
    responses[206] = { ...answerObject(answer, schemas, nodes), description: 'A part.' }
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

/** A role name beside the scheme is the scope that the credential must hold (OpenAPI 3.1 §4.8.30). */
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
  ]
  return [...inPath, ...inQuery, ...headers]
}

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

/** Requests whose change is entered take a reason. */
function withChange({ headers, ...answer }: Json, { query }: RouteNote): Json {
  const changeId = { 'X-Change-Id': { $ref: '#/components/headers/ChangeId' } }
  const isEntered = query instanceof z.ZodObject && 'reason' in query.shape
  return { ...answer, headers: { ...(headers as Json), ...(isEntered && changeId) } }
}

function answerObject(
  { status, content }: Answer,
  schemas: Schemas,
  nodes: Operation['nodes'],
): Json {
  const unreachable =
    nodes === undefined
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
