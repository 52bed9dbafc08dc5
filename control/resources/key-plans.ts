/** Plans for suspending, resuming and revoking application keys. */
import { timeToText } from '../../schema/columns.ts'
import type { AppKey, KeyPatch } from '../auth/app-key.ts'
import { grantorOf, isAsStrong, nameTaken, refuseChange, refuseResume } from '../auth/issue-key.ts'
import type { KeyUsage } from '../auth/key-usage.ts'
import type { Principal } from '../auth/principal.ts'
import { wrongTenant } from '../auth/tenants.ts'
import type { Plan } from '../changes/change.ts'
import {
  type ChangeDeps,
  fieldsOf,
  hasFields,
  type Json,
  type RestorableKind,
  shareFields,
} from '../changes/kinds.ts'
import { conflict, notFound } from '../http/api-error.ts'
import { quoted } from '../http/clean-text.ts'

export interface KeyPlanDeps extends Pick<ChangeDeps, 'keys' | 'now'> {
  readonly usage: Pick<KeyUsage, 'ofLastHour'>
  readonly principal: Principal
  /** How long the change lasts, as the end of a clause; absent: the effect names the time. */
  readonly lasting?: string
}

export type KeyPlan = Plan<{ readonly key: AppKey }>

/**
 * A suspended key is rejected from its next request until it is resumed. When a caller that could
 * resume the key suspends it again, the suspension becomes that caller's. Another caller would only
 * gain the right to resume it, so nothing changes.
 */
export async function planSuspension(
  key: AppKey,
  expiresAt: number | null,
  deps: KeyPlanDeps,
): Promise<KeyPlan> {
  refuseRevoked(key)
  const suspension = { at: deps.now(), by: deps.principal.actor }
  const before = keyStateOf(key)
  const until =
    expiresAt === null
      ? ' until it is resumed'
      : (deps.lasting ?? ` until ${timeToText(expiresAt)}`)
  const isSuspended = key.suspendedAt !== null
  const takesOver =
    isSuspended && key.suspendedBy !== suspension.by && isAsStrong(key, deps.principal)
  const isUnchanged = isSuspended && !takesOver
  return {
    target: { kind: 'api_key', id: key.uuid },
    before,
    after: isUnchanged
      ? before
      : { ...before, suspended_at: suspension.at, suspended_by: suspension.by },
    effect: isUnchanged
      ? `Nothing changes: the key ${quoted(key.name)} is suspended already.`
      : takesOver
        ? `The key ${quoted(key.name)} stays suspended${until}: whoever suspended it ` +
          'before can now resume it only with all scopes of the key.'
        : `The key ${quoted(key.name)} is suspended${until}: its requests are rejected ` +
          'from now on.',
    affected: await useOf(key, deps),
    undo: 'restores',
    preview: { key },
    apply: async () => ({ key: await deps.keys.setSuspension(key, suspension) }),
  }
}

/** A resumed key that is inactive or expired is still rejected. */
export async function planResumption(key: AppKey, deps: KeyPlanDeps): Promise<KeyPlan> {
  refuseRevoked(key)
  const before = keyStateOf(key)
  const isSuspended = key.suspendedAt !== null
  if (isSuspended) refuseResume(key, deps.principal)
  return {
    target: { kind: 'api_key', id: key.uuid },
    before,
    after: { ...before, suspended_at: null, suspended_by: null },
    effect: isSuspended
      ? `The key ${quoted(key.name)} is resumed: its requests are accepted from now ` +
        `on${lackOf(key)}. Its scopes are ${scopesOf(key)}.`
      : `Nothing changes: the key ${quoted(key.name)} is not suspended.`,
    affected: await useOf(key, deps),
    undo: 'restores',
    preview: { key },
    apply: async () => ({ key: await deps.keys.setSuspension(key, null) }),
  }
}

export async function planRevocation(key: AppKey, deps: KeyPlanDeps): Promise<KeyPlan> {
  const before = keyStateOf(key)
  const revokedAt = key.revokedAt ?? deps.now()
  return {
    target: { kind: 'api_key', id: key.uuid },
    before,
    after: { ...before, revoked_at: revokedAt },
    effect:
      key.revokedAt === null
        ? `The key ${quoted(key.name)} is revoked permanently: its requests are rejected ` +
          'from now on. A suspension does the same, and can be undone.'
        : `Nothing changes: the key ${quoted(key.name)} was revoked at ${timeToText(revokedAt)}.`,
    affected: await useOf(key, deps),
    undo: 'none',
    preview: { key },
    apply: async () => ({ key: await deps.keys.revoke(key, revokedAt) }),
  }
}

/** Throws 409 unless the caller confirms that the key of this request is meant. */
export function refuseOwnKey(key: AppKey, principal: Principal, isConfirmed: boolean): void {
  if (isConfirmed || !isOwnKey(key, principal)) return
  throw conflict(
    'confirm_self',
    'This request uses this very key: its next request would be rejected. Nothing was ' +
      'changed: set confirm_self to true if you want that',
  )
}

/** Whether the request presents this key. */
export const isOwnKey = (key: AppKey, principal: Principal): boolean =>
  principal.kind === 'key' && principal.keyId === key.id

