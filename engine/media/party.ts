import type { MediaRules } from '../../schema/contracts/field-values.ts'
import type { Description, SpokenProfile } from './description.ts'

/** One of the two parties of a media session, as far as it is known. */
export interface MediaParty {
  readonly rules: MediaRules
  readonly isOnWebSocket: boolean
  /** Where its packets come from, when it is behind NAT: media goes there, and not where its description says. */
  readonly natAddress: string | undefined
  /** Its last description; undefined: it has sent none. */
  readonly described: Description | undefined
}

/** Which profile the answerer gets: what it has shown, its rule, what its transport tells, or that of the offer. */
export function profileToward(answerer: MediaParty, offered: SpokenProfile): SpokenProfile {
  if (answerer.described) return answerer.described.profile
  if (answerer.rules.profile !== 'auto') return answerer.rules.profile
  if (answerer.isOnWebSocket) return 'webrtc'
  return offered === 'webrtc' ? 'rtp' : offered
}
