/**
 * Creates keys and rotates their tokens, for the API and for `tollgate key create`. A grantor can
 * grant no more than it has itself.
 */
import { parseNetwork } from '../../schema/net/ip-address.ts'
import { overlap } from '../../schema/net/sip-target.ts'
import { toFlag } from '../../schema/columns.ts'
import type { Store } from '../../schema/storage/store.ts'
import { first } from '../../schema/sql/query.ts'
import {
  type AppKey,
  DEFAULT_RATE_LIMIT_RPM,
  hashToken,
  type KeyPatch,
  keyPrefixOf,
  keyStateAt,
  type NewKeyBody,
  newToken,
} from './app-key.ts'
import type { KeyStore } from './key-store.ts'
import type { KeyLimits, Principal } from './principal.ts'
import { SESSION_RPM } from './rate-limit.ts'
import { mayGrant } from './scopes.ts'
import { writeWithinLimits } from './tenant-limits.ts'
import { wrongTenant } from './tenants.ts'
import { ApiError, badRequest, conflict, type RequestProblem } from '../http/api-error.ts'
import { newUuid } from '../http/platform.ts'

/** Who creates a key, and the grantor's limits. */
export type Grantor = Pick<Principal, 'scopeLabels' | 'tenantId' | 'domain'> & {
  readonly username: string | null
  /** Null for none. */
  readonly limits: KeyLimits | null
  /** The key that makes the request; it cannot widen its own limits. Null for a person. */
  readonly ownKey: { readonly id: number; readonly limits: KeyLimits } | null
}

/**
 * A person at the console of this machine, as the audit log calls it, and the owner of the keys
 * that it makes.
 */
export const consoleGrantor: Grantor & { readonly username: string } = {
  scopeLabels: ['*'],
  tenantId: null,
  domain: null,
  username: 'console',
  limits: null,
  ownKey: null,
}

export const grantorOf = (principal: Principal): Grantor => ({
  scopeLabels: principal.scopeLabels,
  tenantId: principal.tenantId,
  domain: principal.domain,
  limits: limitsOf(principal),
  ownKey: principal.kind === 'key' ? { id: principal.keyId, limits: principal.limits } : null,
  username:
    principal.kind === 'user'
      ? principal.username
      : principal.kind === 'key'
        ? principal.ownerUsername
        : null,
})

export interface KeyMint {
  readonly store: Store
  readonly keys: KeyStore
  readonly now: () => number
  readonly randomBytes: (size: number) => Buffer
}

/** The only time at which the token exists outside its holder's hands. */
export interface IssuedKey {
  readonly key: AppKey
  readonly token: string
}

export function issueKey(mint: KeyMint, body: NewKeyBody, grantor: Grantor): Promise<IssuedKey> {
  return mint.keys.atomically(() =>
    writeWithinLimits(mint.store, grantor, ['keys'], () => issue(mint, body, grantor)),
  )
}

async function issue(mint: KeyMint, body: NewKeyBody, grantor: Grantor): Promise<IssuedKey> {
  const now = mint.now()
  refuseEscalation(grantor, body.scopes)
  const limits = limitsFor(body, grantor.limits)
  refusePast(limits.expiresAt, now)
  refuseWider(limits, grantor.limits)
  const tenantId = await tenantFor(mint.store, body, grantor)
  const token = newToken(body.kind, mint.randomBytes)
  const key = await mint.keys.insert({
    uuid: newUuid(mint.randomBytes),
    kind: body.kind,
    name: body.name,
    description: body.description,
    key_prefix: keyPrefixOf(token),
    key_hash: Buffer.from(hashToken(token), 'base64'),
    scopes: JSON.stringify(body.scopes),
    rate_limit_rpm: limits.rateLimitRpm,
    expires_at: limits.expiresAt,
    allowed_ips: JSON.stringify(limits.allowedIps),
    is_active: toFlag(body.is_active),
    suspended_at: null,
    suspended_by: null,
    revoked_at: null,
    last_used_at: null,
    tenant_id: tenantId,
    domain: await domainFor(mint.store, body.domain, tenantId, grantor),
    owner_username: grantor.username,
    created_at: now,
  })
  if (key === 'name_taken') throw nameTaken()
  return { key, token }
}

/** A key before and after a change. */
export interface ChangedKey {
  readonly before: AppKey
  readonly after: AppKey
}

/** Returns the key, or rejects when it does not exist for the caller. */
type FindKey = () => Promise<AppKey>

