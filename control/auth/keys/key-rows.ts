/** Application keys as rows: the columns of each field, and the conditions of a list. */
import { sql, type Insertable, type RawBuilder, type Selectable, type Updateable } from 'kysely'
import { fromFlag, toFlag } from '../../../schema/columns.ts'
import type { ApplicationKeyTable } from '../../../schema/database.ts'
import { likePattern } from '../../http/envelope.ts'
import type { AppKey, KeyState } from './app-key.ts'

export type KeyRow = Selectable<ApplicationKeyTable> & { readonly tenant_slug: string | null }

/** Fields set at creation; the rest of a row starts with defaults. */
export type NewKey = Omit<
  AppKey,
  'id' | 'suspendedAt' | 'suspendedBy' | 'revokedAt' | 'tenantSlug' | 'requestCount' | 'lastUsedAt'
> & { readonly keyHash: Buffer }

/** Absent keeps the value; null clears it. */
export type KeyChange = Partial<
  Pick<
    AppKey,
    | 'name'
    | 'description'
    | 'scopeLabels'
    | 'rateLimitRpm'
    | 'expiresAt'
    | 'isActive'
    | 'domain'
    | 'allowedIps'
  >
>

export function toKey(row: KeyRow): AppKey {
  return {
    id: row.id,
    uuid: row.uuid,
    kind: row.kind,
    name: row.name,
    description: row.description,
    keyPrefix: row.key_prefix,
    scopeLabels: readList(row.scopes),
    rateLimitRpm: row.rate_limit_rpm,
    expiresAt: row.expires_at,
    isActive: fromFlag(row.is_active),
    suspendedAt: row.suspended_at,
    suspendedBy: row.suspended_by,
    revokedAt: row.revoked_at,
    tenantId: row.tenant_id,
    tenantSlug: row.tenant_slug,
    domain: row.domain,
    allowedIps: readList(row.allowed_ips),
    ownerUsername: row.owner_username,
    requestCount: row.request_count,
    lastUsedAt: row.last_used_at,
    createdAt: row.created_at,
  }
}

function readList(json: string): readonly string[] {
  const list: unknown = JSON.parse(json)
  return Array.isArray(list) ? list.filter((item) => typeof item === 'string') : []
}

export function toRow(key: NewKey): Insertable<ApplicationKeyTable> {
  return {
    uuid: key.uuid,
    kind: key.kind,
    name: key.name,
    description: key.description,
    key_prefix: key.keyPrefix,
    key_hash: key.keyHash,
    scopes: JSON.stringify(key.scopeLabels),
    rate_limit_rpm: key.rateLimitRpm,
    expires_at: key.expiresAt,
    is_active: toFlag(key.isActive),
    suspended_at: null,
    suspended_by: null,
    revoked_at: null,
    tenant_id: key.tenantId,
    domain: key.domain,
    allowed_ips: JSON.stringify(key.allowedIps),
    owner_username: key.ownerUsername,
    last_used_at: null,
    created_at: key.createdAt,
  }
}

export function changedColumns(change: KeyChange): Updateable<ApplicationKeyTable> {
  return {
    ...(change.name !== undefined && { name: change.name }),
    ...(change.description !== undefined && { description: change.description }),
    ...(change.scopeLabels !== undefined && { scopes: JSON.stringify(change.scopeLabels) }),
    ...(change.rateLimitRpm !== undefined && { rate_limit_rpm: change.rateLimitRpm }),
    ...(change.expiresAt !== undefined && { expires_at: change.expiresAt }),
    ...(change.isActive !== undefined && { is_active: toFlag(change.isActive) }),
    ...(change.domain !== undefined && { domain: change.domain }),
    ...(change.allowedIps !== undefined && { allowed_ips: JSON.stringify(change.allowedIps) }),
  }
}

export type SearchableColumn = 'name' | 'description' | 'owner_username'

/** Whether the text occurs in one of these columns, without regard to ASCII case. */
export function mentions(
  search: string,
  columns: readonly SearchableColumn[] = ['name', 'description', 'owner_username'],
): RawBuilder<boolean> {
  const pattern = likePattern(search)
  const matches = columns.map(
    (column) => sql`lower(${sql.ref(`key.${column}`)}) LIKE lower(${pattern}) ESCAPE '\\'`,
  )
  return sql<boolean>`(${sql.join(matches, sql` OR `)})`
}

/** `keyStateAt` as SQL. */
export function inState(state: KeyState, now: number): RawBuilder<boolean> {
  const isAlive = sql<boolean>`key.revoked_at IS NULL AND (key.expires_at IS NULL OR key.expires_at > ${now})`
  const conditions: Readonly<Record<KeyState, RawBuilder<boolean>>> = {
    revoked: sql`key.revoked_at IS NOT NULL`,
    expired: sql`key.revoked_at IS NULL AND key.expires_at <= ${now}`,
    suspended: sql`${isAlive} AND key.suspended_at IS NOT NULL`,
    active: sql`${isAlive} AND key.suspended_at IS NULL AND key.is_active = 1`,
    inactive: sql`${isAlive} AND key.suspended_at IS NULL AND key.is_active = 0`,
  }
  return conditions[state]
}
