/** Reads the profile, address and codecs of an SDP (RFC 4566, RFC 3264). */
import { type Family, familiesIn, type Stream, streamsOf } from '../call/sdp.ts'
import type { MediaProfile } from '../../schema/contracts/field-values.ts'

export type SdpProfile = Exclude<MediaProfile, 'auto'>

export interface Description {
  /** The profile of the first audio stream. */
  readonly profile: SdpProfile
  /** The address of that stream; empty if the SDP has none. */
  readonly address: string
  /** The codecs of the audio streams in their order, without telephone events and comfort noise. */
  readonly codecs: readonly string[]
  /** The codecs of other streams. */
  readonly otherCodecs: readonly string[]
  /** RFC 4733. */
  readonly hasTelephoneEvents: boolean
  /** The IP versions with which media can reach it; empty: it says nothing about that. */
  readonly families: readonly Family[]
}

export function readDescription(sdp: string): Description {
  const streams = streamsOf(sdp)
  const audio = streams.filter(isAudio)
  const codecs = codecsOf(audio)
  const speech = codecs.filter((name) => !isNoSpeech.test(name))
  const [first = streams[0]] = audio
  return {
    profile: profileOf(audio[0]?.protocol ?? ''),
    address: /^IN IP[46] ([^\s/]+)/.exec(first?.address ?? '')?.[1] ?? '',
    codecs: speech,
    otherCodecs:
      audio.length === streams.length ? [] : codecsOf(streams.filter((stream) => !isAudio(stream))),
    hasTelephoneEvents: codecs.some((name) => isTelephoneEvent.test(name)),
    families: familiesIn(sdp, streams),
  }
}

const isAudio = ({ kind }: Stream): boolean => kind === 'audio'

/** The names of their codecs, each once. */
function codecsOf(streams: readonly Stream[]): readonly string[] {
  const names = new Set<string>()
  for (const { formats, codecNames } of streams)
    for (const format of formats) {
      const name = codecNames.get(format) ?? staticNames.get(format)
      if (name !== undefined) names.add(name)
    }
  return [...names]
}

const isTelephoneEvent = /^telephone-event$/i
const isNoSpeech = /^(telephone-event|CN)$/i

/** RFC 4568 (SDES) and RFC 5764 (DTLS-SRTP) each have their protocols in `m=`. */
function profileOf(protocol: string): SdpProfile {
  if (protocol.includes('TLS/')) return 'webrtc'
  return protocol.includes('SAVP') ? 'srtp' : 'rtp'
}

/** RFC 3551 §6: payload types that need no `a=rtpmap`. */
const staticNames: ReadonlyMap<string, string> = new Map(
  Object.entries({
    0: 'PCMU',
    3: 'GSM',
    4: 'G723',
    8: 'PCMA',
    9: 'G722',
    13: 'CN',
    15: 'G728',
    18: 'G729',
    26: 'JPEG',
    31: 'H261',
    34: 'H263',
  }),
)
