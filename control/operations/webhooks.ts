import { z } from 'zod'
import { eventTypes } from '../../schema/contracts/webhook-events.ts'
import { data, list, type Operations } from '../http/openapi/operation.ts'
import { deleted } from '../http/openapi/resource-operations.ts'
import { count, exampleTime, moment } from '../http/view-fields.ts'

const tag = 'Webhooks'

const endpointFields = z.strictObject({
  id: z.int(),
  url: z.string(),
  description: z.string().nullable(),
  events: z.array(z.enum(['*', ...eventTypes])),
  is_active: z.boolean(),
  approval_links: z.boolean(),
  disabled_reason: z.enum(['gone', 'backlog']).nullable(),
  previous_secret_expires_at: moment.nullable(),
  created_at: moment,
  updated_at: moment,
})
const endpoint = endpointFields.meta({ id: 'WebhookEndpoint' })
const withSecret = endpointFields
  .extend({ secret: z.string().describe('The signing secret. Shown only in this response.') })
  .meta({ id: 'WebhookEndpointWithSecret' })

const delivery = z
  .strictObject({
    id: z.int(),
    webhook_id: z.string(),
    type: z.string(),
    state: z.enum(['pending', 'delivered', 'failed']),
    attempts: count,
    next_attempt_at: moment.nullable(),
    last_attempt_at: moment.nullable(),
    last_status: z.int().nullable(),
    last_error: z.string().nullable(),
    last_answer: z.string().nullable().describe('The start of the last response body.'),
    created_at: moment,
    payload: z.unknown().describe('The request body.'),
  })
  .meta({ id: 'WebhookDelivery' })

const exampleEndpoint = {
  id: 1,
  url: 'https://crm.example/hook',
  description: null,
  events: ['*'],
  is_active: true,
  approval_links: false,
  disabled_reason: null,
  previous_secret_expires_at: null,
  created_at: exampleTime,
  updated_at: exampleTime,
}
const exampleSecret = { ...exampleEndpoint, secret: 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw' }
const exampleDelivery = {
  id: 1,
  webhook_id: 'msg_1',
  type: 'call.ended',
  state: 'delivered',
  attempts: 1,
  next_attempt_at: null,
  last_attempt_at: exampleTime,
  last_status: 200,
  last_error: null,
  last_answer: 'ok',
  created_at: exampleTime,
  payload: { type: 'call.ended' },
}

const path = '/api/v1/webhooks'

export const webhookOperations: Operations = {
  [`POST ${path}`]: {
    id: 'createWebhookEndpoint',
    tag,
    summary: 'Create an endpoint',
    body: { url: 'https://crm.example/hook', events: ['call.ended'] },
    answer: data(withSecret, exampleSecret, 201),
    refusals: [409],
  },
  [`GET ${path}`]: {
    id: 'listWebhookEndpoints',
    tag,
    summary: 'List endpoints',
    answer: list(endpoint, exampleEndpoint),
  },
  [`GET ${path}/:id`]: {
    id: 'getWebhookEndpoint',
    tag,
    summary: 'Get an endpoint',
    answer: data(endpoint, exampleEndpoint),
  },
  [`PATCH ${path}/:id`]: {
    id: 'updateWebhookEndpoint',
    tag,
    summary: 'Update an endpoint',
    body: { is_active: false },
    answer: data(endpoint, exampleEndpoint),
  },
  [`DELETE ${path}/:id`]: {
    id: 'deleteWebhookEndpoint',
    tag,
    summary: 'Delete an endpoint',
    answer: data(deleted, { id: 1, deleted: true }),
  },
  [`POST ${path}/:id/rotate`]: {
    id: 'rotateWebhookSecret',
    tag,
    summary: 'Rotate the secret. The old one stays valid during the overlap.',
    body: { overlap_seconds: 86_400 },
    answer: data(withSecret, exampleSecret),
  },
  [`POST ${path}/:id/test`]: {
    id: 'testWebhookEndpoint',
    tag,
    summary: 'Send a test event',
    answer: data(z.strictObject({ webhook_id: z.string() }), { webhook_id: 'msg_1' }, 202),
    refusals: [409],
  },
  [`GET ${path}/:id/deliveries`]: {
    id: 'listWebhookDeliveries',
    tag,
    summary: 'List deliveries',
    answer: list(delivery, exampleDelivery),
  },
  [`POST ${path}/:id/deliveries/:deliveryId/retry`]: {
    id: 'retryWebhookDelivery',
    tag,
    summary: 'Retry a delivery',
    answer: data(delivery, exampleDelivery, 202),
    refusals: [409],
  },
}
