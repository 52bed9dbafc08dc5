/** What a session description says about how its party takes media (RFC 4566, RFC 3264). Pure. */
import type { MediaProfile } from '../../schema/contracts/media.ts'

export type SpokenProfile = Exclude<MediaProfile, 'auto'>

export interface Description {
  /** Of its first audio stream. */
  readonly profile: SpokenProfile
  /** Where that stream goes; `` where the description does not say. */
  readonly address: string
  /** Of the audio streams, in their order, without telephone events and comfort noise. */
  readonly codecs: readonly string[]
  /** Of the streams that are not audio. */
  readonly otherCodecs: readonly string[]
  /** RFC 4733. */
  readonly hasTelephoneEvents: boolean
}

export function readDescription(sdp: string): Description {
  const [session, ...streams] = sectionsOf(sdp)
  const audio = streams.filter(isAudio)
  const codecs = unique(audio.flatMap(codecsOf))
  return {
    profile: profileOf(audio[0]?.words[2] ?? ''),
    address: audio[0]?.address ?? session?.address ?? '',
    codecs: codecs.filter((name) => !isBesideSpeech.test(name)),
    otherCodecs: unique(streams.filter((stream) => !isAudio(stream)).flatMap(codecsOf)),
    hasTelephoneEvents: codecs.some((name) => isTelephoneEvent.test(name)),
  }
}

const isTelephoneEvent = /^telephone-event$/i
const isBesideSpeech = /^(telephone-event|CN)$/i

const unique = (names: readonly string[]): readonly string[] =>
  names.length < 2 ? names : [...new Set(names)]

/** RFC 4568 (SDES) and RFC 5764 (DTLS-SRTP) each have their protocols in `m=`. */
function profileOf(protocol: string): SpokenProfile {
  if (protocol.includes('TLS/')) return 'webrtc'
  return protocol.includes('SAVP') ? 'srtp' : 'rtp'
}

/** What stands before the first stream, or one stream. */
interface Section {
  /** Of `m=`: kind, port, protocol, formats. */
  readonly words: readonly string[]
  address: string | undefined
  /** By format. */
  readonly names: Map<string, string>
}

/** Each line is looked at once, and cut out only where it is needed: two descriptions of each call are read. */
function sectionsOf(sdp: string): readonly Section[] {
  let section: Section = { words: [], address: undefined, names: new Map() }
  const sections = [section]
  for (let start = 0; start < sdp.length; start = endOfLine(sdp, start) + 1)
    if (sdp.startsWith('m=', start)) {
      const words = lineAt(sdp, start + 2).split(' ')
      section = { words, address: undefined, names: new Map() }
      sections.push(section)
    } else if (sdp.startsWith('c=', start))
      section.address ??= /^c=IN IP[46] ([^\s/]+)/.exec(lineAt(sdp, start))?.[1]
    else if (sdp.startsWith('a=rtpmap:', start)) {
      const [, format, name] = /^a=rtpmap:(\d+) ([^/\s]+)/.exec(lineAt(sdp, start)) ?? []
      if (format !== undefined && name !== undefined) section.names.set(format, name)
    }
  return sections
}

function endOfLine(sdp: string, start: number): number {
  const end = sdp.indexOf('\n', start)
  return end < 0 ? sdp.length : end
}

const lineAt = (sdp: string, start: number): string =>
  sdp.slice(start, endOfLine(sdp, start)).trimEnd()

const isAudio = ({ words }: Section): boolean => words[0] === 'audio'

const codecsOf = ({ words, names }: Section): readonly string[] =>
  words.slice(3).flatMap((format) => names.get(format) ?? staticNames[format] ?? [])

/** RFC 3551 §6: payload types that need no `a=rtpmap`. */
const staticNames: Readonly<Record<string, string>> = {
  ...{ 0: 'PCMU', 3: 'GSM', 4: 'G723', 8: 'PCMA', 9: 'G722', 13: 'CN', 15: 'G728', 18: 'G729' },
  ...{ 26: 'JPEG', 31: 'H261', 34: 'H263' },
}
