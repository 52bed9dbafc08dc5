/** Headers that every answer carries, those that requests may carry, and the forms of a credential. */

const integer = { type: 'integer', minimum: 0 }

export const commonHeaders = {
  'X-Correlation-ID': {
    description: 'As sent, or made: to be told when something went wrong.',
    schema: { type: 'string' },
  },
  'X-RateLimit-Limit': {
    description: 'Requests in any sixty seconds.',
    schema: integer,
    example: 1200,
  },
  'X-RateLimit-Remaining': {
    description: 'How many more may come now.',
    schema: integer,
    example: 1199,
  },
  'X-RateLimit-Reset': {
    description: 'Unix second at which the oldest request leaves the window.',
    schema: integer,
    example: 1767225660,
  },
  Location: { description: 'Path of what was created.', schema: { type: 'string' } },
  RetryAfter: { description: 'Seconds.', schema: integer, example: 12 },
}

export const tenantHeader = {
  ...{ name: 'X-Tenant-Slug', in: 'header', required: false, schema: { type: 'string' } },
  description: 'Acts as this tenant. A credential of a tenant has no other.',
}

export const repetitionHeader = {
  ...{ name: 'Idempotency-Key', in: 'header', required: false },
  schema: { type: 'string', maxLength: 255 },
  description: 'A repetition within 24 hours gets the first answer again.',
}

export const securitySchemes = {
  key: {
    ...{ type: 'http', scheme: 'bearer', bearerFormat: 'application key' },
    description: '`sbc_live_…`, `ak_…` or `bill_…`',
  },
  keyHeader: { type: 'apiKey', in: 'header', name: 'X-API-Key' },
  session: {
    ...{ type: 'http', scheme: 'bearer', bearerFormat: 'JWT' },
    description: 'Of `POST /auth/login` for staff, `POST /client/auth/login` for customers.',
  },
}
