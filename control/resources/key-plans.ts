/** What becomes of an application key when it is suspended, resumed or revoked. */
import type { ChangeDeps } from '../changes/kinds.ts'
import { timeToText } from '../../schema/columns.ts'
import type { AppKey } from '../auth/app-key.ts'
import { isAsStrong, refuseResume } from '../auth/issue-key.ts'
import type { KeyUsage } from '../auth/key-usage.ts'
import type { Principal } from '../auth/principal.ts'
import { conflict } from '../http/api-error.ts'
import { quoted } from '../http/clean-text.ts'
import { keyStateOf } from './api-key-kind.ts'
import type { Plan } from '../changes/change.ts'

export interface KeyWorld extends Pick<ChangeDeps, 'keys' | 'now'> {
  readonly usage: Pick<KeyUsage, 'ofLastHour'>
  readonly principal: Principal
}

export type KeyPlan = Plan<{ readonly key: AppKey }>

/**
 * Rejected with the next request, and good again when it is resumed. Suspended again by a caller that could resume it,
 * the key is suspended by that caller from then on. A caller that could not would only win the right to resume it, so
 * nothing changes.
 */
export async function planSuspension(
  key: AppKey,
  expiresAt: number | null,
  world: KeyWorld,
): Promise<KeyPlan> {
  refuseRevoked(key)
  const suspension = { at: world.now(), by: world.principal.actor }
  const before = keyStateOf(key)
  const until = expiresAt === null ? 'until it is resumed' : `until ${timeToText(expiresAt)}`
  const isSuspended = key.suspendedAt !== null
  const takesOver =
    isSuspended && key.suspendedBy !== suspension.by && isAsStrong(key, world.principal)
  const isKept = isSuspended && !takesOver
  return {
    target: { kind: 'api_key', id: key.uuid },
    before,
    after: isKept
      ? before
      : { ...before, suspended_at: suspension.at, suspended_by: suspension.by },
    effect: isKept
      ? `Nothing changes: the key ${quoted(key.name)} is suspended already.`
      : takesOver
        ? `The key ${quoted(key.name)} stays suspended ${until}: who suspended it before cannot resume it any more without all that the key has.`
        : `The key ${quoted(key.name)} is suspended ${until}: its requests are rejected from now on.`,
    affected: await useOf(key, world),
    undo: 'restores',
    preview: { key },
    apply: async () => ({ key: await world.keys.setSuspension(key, suspension) }),
  }
}

/** Whatever else is said of the key stays: one that is inactive or expired is rejected all the same. */
export async function planResumption(key: AppKey, world: KeyWorld): Promise<KeyPlan> {
  refuseRevoked(key)
  const before = keyStateOf(key)
  const isSuspended = key.suspendedAt !== null
  if (isSuspended) refuseResume(key, world.principal)
  return {
    target: { kind: 'api_key', id: key.uuid },
    before,
    after: { ...before, suspended_at: null, suspended_by: null },
    effect: isSuspended
      ? `The key ${quoted(key.name)} is resumed: its requests are accepted from now on${lackOf(key)}.`
      : `Nothing changes: the key ${quoted(key.name)} is not suspended.`,
    affected: await useOf(key, world),
    undo: 'restores',
    preview: { key },
    apply: async () => ({ key: await world.keys.setSuspension(key, null) }),
  }
}

export async function planRevocation(key: AppKey, world: KeyWorld): Promise<KeyPlan> {
  const before = keyStateOf(key)
  const revokedAt = key.revokedAt ?? world.now()
  return {
    target: { kind: 'api_key', id: key.uuid },
    before,
    after: { ...before, revoked_at: revokedAt },
    effect:
      key.revokedAt === null
        ? `The key ${quoted(key.name)} is revoked permanently: its requests are rejected from now on. suspend_api_key does the same, and can be undone.`
        : `Nothing changes: the key ${quoted(key.name)} was revoked at ${timeToText(revokedAt)}.`,
    affected: await useOf(key, world),
    undo: 'none',
    preview: { key },
    apply: async () => ({ key: await world.keys.revoke(key, revokedAt) }),
  }
}

/** A key that takes itself out of use cannot bring itself back. */
export function refuseOwnKey(key: AppKey, principal: Principal, isConfirmed: boolean): void {
  if (isConfirmed || principal.kind !== 'key' || principal.keyId !== key.id) return
  throw conflict(
    'confirm_self',
    'This is the key of this very request: its next request would be rejected. Nothing was changed: set confirm_self to true if that is wanted',
  )
}

/** A key that was made for tools: it names a scope of MCP. */
export const isOfAgent = (principal: Principal): boolean =>
  principal.kind === 'key' && principal.scopeLabels.some((label) => label.startsWith('mcp:'))

const lackOf = ({ isActive }: AppKey): string =>
  isActive ? '' : ' when an administrator makes it active, too'

function refuseRevoked({ revokedAt }: AppKey): void {
  if (revokedAt !== null)
    throw conflict('key_revoked', 'The key has been revoked, which is permanent')
}

async function useOf(key: AppKey, { usage, now }: KeyWorld): Promise<Record<string, number>> {
  return {
    requests_per_hour: await usage.ofLastHour(key.id),
    ...(key.lastUsedAt !== null && {
      seconds_since_last_use: Math.max(0, Math.floor((now() - key.lastUsedAt) / 1_000)),
    }),
  }
}