/** The grantor gets a working token of this key, so it must have everything the key has. */
export function rotateKey(
  mint: KeyMint,
  find: FindKey,
  graceSeconds: number,
  grantor: Grantor,
): Promise<ChangedKey & { readonly token: string }> {
  return mint.keys.atomically(async () => {
    const key = await find()
    const now = mint.now()
    refuseRotation(key, grantor, now)
    const token = newToken(key.kind, mint.randomBytes)
    const hash = Buffer.from(hashToken(token), 'base64')
    const graceEndsAt = now + graceSeconds * 1_000
    const after = await mint.keys.rotate(key, keyPrefixOf(token), hash, graceEndsAt, now)
    return { before: key, after, token }
  })
}

function refuseRotation(key: AppKey, grantor: Grantor, now: number): void {
  refuseRevoked(key)
  if (keyStateAt(key, now) === 'expired')
    throw conflict('key_expired', 'The key has expired; a new token would be refused as well')
  refuseEscalation(grantor, key.scopeLabels)
  refuseWider(key, grantor.limits)
}

/**
 * Resuming a key gives away what the key has: as for its tokens, one must have that, too. Who
 * suspended it last may always resume it.
 */
export function refuseResume(key: AppKey, principal: Principal): void {
  if (key.suspendedBy !== principal.actor) refuseWeaker(key, principal)
}

/**
 * Whether the principal has all that the key has: callers that have less cannot resume what it has
 * suspended.
 */
export function isAsStrong(key: AppKey, principal: Principal): boolean {
  try {
    refuseWeaker(key, principal)
    return true
  } catch (error) {
    if (error instanceof ApiError) return false
    throw error
  }
}

function refuseWeaker(key: AppKey, principal: Principal): void {
  const grantor = grantorOf(principal)
  refuseEscalation(grantor, key.scopeLabels)
  refuseWider(key, grantor.limits)
}

export function changeKey(
  mint: KeyMint,
  find: FindKey,
  patch: KeyPatch,
  grantor: Grantor,
): Promise<ChangedKey> {
  return mint.keys.atomically(async () => {
    const before = await find()
    return { before, after: await change(mint, before, patch, grantor) }
  })
}

/** Throws unless the grantor has what the key has, and what it would have then. */
export function refuseChange(key: AppKey, patch: KeyPatch, grantor: Grantor): void {
  refuseRevoked(key)
  refuseEscalation(grantor, key.scopeLabels)
  if (patch.scopes !== undefined) refuseEscalation(grantor, patch.scopes)
  const limits = grantor.ownKey?.id === key.id ? grantor.ownKey.limits : grantor.limits
  refuseWider(key, limits)
  refuseWider(patchedLimits(key, patch), limits)
}

async function change(
  mint: KeyMint,
  key: AppKey,
  patch: KeyPatch,
  grantor: Grantor,
): Promise<AppKey> {
  refuseChange(key, patch, grantor)
  refusePast(patch.expires_at ?? null, mint.now())
  const changed = await mint.keys.update(key, {
    ...patch,
    ...(patch.domain !== undefined && {
      domain: await domainFor(mint.store, patch.domain, key.tenantId, grantor),
    }),
  })
  if (changed === 'name_taken') throw nameTaken()
  return changed
}

/** Absent fields default to the limits of the granting credential. */
const limitsFor = (body: NewKeyBody, holder: KeyLimits | null): KeyLimits => ({
  rateLimitRpm:
    body.rate_limit_rpm ?? Math.min(DEFAULT_RATE_LIMIT_RPM, holder?.rateLimitRpm ?? Infinity),
  expiresAt: body.expires_at === undefined ? (holder?.expiresAt ?? null) : body.expires_at,
  allowedIps: body.allowed_ips ?? holder?.allowedIps ?? [],
})

const patchedLimits = (key: AppKey, patch: KeyPatch): KeyLimits => ({
  rateLimitRpm: patch.rate_limit_rpm ?? key.rateLimitRpm,
  expiresAt: patch.expires_at === undefined ? key.expiresAt : patch.expires_at,
  allowedIps: patch.allowed_ips ?? key.allowedIps,
})

function refuseEscalation(grantor: Grantor, labels: readonly string[]): void {
  const lacking = labels.filter((label) => !mayGrant(grantor.scopeLabels, label))
  if (lacking.length === 0) return
  throw new ApiError(
    403,
    'scope_escalation',
    `The credential cannot grant scopes that it does not have: ${lacking.join(', ')}`,
  )
}

function refusePast(expiresAt: number | null, now: number): void {
  if (expiresAt !== null && expiresAt <= now) throw invalid('expires_at', 'must lie in the future')
}

function refuseRevoked(key: AppKey): void {
  if (key.revokedAt !== null)
    throw conflict('key_revoked', 'The key has been revoked, which is permanent')
}

