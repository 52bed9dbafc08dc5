/** Reads the profile, address and codecs of an SDP (RFC 4566, RFC 3264). */
import { isIP } from 'node:net'
import { type Stream, streamsOf } from '../call/sdp.ts'
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

/** As `c=` has it (RFC 4566 §5.7). */
export type Family = 'IP4' | 'IP6'

export function readDescription(sdp: string): Description {
  const streams = streamsOf(sdp)
  const audio = streams.filter(isAudio)
  const codecs = unique(audio.flatMap(codecsOf))
  const speech = codecs.filter((name) => !isNoSpeech.test(name))
  const [first = streams[0]] = audio
  return {
    profile: profileOf(audio[0]?.protocol ?? ''),
    address: /^IN IP[46] ([^\s/]+)/.exec(first?.address ?? '')?.[1] ?? '',
    codecs: speech,
    otherCodecs: unique(streams.filter((stream) => !isAudio(stream)).flatMap(codecsOf)),
    hasTelephoneEvents: codecs.some((name) => isTelephoneEvent.test(name)),
    families: familiesIn(sdp, streams),
  }
}

/** Of each stream (ANAT has two, RFC 4092), and of its candidates (RFC 8839 §5.1) and alternatives (RFC 6947). */
function familiesIn(sdp: string, streams: readonly Stream[]): readonly Family[] {
  const found = new Set<Family>()
  for (const { address, port } of streams) {
    const family = /^IN (IP[46])/.exec(address)?.[1]
    if (isFamily(family) && !port.startsWith('0') && !isNowhere.test(address)) found.add(family)
  }
  if (found.size === 0) return []
  if (sdp.includes('\na=candidate:'))
    for (const [, address = ''] of sdp.matchAll(candidateLine))
      if (isIP(address) !== 0) found.add(isIP(address) === 6 ? 'IP6' : 'IP4')
  if (sdp.includes('\na=altc:'))
    for (const [, family] of sdp.matchAll(alternativeLine)) if (isFamily(family)) found.add(family)
  return [...found]
}

const isFamily = (text: string | undefined): text is Family => text === 'IP4' || text === 'IP6'
/** RFC 3264 §8.4, RFC 6157 §4.2.1: on hold, or for an offer that has no address yet. */
const isNowhere = /^IN IP(?:4 0\.0\.0\.0|6 ::)$|\.invalid$/i
const candidateLine = /^a=candidate:\S+ \d+ \S+ \d+ (\S+)/gm
const alternativeLine = /^a=altc:\d+ (IP[46])/gm

const isAudio = ({ kind }: Stream): boolean => kind === 'audio'

const codecsOf = ({ formats, codecNames }: Stream): readonly string[] =>
  formats.flatMap((format) => codecNames.get(format) ?? staticNames.get(format) ?? [])

const isTelephoneEvent = /^telephone-event$/i
const isNoSpeech = /^(telephone-event|CN)$/i

const unique = (names: readonly string[]): readonly string[] => [...new Set(names)]

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
