/** Application keys: suspended or not, revoked or not. */
import type { AppKey } from '../auth/keys/app-key.ts'
import { refuseResume } from '../auth/keys/issue-key.ts'
import type { Principal } from '../auth/principal.ts'
import { notFound } from '../http/api-error.ts'
import type { ChangeWorld, Json } from './change-world.ts'
import type { RestorableKind } from './restorable-kind.ts'

/** The state of a key as far as changes are about it. */
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

export const apiKeyKind: RestorableKind = {
  isRow: true,
  async read(uuid, { keys }) {
    const key = await keys.byUuid(uuid, null)
    return key === undefined ? null : keyStateOf(key)
  },
  async restore(uuid, state, { keys }) {
    const key = await keys.byUuid(uuid, null)
    if (key === undefined) throw notFound('Application key')
    const { at, by } = suspensionIn(state)
    await keys.setSuspension(key, at === null ? null : { at, by })
  },
  async admit(uuid, { from, to }, principal, { keys }) {
    const key = await reachable(uuid, principal, keys)
    const isResumed = suspensionIn(from).at !== null && suspensionIn(to).at === null
    if (isResumed) refuseResume(key, principal)
  },
}

/** A key of another tenant or domain does not exist for the caller. */
async function reachable(
  uuid: string,
  { tenantId, domain }: Principal,
  keys: ChangeWorld['keys'],
): Promise<AppKey> {
  const key = await keys.byUuid(uuid, tenantId)
  if (key !== undefined && (domain === null || key.domain === domain)) return key
  throw notFound('Application key')
}

function suspensionIn(state: Json | null) {
  const { suspended_at: at, suspended_by: by } = Object(state) as Readonly<Record<string, Json>>
  return {
    at: typeof at === 'number' ? at : null,
    by: typeof by === 'string' ? by : '',
  }
}