async function tenantFor(store: Store, body: NewKeyBody, grantor: Grantor): Promise<number | null> {
  const scope = body.tenant_scope ?? (grantor.tenantId === null ? 'global' : 'tenant')
  if (scope === 'global') {
    if (body.tenant_slug !== undefined)
      throw invalid('tenant_slug', 'requires tenant_scope "tenant"')
    if (grantor.tenantId !== null) throw wrongTenant()
    return null
  }
  if (body.tenant_slug === undefined) {
    if (grantor.tenantId === null) throw invalid('tenant_slug', 'is required')
    return grantor.tenantId
  }
  const query = store.db.selectFrom('tenant').select('id').where('slug', '=', body.tenant_slug)
  const tenant = await first(store, query)
  if (grantor.tenantId !== null && tenant?.id !== grantor.tenantId) throw wrongTenant()
  if (tenant === undefined) throw invalid('tenant_slug', 'is not a tenant')
  return tenant.id
}

/** A credential that is bound to a domain can create keys of that domain only. */
async function domainFor(
  store: Store,
  domain: string | null | undefined,
  tenantId: number | null,
  grantor: Grantor,
): Promise<string | null> {
  const wanted = domain === undefined ? grantor.domain : domain
  if (grantor.domain !== null && wanted !== grantor.domain) throw wrongTenant()
  if (wanted === null) return null
  if (tenantId === null) throw invalid('domain', 'requires a tenant')
  const query = store.db
    .selectFrom('tenant_domain')
    .select('domain')
    .where('domain', '=', wanted)
    .where('tenant_id', '=', tenantId)
  if ((await first(store, query)) === undefined)
    throw invalid('domain', 'is not a domain of this tenant')
  return wanted
}

const invalid = (path: string, message: string): ApiError =>
  badRequest('The body is invalid', [{ path, message }])

export const nameTaken = (): ApiError =>
  conflict('name_taken', 'A key with this name already exists in this tenant')

/** A person has no expiry and no addresses. */
const person: KeyLimits = { rateLimitRpm: SESSION_RPM, expiresAt: null, allowedIps: [] }

/**
 * Null for no limits. An admin session creates keys of any kind. So does a global key with every
 * scope, no expiry and no addresses: it could create an admin and continue as that user.
 */
function limitsOf(principal: Principal): KeyLimits | null {
  if (principal.kind !== 'key') return null
  const { limits, scopeLabels, tenantId } = principal
  const isBounded = limits.expiresAt !== null || limits.allowedIps.length > 0
  const isAdministrator = scopeLabels.includes('*') && tenantId === null
  return isAdministrator && !isBounded && limits.rateLimitRpm >= SESSION_RPM ? null : limits
}

/** Throws 403 when `wanted` exceeds `holder` in any way. */
function refuseWider(wanted: KeyLimits, holder: KeyLimits | null): void {
  const details = holder === null ? [] : widerThan(wanted, holder)
  if (details.length === 0) return
  throw new ApiError(
    403,
    'limit_escalation',
    `The credential cannot grant more than it has: ${details.map(({ path }) => path).join(', ')}`,
    { details },
  )
}

/**
 * Throws 403 for a key with limits that a person would not have: it could continue as that person.
 */
export function refusePersonBy(principal: Principal): void {
  refuseWider(person, limitsOf(principal))
}

function widerThan(wanted: KeyLimits, holder: KeyLimits): RequestProblem[] {
  const isLater =
    holder.expiresAt !== null && (wanted.expiresAt === null || wanted.expiresAt > holder.expiresAt)
  return [
    ...(wanted.rateLimitRpm > holder.rateLimitRpm
      ? [
          {
            path: 'rate_limit_rpm',
            message: `exceeds the ${holder.rateLimitRpm} of the credential`,
          },
        ]
      : []),
    ...(isLater ? [{ path: 'expires_at', message: 'is later than that of the credential' }] : []),
    ...(isWithin(wanted.allowedIps, holder.allowedIps)
      ? []
      : [{ path: 'allowed_ips', message: 'is not within the networks of the credential' }]),
  ]
}

/** Whether every network of `inner` lies in one of `outer`; no networks means all addresses. */
function isWithin(inner: readonly string[], outer: readonly string[]): boolean {
  if (outer.length === 0) return true
  return inner.length > 0 && inner.every((cidr) => outer.some((wider) => holds(wider, cidr)))
}

function holds(outer: string, inner: string): boolean {
  const [wide, narrow] = [parseNetwork(outer), parseNetwork(inner)]
  if (wide === undefined || narrow === undefined) return false
  return wide.prefixLength <= narrow.prefixLength && overlap(wide, narrow)
}
