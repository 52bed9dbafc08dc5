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
  const [session = '', ...streams] = sdp.split(/\r?\nm=/)
  const audio = streams.filter((stream) => stream.startsWith('audio '))
  const [first = ''] = audio
  const codecs = unique(audio.flatMap(codecsOf))
  return {
    profile: profileOf(first.split(' ')[2] ?? ''),
    address: addressOf(first) ?? addressOf(session) ?? '',
    codecs: codecs.filter((name) => !isBesideSpeech.test(name)),
    otherCodecs: unique(streams.filter((stream) => !audio.includes(stream)).flatMap(codecsOf)),
    hasTelephoneEvents: codecs.some((name) => /^telephone-event$/i.test(name)),
  }
}

const isBesideSpeech = /^(telephone-event|CN)$/i

const unique = (names: readonly string[]): readonly string[] => [...new Set(names)]

/** RFC 4568 (SDES) and RFC 5764 (DTLS-SRTP) each have their protocols in `m=`. */
function profileOf(protocol: string): SpokenProfile {
  if (protocol.includes('TLS/')) return 'webrtc'
  return protocol.includes('SAVP') ? 'srtp' : 'rtp'
}

const addressOf = (section: string): string | undefined =>
  /^c=IN IP[46] ([^\s/]+)/m.exec(section)?.[1]

function codecsOf(stream: string): readonly string[] {
  const [media = ''] = stream.split(/\r?\n/, 1)
  const named = stream.matchAll(/^a=rtpmap:(\d+) ([^/\s]+)/gm)
  const names = new Map([...named].map(([, format = '', name = '']) => [format, name]))
  return media
    .split(' ')
    .slice(3)
    .flatMap((format) => names.get(format) ?? staticNames[format] ?? [])
}

/** RFC 3551 §6: payload types that need no `a=rtpmap`. */
const staticNames: Readonly<Record<string, string>> = {
  ...{ 0: 'PCMU', 3: 'GSM', 4: 'G723', 8: 'PCMA', 9: 'G722', 13: 'CN', 15: 'G728', 18: 'G729' },
  ...{ 26: 'JPEG', 31: 'H261', 34: 'H263' },
}
