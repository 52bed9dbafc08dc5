/** Request bodies of `/application-keys` (SPECIFICATION.md §4.6). */
import { z } from 'zod'
import { domain, name, text, time } from '../../http/fields.ts'
import { pageQuery } from '../../http/envelope.ts'
import { parseNetwork } from '../../../schema/net/ip-address.ts'
import { isGrantable, MAX_SCOPES, scopeGrammar } from '../scopes.ts'
import { keyStates } from './app-key.ts'

const MAX_ALLOWED_IPS = 50
/** Thirty days. */
const MAX_GRACE_SECONDS = 2_592_000
export const DEFAULT_RATE_LIMIT_RPM = 1_200

const scopes = z
  .array(
    z.string().refine(isGrantable, `is not a scope of this service: it must be ${scopeGrammar}`),
  )
  .max(MAX_SCOPES)
  .transform((labels) => [...new Set(labels)])

const allowedIps = z
  .array(z.string().refine((cidr) => parseNetwork(cidr) !== undefined, 'must be a CIDR'))
  .max(MAX_ALLOWED_IPS)

const rateLimit = z.int().min(1).max(100_000)
const slug = text(63).min(1)

export const newKeyBody = z.strictObject({
  name,
  description: text(500).nullable().default(null),
  scopes: scopes.default(['*:read']),
  rate_limit_rpm: rateLimit
    .optional()
    .describe('Defaults to 1200. Cannot exceed the limit of the creating credential.'),
  expires_at: time
    .nullable()
    .optional()
    .describe('Null: never. Absent: with the creating credential, or never.'),
  is_active: z.boolean().default(true),
  /** Absent: `global`, or the tenant of a tenant credential. */
  tenant_scope: z.enum(['global', 'tenant']).optional(),
  tenant_slug: slug.optional(),
  domain: domain.nullable().optional(),
  kind: z.enum(['sbc', 'pbx', 'billing']).default('sbc'),
  allowed_ips: allowedIps
    .optional()
    .describe('Absent: the addresses of the creating credential, or any.'),
})
export type NewKeyBody = z.output<typeof newKeyBody>

/** Absent keeps the value; null clears it, or restores the default of a required one. */
export const keyPatch = z.strictObject({
  name: name.optional(),
  description: text(500).nullable().optional(),
  scopes: scopes.optional(),
  rate_limit_rpm: rateLimit
    .nullable()
    .transform((limit) => limit ?? DEFAULT_RATE_LIMIT_RPM)
    .optional(),
  expires_at: time.nullable().optional(),
  is_active: z.boolean().optional(),
  domain: domain.nullable().optional(),
  allowed_ips: allowedIps
    .nullable()
    .transform((cidrs) => cidrs ?? [])
    .optional(),
})
export type KeyPatch = z.output<typeof keyPatch>

export const rotateBody = z.strictObject({
  grace_seconds: z.int().min(0).max(MAX_GRACE_SECONDS).default(0),
})

export const keyQuery = z.strictObject({
  ...pageQuery,
  search: z.string().max(100).optional(),
  tenant: slug.optional(),
  state: z.enum(keyStates).optional(),
  kind: z.enum(['sbc', 'pbx', 'billing']).optional(),
})
