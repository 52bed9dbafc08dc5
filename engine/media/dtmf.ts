/** Digits between a party that sends RFC 4733 events in RTP and one that takes SIP INFO. Pure. */
import type { MediaParty } from './party.ts'

/** Whether the relay has to do with the digits of these two. */
export const convertsDigits = (one: MediaParty, other: MediaParty): boolean =>
  isPlayed(one, other) || isPlayed(other, one)

/** Whether an INFO with digits from one becomes events in the RTP towards the other. */
export function isPlayed(from: MediaParty, to: MediaParty): boolean {
  if (to.rules.dtmf === 'info') return false
  if (from.rules.dtmf === 'info') return to.described?.hasTelephoneEvents !== false
  return to.rules.dtmf === 'rfc4733' && from.described?.hasTelephoneEvents === false
}

/** Whether events in the RTP of the other party become INFO to this one. If it has described events itself, it gets those. */
export const isTold = ({ rules, described }: MediaParty): boolean =>
  rules.dtmf === 'info' && described?.hasTelephoneEvents !== true
