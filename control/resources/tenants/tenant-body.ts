/** `{slug, name, domains[], is_active}`: a customer organisation and its SIP domains. */
import { z } from 'zod'
import { mediaFields } from '../media-fields.ts'
import { domain, name, prefix } from '../../http/fields.ts'

const maxDomains = 100
const maxNumbers = 10_000

/** As in `X-Tenant-Slug`. */
const slug = z
  .string()
  .regex(
    /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/,
    'must be 1 to 63 lower-case letters, digits and inner hyphens',
  )

export const tenantBody = z.strictObject({
  slug,
  name: name.optional().describe('Display name. Defaults to the slug.'),
  is_active: z.boolean().default(true),
  domains: z
    .array(domain)
    .max(maxDomains)
    .refine((domains) => new Set(domains).size === domains.length, 'contains a duplicate domain')
    .default([]),
  numbers: z
    .array(prefix.refine((start) => start !== '', 'is empty'))
    .max(maxNumbers)
    .refine((numbers) => new Set(numbers).size === numbers.length, 'contains a duplicate number')
    .default([])
    .describe(
      'Numbers of the tenant, or prefixes of number blocks. The tenant may route calls to them from platform carriers.',
    ),
  ...mediaFields,
})

export type TenantBody = z.output<typeof tenantBody>
