/** Addresses that an operator has banned: their SIP packets are dropped. */
import { DAY_MS } from '../../../schema/clock.ts'
import { wrongTenant } from '../../auth/tenants.ts'
import { ApiError } from '../../http/api-error.ts'
import type { ChangeWorld, Json } from '../change-world.ts'
import type { RestorableKind } from '../restorable-kind.ts'

/** The longest that the guard bans for. */
const LONGEST_BAN_MS = 30 * DAY_MS

type BanState = 'banned' | 'heard'

export const sipBanKind: RestorableKind = {
  isRow: false,
  read: (source, world) => Promise.resolve(banStateOf(source, world)),
  restore: (source, state, world) => setBan(source, stateIn(state), LONGEST_BAN_MS, world),
  admit: (_, __, { tenantId }) =>
    tenantId === null ? Promise.resolve() : Promise.reject(wrongTenant()),
}

/** A ban that the guard has found itself ends by itself, and is no operator's. */
export const banStateOf = (source: string, { engine }: Pick<ChangeWorld, 'engine'>): BanState =>
  engine.guard.bans().some((ban) => ban.source === source && ban.reason === 'operator')
    ? 'banned'
    : 'heard'

export async function setBan(
  source: string,
  state: BanState,
  durationMs: number,
  { engine }: Pick<ChangeWorld, 'engine'>,
): Promise<void> {
  if (state === 'banned') await engine.guard.ban(source, durationMs)
  else await engine.guard.unban(source)
}

function stateIn(state: Json | null): BanState {
  if (state === 'banned' || state === 'heard') return state
  throw new ApiError(409, 'not_reversible', 'This change says nothing that could be restored')
}
