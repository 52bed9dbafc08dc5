/** The codecs of calls that may be recorded: those that can be decoded (pure). */
import type { MediaParty } from '../party.ts'

/** RFC 3551: the names of G.711. */
const decoded = ['PCMA', 'PCMU']

/** Its own order counts. One that may have none of them talks through the transcoding relay. */
export function inRecordedCodecs(party: MediaParty): MediaParty {
  const { rules } = party
  const own = (rules.codecs ?? []).filter((name) => decoded.includes(name.toUpperCase()))
  return { ...party, rules: { ...rules, codecs: own.length > 0 ? own : decoded } }
}
