/** The error responses: which ones a route can return, and their texts. */
import { z } from 'zod'
import type { ErrorStatus } from '../api-error.ts'
import type { RouteNote } from '../validate.ts'

export const errorSchema = z.strictObject({
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
  request_id: z.string().describe('The `X-Correlation-ID` of the response.'),
})

interface ErrorText {
  readonly name: string
  readonly when: string
  readonly code: string
}

export const errors: Readonly<Record<ErrorStatus, ErrorText>> = {
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
    when: 'The credential lacks the required scope, or belongs to another tenant, domain or IP address.',
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
export function refusalsOf(note: RouteNote): ErrorStatus[] {
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
  return found
}
