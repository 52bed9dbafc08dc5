/** Addresses that an operator has banned: their SIP packets are dropped. */
import type { RestorableKind, ChangeDeps, Json } from '../changes/kinds.ts'
import { DAY_MS } from '../../schema/clock.ts'
import { wrongTenant } from '../auth/tenants.ts'
import { ApiError } from '../http/api-error.ts'

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

/**
 * Milliseconds UTC; undefined: it is heard. A ban that the guard has found itself ends by itself, and is no operator's.
 */
const bannedUntil = (source: string, { engine }: Pick<ChangeDeps, 'engine'>): number | undefined =>
  engine.guard.bans().find((ban) => ban.source === source && ban.reason === 'operator')?.until

export const banStateOf = (source: string, world: Pick<ChangeDeps, 'engine'>): BanState =>
  bannedUntil(source, world) === undefined ? 'heard' : 'banned'

/** The state before a ban up to this time: one that ends sooner would let the source be heard again meanwhile. */
export const stateBeforeBan = (
  source: string,
  until: number,
  world: Pick<ChangeDeps, 'engine'>,
): BanState => ((bannedUntil(source, world) ?? -Infinity) >= until ? 'banned' : 'heard')

export async function setBan(
  source: string,
  state: BanState,
  durationMs: number,
  { engine }: Pick<ChangeDeps, 'engine'>,
): Promise<void> {
  if (state === 'banned') await engine.guard.ban(source, durationMs)
  else await engine.guard.endOperatorBan(source)
}

function stateIn(state: Json | null): BanState {
  if (state === 'banned' || state === 'heard') return state
  throw new ApiError(409, 'not_reversible', 'This change says nothing that could be restored')
}
