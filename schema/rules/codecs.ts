/** Codecs that may be named in an allow list (RFC 3551, and the registered formats of `audio/`). Pure. */

/** As SDP writes it; undefined: not known. */
export const knownCodec = (name: string): string | undefined => byLowerCase.get(name.toLowerCase())

/** Whether rtpengine, as Debian builds it, encodes and decodes it. */
export const canTranscode = (name: string): boolean =>
  transcoded.some((each) => each.toLowerCase() === name.toLowerCase())

const transcoded = ['PCMA', 'PCMU', 'G722', 'G723', 'G729', 'GSM', 'opus', 'speex']

export const codecNames: readonly string[] = [
  ...transcoded,
  'AMR',
  'AMR-WB',
  'EVS',
  'G726-16',
  'G726-24',
  'G726-32',
  'G726-40',
  'G728',
  'iLBC',
  'iSAC',
  'L16',
]

const byLowerCase = new Map(codecNames.map((name) => [name.toLowerCase(), name]))
