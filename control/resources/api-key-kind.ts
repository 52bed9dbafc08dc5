/** Application keys: suspended or not, revoked or not, and what an administrator says of them. */
import {
  type ChangeDeps,
  fieldsOf,
  hasFields,
  type Json,
  type RestorableKind,
  shareFields,
} from '../changes/kinds.ts'
import type { Principal } from '../auth/principal.ts'
import { wrongTenant } from '../auth/tenants.ts'
import { conflict, notFound } from '../http/api-error.ts'
import type { KeyPatch, AppKey } from '../auth/app-key.ts'
import { grantorOf, nameTaken, refuseChange, refuseResume } from '../auth/issue-key.ts'

/** The state of a key as far as its suspension and its revocation go. */
export interface KeyStateJson {
  readonly [name: string]: Json
  /** Milliseconds UTC; null: it is not suspended. */
  readonly suspended_at: number | null
  readonly suspended_by: string | null
  readonly revoked_at: number | null
}

export const keyStateOf = (key: AppKey): KeyStateJson => ({
  suspended_at: key.suspendedAt,
  suspended_by: key.suspendedBy,
  revoked_at: key.revokedAt,
})

/** With the fields of a PATCH; times are milliseconds UTC. */
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
  /** It is named by what it did, so it is not deleted. */
  uncreated: 'is revoked permanently: it was not there',
  isSame: hasFields,
  isAbout: shareFields,
  async admit(uuid, { from, to }, principal, { keys }) {
    const key = await reachable(uuid, principal, keys)
    if (to === null) refuseOwn(key, principal)
    // Also one that falls to another: who had suspended it before could resume it then.
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
      'This is the key of this very request: its next request would be rejected. Nothing was changed: revoke it instead if that is wanted',
    )
}

/** A key of another tenant or domain does not exist for the caller. */
async function reachable(
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
