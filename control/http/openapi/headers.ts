/** Headers of responses and requests, and the security schemes. */

const integer = { type: 'integer', minimum: 0 }

export const commonHeaders = {
  'X-Correlation-ID': {
    description:
      'Identifies the request in logs; quote it when reporting a problem. Taken from the request, or generated.',
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
      'The change that was entered, for `POST /changes/{change_id}/undo`. Absent when nothing was changed.',
    schema: { type: 'string', format: 'uuid' },
  },
  Location: { description: 'Path of the created resource.', schema: { type: 'string' } },
  UnreachableNodes: {
    description:
      'Nodes of the installation that were not heard, separated by commas: what they know is missing. Absent when all were heard.',
    schema: { type: 'string' },
    example: 'node-b, node-c',
  },
  RetryAfter: { description: 'Seconds to wait before retrying.', schema: integer, example: 12 },
}

export const tenantHeader = {
  name: 'X-Tenant-Slug',
  in: 'header',
  required: false,
  schema: { type: 'string' },
  description: 'Acts on behalf of this tenant. A tenant credential can only name its own tenant.',
}

export const repetitionHeader = {
  name: 'Idempotency-Key',
  in: 'header',
  required: false,
  schema: { type: 'string', maxLength: 255 },
  description:
    'Makes the request safe to retry: a repeated request within 24 hours gets the first response again, without a token.',
}

export const securitySchemes = {
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