/** A key with a scope of MCP was made for tools. */
export const isOfAgent = (principal: Principal): boolean =>
  principal.kind === 'key' && principal.scopeLabels.some((label) => label.startsWith('mcp:'))

/** An effect names so many of the scopes that a person approves. */
const MAX_NAMED = 20

function scopesOf({ scopeLabels }: AppKey): string {
  const named = scopeLabels.slice(0, MAX_NAMED).join(', ')
  const others = scopeLabels.length - MAX_NAMED
  return others > 0 ? `${named} and ${others} more` : named || 'none'
}

const lackOf = ({ isActive }: AppKey): string =>
  isActive ? '' : ' when an administrator makes it active, too'

function refuseRevoked({ revokedAt }: AppKey): void {
  if (revokedAt !== null)
    throw conflict('key_revoked', 'The key has been revoked, which is permanent')
}

async function useOf(key: AppKey, { usage, now }: KeyPlanDeps): Promise<Record<string, number>> {
  return {
    requests_per_hour: await usage.ofLastHour(key.id),
    ...(key.lastUsedAt !== null && {
      seconds_since_last_use: Math.max(0, Math.floor((now() - key.lastUsedAt) / 1_000)),
    }),
  }
}

/** The state of a key as far as its suspension and its revocation go. */
export interface KeyStateJson {
  readonly [name: string]: Json
  /** Milliseconds UTC; null: it is not suspended. */
  readonly suspended_at: number | null
  readonly suspended_by: string | null
  readonly revoked_at: number | null
}

const keyStateOf = (key: AppKey): KeyStateJson => ({
  suspended_at: key.suspendedAt,
  suspended_by: key.suspendedBy,
  revoked_at: key.revokedAt,
})

/** The state with the fields of a PATCH; times are milliseconds UTC. */
const wholeStateOf = (key: AppKey) => ({
  ...keyStateOf(key),
  name: key.name,
  description: key.description,
  scopes: key.scopeLabels,
  rate_limit_rpm: key.rateLimitRpm,
  expires_at: key.expiresAt,
  is_active: key.isActive,
  domain: key.domain,
  allowed_ips: key.allowedIps,
})

export const apiKeyKind: RestorableKind = {
  isRow: true,
  async read(uuid, { keys }) {
    const key = await keys.byUuid(uuid, null)
    return key === undefined ? null : wholeStateOf(key)
  },
  async restore(uuid, state, { keys, now }) {
    const key = await keys.byUuid(uuid, null)
    if (key === undefined) throw notFound('Application key')
    if (state === null) {
      await keys.revoke(key, now())
      return
    }
    if (hasSuspension(state)) {
      const { at, by } = suspensionIn(state)
      await keys.setSuspension(key, at === null ? null : { at, by })
    }
    if (Object.keys(patchIn(state)).length === 0) return
    const changed = await keys.update(key, patchIn(state))
    if (changed === 'name_taken') throw nameTaken()
  },
  /** Records of its actions refer to the key, so it is not deleted. */
  uncreated: 'is revoked permanently: it was not there',
  isSame: hasFields,
  isAbout: shareFields,
  async admit(uuid, { from, to }, principal, { keys }) {
    const key = await reachable(uuid, principal, keys)
    if (to === null) refuseOwn(key, principal)
    // A suspension that passes to another actor counts, too: that actor could resume the key.
    const [held, then] = [suspensionIn(from), suspensionIn(to)]
    if (held.at !== null && (then.at === null || then.by !== held.by)) refuseResume(key, principal)
    const patch = patchIn(to)
    if (Object.keys(patch).length > 0) refuseChange(key, patch, grantorOf(principal))
    // As in a PATCH: a credential of one domain gives no key another one, or all of them.
    if (
      patch.domain !== undefined &&
      principal.domain !== null &&
      patch.domain !== principal.domain
    )
      throw wrongTenant()
  },
}

/** DELETE has `confirm_self` for that. */
function refuseOwn(key: AppKey, principal: Principal): void {
  if (principal.kind === 'key' && principal.keyId === key.id)
    throw conflict(
      'confirm_self',
      'This request uses this very key: its next request would be rejected. Nothing was ' +
        'changed: revoke the key instead if you want that',
    )
}

/** A key of another tenant or domain does not exist for the caller. */
export async function reachable(
  uuid: string,
  { tenantId, domain }: Principal,
  keys: ChangeDeps['keys'],
): Promise<AppKey> {
  const key = await keys.byUuid(uuid, tenantId)
  if (key !== undefined && (domain === null || key.domain === domain)) return key
  throw notFound('Application key')
}

const hasSuspension = (state: Json | null): boolean =>
  Object.hasOwn(fieldsOf(state) ?? {}, 'suspended_at')

function suspensionIn(state: Json | null) {
  const { suspended_at: at, suspended_by: by } = fieldsOf(state) ?? {}
  return {
    at: typeof at === 'number' ? at : null,
    by: typeof by === 'string' ? by : '',
  }
}

/** The fields of a PATCH in a state, as `wholeStateOf` gave them. */
function patchIn(state: Json | null): KeyPatch {
  const {
    suspended_at: _at,
    suspended_by: _by,
    revoked_at: _revoked,
    ...patch
  } = fieldsOf(state) ?? {}
  return patch
}
