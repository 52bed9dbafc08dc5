import type { z } from 'zod'
import { timeToText } from '../../schema/columns.ts'
import { type AppKey, type keyFields, keyStateAt } from '../auth/app-key.ts'
import { timeOrNull } from '../http/view-fields.ts'

/** A key as the API and the tools show it, without the token and its hash. */
export function keyView(key: AppKey, now: number): z.output<typeof keyFields.view> {
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
