/** Whether a relay stands between two parties. Pure. */
import type { MediaPolicy } from '../../schema/contracts/field-values.ts'
import { offeredCodecs } from './codecs.ts'
import { convertsDigits } from './dtmf.ts'
import { profileToward, type MediaParty } from './party.ts'

export type MediaDecision =
  | { readonly kind: 'bypass' }
  /** `isRequired`: without a relay there is no call; otherwise the description passes unchanged then. */
  | { readonly kind: 'relay'; readonly isRequired: boolean; readonly why: RelayReason }

export type RelayReason =
  'anchored' | 'preferred' | 'recording' | 'nat' | 'profile' | 'codecs' | 'dtmf'

export interface RelayWishes {
  /** The setting `MEDIA_POLICY`. */
  readonly policy: MediaPolicy
  readonly isRecorded: boolean
  /** It must not take place unrecorded. */
  readonly mustBeRecorded: boolean
}

export function mediaDecision(
  offerer: MediaParty,
  answerer: MediaParty,
  { policy, isRecorded, mustBeRecorded }: RelayWishes,
): MediaDecision {
  const policies = [offerer, answerer].map(({ rules }) => rules.policy ?? policy)
  if (policies.includes('anchor')) return { kind: 'relay', isRequired: true, why: 'anchored' }
  if (mustBeRecorded) return { kind: 'relay', isRequired: true, why: 'recording' }
  const why = policies.includes('prefer') ? 'preferred' : needOf(offerer, answerer, isRecorded)
  return why === undefined ? { kind: 'bypass' } : { kind: 'relay', isRequired: false, why }
}

/** Why media could not flow, or not as asked for, between the two alone. */
function needOf(
  offerer: MediaParty,
  answerer: MediaParty,
  isRecorded: boolean,
): RelayReason | undefined {
  if (isRecorded) return 'recording'
  if (offerer.natAddress !== undefined || answerer.natAddress !== undefined) return 'nat'
  const offered = offerer.described?.profile
  if (offered !== undefined && profileToward(answerer, offered) !== offered) return 'profile'
  if (offeredCodecs(offerer, answerer).kind !== 'unchanged') return 'codecs'
  return convertsDigits(offerer, answerer) ? 'dtmf' : undefined
}
