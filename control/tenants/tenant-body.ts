/** `{slug, name, domains[], is_active}`: a customer organisation and its SIP domains. */
import { z } from 'zod'
import { domain, name, prefix } from '../provisioning/fields.ts'

const maxDomains = 100
const maxNumbers = 10_000

/** As in `X-Tenant-Slug`. */
const slug = z
  .string()
  .regex(
    /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/,
    'must be 1 to 63 small letters, digits and inner hyphens',
  )

export const tenantBody = z.strictObject({
  slug,
  name: name.optional().describe('Shown to people; the slug where absent.'),
  is_active: z.boolean().default(true),
  domains: z
    .array(domain)
    .max(maxDomains)
    .refine((domains) => new Set(domains).size === domains.length, 'holds a domain twice')
    .default([]),
  numbers: z
    .array(prefix.refine((start) => start !== '', 'is empty'))
    .max(maxNumbers)
    .refine((numbers) => new Set(numbers).size === numbers.length, 'holds a number twice')
    .default([])
    .describe(
      'Numbers that belong to the tenant, or starts of blocks: calls of the platform’s carriers to them may be routed by the tenant.',
    ),
})

export type TenantBody = z.output<typeof tenantBody>
