/** What a session description says about how its party takes media (RFC 4566, RFC 3264). Pure. */
import type { MediaProfile } from '../../schema/contracts/field-values.ts'

export type SdpProfile = Exclude<MediaProfile, 'auto'>

export interface Description {
  /** Of its first audio stream. */
  readonly profile: SdpProfile
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
  const facts: StreamFacts = { protocol: undefined, address: undefined, audio: [], other: [] }
  let stream: Stream | undefined
  let sessionAddress: string | undefined
  // Each line is looked at once, and cut out only where it is needed: two descriptions of each call are read.
  for (let start = 0, end = 0; start < sdp.length; start = end + 1) {
    end = endOfLine(sdp, start)
    if (sdp.charCodeAt(start + 1) !== EQUALS) continue
    const kind = sdp.charCodeAt(start)
    if (kind === M) {
      if (stream) addStream(facts, stream)
      const words = sdp
        .slice(start + 2, end)
        .trimEnd()
        .split(' ')
      stream = { words, address: undefined, rtpmaps: new Map() }
    } else if (kind === C) {
      const address = stream === undefined ? sessionAddress : stream.address
      if (address !== undefined) continue
      const own = /^c=IN IP[46] ([^\s/]+)/.exec(sdp.slice(start, end))?.[1]
      if (stream === undefined) sessionAddress = own
      else stream.address = own
    } else if (kind === A && stream && sdp.startsWith(rtpmap, start)) {
      const line = sdp.slice(start + rtpmap.length, end)
      stream.rtpmaps.set(line.slice(0, Math.max(line.indexOf(' '), 0)), line)
    }
  }
  if (stream) addStream(facts, stream)
  const codecs = unique(facts.audio)
  const speech = codecs.filter((name) => !isNoSpeech.test(name))
  return {
    profile: profileOf(facts.protocol ?? ''),
    address: facts.address ?? sessionAddress ?? '',
    codecs: speech,
    otherCodecs: unique(facts.other),
    hasTelephoneEvents:
      speech.length < codecs.length && codecs.some((name) => isTelephoneEvent.test(name)),
  }
}

const [A, C, M, EQUALS] = [0x61, 0x63, 0x6d, 0x3d]
const rtpmap = 'a=rtpmap:'

interface StreamFacts {
  /** Of the first audio stream, as its address. */
  protocol: string | undefined
  address: string | undefined
  /** Names of codecs. */
  readonly audio: string[]
  readonly other: string[]
}

interface Stream {
  /** Of `m=`: kind, port, protocol, formats. */
  readonly words: readonly string[]
  address: string | undefined
  /** By format: what follows `a=rtpmap:`. */
  readonly rtpmaps: Map<string, string>
}

function addStream(facts: StreamFacts, { words, address, rtpmaps }: Stream): void {
  const isAudio = words[0] === 'audio'
  if (isAudio && facts.protocol === undefined) {
    facts.protocol = words[2] ?? ''
    facts.address = address
  }
  const names = isAudio ? facts.audio : facts.other
  for (let at = 3; at < words.length; at += 1) {
    const name = nameOf(words[at] ?? '', rtpmaps)
    if (name !== undefined) names.push(name)
  }
}

function nameOf(format: string, rtpmaps: ReadonlyMap<string, string>): string | undefined {
  const mapped = rtpmaps.get(format)
  const name = mapped === undefined ? undefined : /^\d+ ([^/\s]+)/.exec(mapped)?.[1]
  return name ?? staticNames[format]
}

const isTelephoneEvent = /^telephone-event$/i
const isNoSpeech = /^(telephone-event|CN)$/i

const unique = (names: readonly string[]): readonly string[] =>
  names.length < 2 ? names : [...new Set(names)]

/** RFC 4568 (SDES) and RFC 5764 (DTLS-SRTP) each have their protocols in `m=`. */
function profileOf(protocol: string): SdpProfile {
  if (protocol.includes('TLS/')) return 'webrtc'
  return protocol.includes('SAVP') ? 'srtp' : 'rtp'
}

function endOfLine(sdp: string, start: number): number {
  const end = sdp.indexOf('\n', start)
  return end < 0 ? sdp.length : end
}

/** RFC 3551 §6: payload types that need no `a=rtpmap`. */
const staticNames: Readonly<Record<string, string>> = {
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
}
