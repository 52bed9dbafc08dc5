/** Request bodies and queries of `/webhooks`. */
import { z } from 'zod'
import { pageQuery } from '../http/envelope.ts'
import { reference, text } from '../http/fields.ts'
import { eventTypes } from '../../schema/contracts/webhook-events.ts'
import { problemOfUrl } from './targets.ts'

const events = z
  .array(z.enum(['*', ...eventTypes]))
  .min(1)
  .max(eventTypes.length + 1)
  .transform((types) => [...new Set(types)])

const url = (allowPrivate: boolean) =>
  text(2_000).superRefine((value, context) => {
    const message = problemOfUrl(value, allowPrivate)
    if (message !== undefined) context.addIssue({ code: 'custom', message })
  })

const approvalLinks = z
  .boolean()
  .describe(
    'Whether `proposal.created` has `approve_url`: who follows it decides with the rights of the user who has set this.',
  )

export const newEndpointBody = (allowPrivate: boolean) =>
  z.strictObject({
    url: url(allowPrivate),
    events: events.default(['*']),
    description: text(500).nullable().default(null),
    is_active: z.boolean().default(true),
    approval_links: approvalLinks.default(false),
    tenant: reference.nullish(),
  })
export type NewEndpoint = z.output<ReturnType<typeof newEndpointBody>>

export const endpointPatch = (allowPrivate: boolean) =>
  z.strictObject({
    url: url(allowPrivate).optional(),
    events: events.optional(),
    description: text(500).nullable().optional(),
    is_active: z.boolean().optional(),
    approval_links: approvalLinks.optional(),
  })

const daySeconds = 86_400

export const rotateBody = z.strictObject({
  overlap_seconds: z
    .int()
    .min(0)
    .max(30 * daySeconds)
    .default(daySeconds)
    .describe('Seconds during which the old secret also signs.'),
})

export const deliveryQuery = z.strictObject({
  ...pageQuery,
  state: z.enum(['pending', 'delivered', 'failed']).optional(),
})
