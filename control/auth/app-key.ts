/**
 * Application keys (SPECIFICATION.md §2.1, §2.2): the form of their tokens, their states, and
 * request bodies.
 */
import { hash } from 'node:crypto'
import { z } from 'zod'
import { parseNetwork } from '../../schema/net/ip-address.ts'
import { isGrantable, MAX_SCOPES, scopeGrammar } from './scopes.ts'
import { pageQuery } from '../http/envelope.ts'
import * as field from '../http/field-table.ts'
import { domain, name, text, time } from '../http/fields.ts'
import { count, moment } from '../http/view-fields.ts'

const keyKinds = ['sbc', 'pbx', 'billing'] as const
export type KeyKind = (typeof keyKinds)[number]

const literals: Readonly<Record<KeyKind, string>> = {
  sbc: 'sbc_live_',
  pbx: 'ak_',
  billing: 'bill_',
}

/** 48 random bytes are exactly 64 base64url characters. */
const RANDOM_BYTES = 48
const tokenForm = /^(?:sbc_live_|ak_|bill_)[\w-]{64}$/

/** Enough to find the few candidates for a token, far too little to guess it; not unique. */
const KEY_PREFIX_LENGTH = 12

export const newToken = (kind: KeyKind, randomBytes: (size: number) => Buffer): string =>
  literals[kind] + randomBytes(RANDOM_BYTES).toString('base64url')

export const isAppKeyToken = (text: string): boolean => text.length <= 73 && tokenForm.test(text)

export const keyPrefixOf = (token: string): string => token.slice(0, KEY_PREFIX_LENGTH)

/**
 * SHA-256 in base64; its bytes are the only stored form of a token. 0.3 µs, `createHash` 1.3 µs.
 */
export const hashToken = (token: string): string => hash('sha256', token, 'base64')

/** A key as stored, without its token. Times in milliseconds UTC. */
export interface AppKey {
  readonly id: number
  readonly uuid: string
  readonly kind: KeyKind
  readonly name: string
  readonly description: string | null
  readonly keyPrefix: string
  readonly scopeLabels: readonly string[]
  readonly rateLimitRpm: number
  readonly expiresAt: number | null
  readonly isActive: boolean
  /**
   * Until it is resumed; `isActive` is what an administrator says of the key, and neither changes
   * the other (D242).
   */
  readonly suspendedAt: number | null
  /** The actor, as in the audit log. */
  readonly suspendedBy: string | null
  /** Permanent: a revoked key cannot be restored. */
  readonly revokedAt: number | null
  readonly tenantId: number | null
  readonly tenantSlug: string | null
  readonly domain: string | null
  /** CIDRs; empty for any address. */
  readonly allowedIps: readonly string[]
  readonly ownerUsername: string | null
  readonly requestCount: number
  readonly lastUsedAt: number | null
  readonly createdAt: number
}

export const keyStates = ['active', 'inactive', 'suspended', 'expired', 'revoked'] as const
export type KeyState = (typeof keyStates)[number]

type KeyFacts = Pick<AppKey, 'revokedAt' | 'suspendedAt' | 'isActive' | 'expiresAt'>

/** SPECIFICATION.md §3.1. The key is rejected from `expires_at` on. */
export function keyStateAt(key: KeyFacts, now: number): KeyState {
  if (key.revokedAt !== null) return 'revoked'
  if (key.expiresAt !== null && key.expiresAt <= now) return 'expired'
  if (key.suspendedAt !== null) return 'suspended'
  return key.isActive ? 'active' : 'inactive'
}

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
const tenantScope = z.enum(['global', 'tenant'])

/**
 * The body of a new key, the answers and the example follow from this table. A token is shown once
 * and an undo revokes, so keys are no `Definition`.
 */
export const keyFields = field.table(
  {
    uuid: field.shown(z.string(), { example: '0b4c1c1e-7f0a-4a37-9d1f-0f6a5f5e9c11' }),
    name: field.required(field.name, { example: 'monitoring' }),
    description: field.of(
      { body: text(500).nullable(), view: z.string().nullable() },
      { default: null },
    ),
    key_prefix: field.shown(z.string(), {
      about: 'The first 12 characters of the token.',
      example: 'sbc_live_a1B',
    }),
    scopes: field.of({ body: scopes, view: z.array(z.string()) }, { default: ['*:read'] }),
    rate_limit_rpm: field.required(
      { body: rateLimit.optional(), view: z.int() },
      {
        about: 'Defaults to 1200. Cannot exceed the limit of the creating credential.',
        example: DEFAULT_RATE_LIMIT_RPM,
      },
    ),
    expires_at: field.optional(
      { body: time, view: moment },
      { about: 'Null: never. Absent: with the creating credential, or never.' },
    ),
    is_active: field.of(field.yesOrNo, { default: true }),
    state: field.shown(z.enum(keyStates), { example: 'active' }),
    suspended_at: field.timeOrNull({ about: 'Until it is resumed.' }),
    revoked_at: field.timeOrNull(),
    /** Absent: `global`, or the tenant of a tenant credential. */
    tenant_scope: field.required(
      { body: tenantScope.optional(), view: tenantScope },
      { example: 'global' },
    ),
    tenant_slug: field.required(
      { body: slug.optional(), view: z.string().nullable() },
      { example: null },
    ),
    domain: field.optional(field.asText(domain)),
    kind: field.of(field.oneOf(keyKinds), { default: 'sbc' }),
    allowed_ips: field.required(
      { body: allowedIps.optional(), view: z.array(z.string()) },
      { about: 'Absent: the addresses of the creating credential, or any.', example: [] },
    ),
    owner_username: field.shown(z.string().nullable(), { example: 'ada' }),
    request_count: field.shown(count, { example: 0 }),
    last_used_at: field.timeOrNull(),
    created_at: field.createdAt,
  },
  { schemaId: 'ApplicationKey', first: ['uuid', 'kind', 'name', 'description', 'key_prefix'] },
)
export const newKeyBody = keyFields.body
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
  kind: z.enum(keyKinds).optional(),
})
