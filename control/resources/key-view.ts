import { z } from 'zod'
import { count, exampleTime, moment, timeOrNull } from '../http/view-fields.ts'
import { timeToText } from '../../schema/columns.ts'
import { type AppKey, keyStateAt, keyStates } from '../auth/app-key.ts'

export const keyFields = z.strictObject({
  uuid: z.string(),
  kind: z.enum(['sbc', 'pbx', 'billing']),
  name: z.string(),
  description: z.string().nullable(),
  key_prefix: z.string().describe('The first 12 characters of the token.'),
  scopes: z.array(z.string()),
  rate_limit_rpm: z.int(),
  expires_at: moment.nullable(),
  is_active: z.boolean(),
  state: z.enum(keyStates),
  suspended_at: moment.nullable().describe('Until it is resumed.'),
  revoked_at: moment.nullable(),
  tenant_scope: z.enum(['global', 'tenant']),
  tenant_slug: z.string().nullable(),
  domain: z.string().nullable(),
  allowed_ips: z.array(z.string()),
  owner_username: z.string().nullable(),
  request_count: count,
  last_used_at: moment.nullable(),
  created_at: moment,
})

export const keySchema = keyFields.meta({ id: 'ApplicationKey' })

/** A key as the API and the tools show it, without the token and its hash. */
export function keyView(key: AppKey, now: number): z.output<typeof keySchema> {
  return {
    uuid: key.uuid,
    kind: key.kind,
    name: key.name,
    description: key.description,
    key_prefix: key.keyPrefix,
    scopes: [...key.scopeLabels],
    rate_limit_rpm: key.rateLimitRpm,
    expires_at: timeOrNull(key.expiresAt),
    is_active: key.isActive,
    state: keyStateAt(key, now),
    suspended_at: timeOrNull(key.suspendedAt),
    revoked_at: timeOrNull(key.revokedAt),
    tenant_scope: key.tenantId === null ? 'global' : 'tenant',
    tenant_slug: key.tenantSlug,
    domain: key.domain,
    allowed_ips: [...key.allowedIps],
    owner_username: key.ownerUsername,
    request_count: key.requestCount,
    last_used_at: timeOrNull(key.lastUsedAt),
    created_at: timeToText(key.createdAt),
  }
}

/** A key in the audit log: without the fields that change with every use. */
export function auditedKey(key: AppKey, now: number) {
  const { request_count: _count, last_used_at: _use, ...rest } = keyView(key, now)
  return rest
}

export const exampleKey = {
  uuid: '0b4c1c1e-7f0a-4a37-9d1f-0f6a5f5e9c11',
  kind: 'sbc',
  name: 'monitoring',
  description: null,
  key_prefix: 'sbc_live_a1B',
  scopes: ['*:read'],
  rate_limit_rpm: 1200,
  expires_at: null,
  is_active: true,
  state: 'active',
  suspended_at: null,
  revoked_at: null,
  tenant_scope: 'global',
  tenant_slug: null,
  domain: null,
  allowed_ips: [],
  owner_username: 'ada',
  request_count: 0,
  last_used_at: null,
  created_at: exampleTime,
}
