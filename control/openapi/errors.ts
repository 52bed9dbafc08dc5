/** The answers that are not a success: which a route may give, and how each reads. */
import { z } from 'zod'
import type { ErrorStatus } from '../http/api-error.ts'
import type { RouteNote } from '../http/route-notes.ts'

export const errorSchema = z.strictObject({
  success: z.literal(false),
  error: z.string().describe('For people.'),
  statusCode: z.int(),
  code: z
    .string()
    .regex(/^[a-z][a-z0-9_]*$/)
    .describe('For programs: stable.'),
  details: z
    .array(z.strictObject({ path: z.string(), message: z.string() }))
    .optional()
    .describe('One for every problem.'),
  request_id: z.string().describe('`X-Correlation-ID` of the answer.'),
})

interface ErrorText {
  readonly name: string
  readonly when: string
  readonly code: string
}

export const errors: Readonly<Record<ErrorStatus, ErrorText>> = {
  400: { name: 'BadRequest', when: 'What was sent is not valid.', code: 'validation_failed' },
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
    when: 'The credential lacks the scope, or belongs to another tenant, domain or address.',
    code: 'insufficient_scope',
  },
  404: { name: 'NotFound', when: 'There is no such thing, or not for you.', code: 'not_found' },
  405: {
    name: 'MethodNotAllowed',
    when: 'The path has other methods: see `Allow`.',
    code: 'method_not_allowed',
  },
  408: { name: 'RequestTimeout', when: 'The request came too slowly.', code: 'request_timeout' },
  409: { name: 'Conflict', when: 'It contradicts what is stored.', code: 'duplicate' },
  413: { name: 'BodyTooLarge', when: 'The body is too large.', code: 'body_too_large' },
  415: {
    name: 'UnsupportedMediaType',
    when: 'The body has another type.',
    code: 'unsupported_media_type',
  },
  422: { name: 'Unprocessable', when: 'It cannot be carried out.', code: 'unprocessable' },
  429: { name: 'TooManyRequests', when: 'The rate limit is used up.', code: 'rate_limited' },
  500: { name: 'InternalError', when: 'The fault is on this side.', code: 'internal_error' },
  501: { name: 'NotImplemented', when: 'This deployment cannot do it.', code: 'not_supported' },
  502: { name: 'BadGateway', when: 'Somebody else failed.', code: 'bad_gateway' },
  503: { name: 'Unavailable', when: 'Not at the moment.', code: 'not_ready' },
}

/** Every other answer that the middleware and the checks of this route may give. */
export function refusalsOf(note: RouteNote): ErrorStatus[] {
  const { access, method, path } = note
  const found: ErrorStatus[] = [429, 500]
  if (access !== undefined && access.kind !== 'public') found.push(401, 403)
  // The customer edge passes nothing else.
  if (path !== '/health' && !path.startsWith('/api/client/')) found.push(403)
  if (note.json ?? note.query ?? note.param) found.push(400)
  if (note.param) found.push(404)
  if (note.json) found.push(415)
  // Nothing can be stored.
  if (method !== 'GET') found.push(400, 408, 413, 503)
  if (note.isRepeatable === true) found.push(409)
  return found
}
