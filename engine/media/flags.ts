/**
 * What the relay is told with an offer and with its answer, so that each party gets a description of its own
 * profile. Names and values of rtpengine 10.5's ng protocol. Pure.
 */
import { convertsDigits, offeredCodecs } from './codecs.ts'
import type { SpokenProfile } from './description.ts'
import { type MediaParty, profileToward } from './call-media.ts'
import { constant } from './relay/bencode.ts'
import type { NgDictionary } from './relay/relays.ts'

/** `offerer` has a description: the one that is offered. */
export function offerFlags(offerer: MediaParty, answerer: MediaParty): NgDictionary {
  const offered = offerer.described?.profile ?? 'rtp'
  const profile = profileToward(answerer, offered)
  const hasDigits = convertsDigits(offerer, answerer)
  const isUnfiltered = offerer.rules.codecs === null && answerer.rules.codecs === null
  if (isUnfiltered && !hasDigits && profile === offered && offerer.natAddress === undefined)
    return usualOffers[profile]
  return {
    ...common(offerer, hasDigits),
    ...toward[profile],
    // RTP/AVPF stays what it is where nothing has to be converted.
    ...(profile !== offered && { 'transport protocol': protocols[profile] }),
    ...codecFlags(offerer, answerer),
  }
}

/** The answerer's description goes to the party whose offer it answers, in the profile of that offer. */
export function answerFlags(offerer: MediaParty, answerer: MediaParty): NgDictionary {
  const offered = offerer.described?.profile ?? 'rtp'
  const hasDigits = convertsDigits(offerer, answerer)
  if (!hasDigits && answerer.natAddress === undefined) return usualAnswers[offered]
  return { ...common(answerer, hasDigits), ...ofAnswer[offered] }
}

function common({ natAddress }: Pick<MediaParty, 'natAddress'>, hasDigits: boolean): NgDictionary {
  const family = natAddress?.includes(':') ? 'IP6' : 'IP4'
  const flags = [
    // Where a party's packets come from is learnt for some seconds; then a stranger's are dropped.
    'strict source',
    ...(hasDigits ? ['inject DTMF'] : []),
    // `media address` has no effect in 10.5.
    ...(natAddress === undefined ? [] : ['SIP source address']),
  ]
  return {
    replace: replaced,
    // Receiver reports to our own sender reports: what the MOS is computed from.
    'generate RTCP': 'on',
    ...(natAddress !== undefined && { 'received from': [family, natAddress] }),
    flags,
  }
}

const replaced = constant(['origin', 'session-connection'])

const protocols: Readonly<Record<SpokenProfile, string>> = {
  rtp: 'RTP/AVP',
  srtp: 'RTP/SAVP',
  webrtc: 'UDP/TLS/RTP/SAVPF',
}

/** RFC 4568 suites without encryption, or that no phone has: left out, an offer still fits into one datagram. */
const refusedSuites = constant([
  'no-NULL_HMAC_SHA1_80',
  'no-NULL_HMAC_SHA1_32',
  'no-F8_128_HMAC_SHA1_80',
  'no-F8_128_HMAC_SHA1_32',
  'no-AES_192_CM_HMAC_SHA1_80',
  'no-AES_192_CM_HMAC_SHA1_32',
  'no-AES_256_CM_HMAC_SHA1_32',
  'no-AEAD_AES_256_GCM',
  'no-AEAD_AES_128_GCM',
])

/** `rtcp-mux` must be a list: a string is silently ignored. */
const toward: Readonly<Record<SpokenProfile, NgDictionary>> = {
  rtp: { ICE: 'remove', DTLS: 'off', SDES: constant(['off']), 'rtcp-mux': constant(['demux']) },
  srtp: { ICE: 'remove', DTLS: 'off', SDES: refusedSuites, 'rtcp-mux': constant(['demux']) },
  webrtc: {
    ICE: 'force',
    DTLS: 'passive',
    SDES: constant(['off']),
    'rtcp-mux': constant(['require']),
  },
}

const ofAnswer: Readonly<Record<SpokenProfile, NgDictionary>> = {
  rtp: {},
  srtp: { SDES: refusedSuites },
  webrtc: { ICE: 'force', 'rtcp-mux': constant(['accept']) },
}

/** Made once for all parties about which nothing is said. */
const usual = (beside: NgDictionary): NgDictionary => {
  const flags = common({ natAddress: undefined }, false)
  return { ...flags, flags: constant(['strict source']), ...beside }
}
const byProfile = (flags: Readonly<Record<SpokenProfile, NgDictionary>>): typeof flags => ({
  rtp: usual(flags.rtp),
  srtp: usual(flags.srtp),
  webrtc: usual(flags.webrtc),
})
const usualOffers = byProfile(toward)
const usualAnswers = byProfile(ofAnswer)

function codecFlags(offerer: MediaParty, answerer: MediaParty): NgDictionary {
  const offered = offerer.described
  if (!offered) return {}
  const events = telephoneEvents(offerer, answerer)
  const plan = offeredCodecs(offerer, answerer)
  const lists: Record<string, readonly string[]> = {
    // Taken from the offerer, and not offered on: they become SIP INFO.
    ...(events === 'consumed' && { consume: [telephoneEvent] }),
    transcode: [
      ...(plan.kind === 'transcoded' ? plan.to : []),
      ...(events === 'added' ? [telephoneEvent] : []),
    ],
  }
  if (plan.kind === 'filtered') {
    lists['strip'] = ['all']
    const passed = events === 'passed' ? [telephoneEvent] : []
    lists['offer'] = [...plan.codecs, ...passed, ...offered.otherCodecs]
  }
  // Each by its name: with `all`, the answer has none that the offerer knows.
  if (plan.kind === 'transcoded') {
    lists['mask'] = plan.from
    lists['strip'] = [...offered.codecs.filter((name) => !plan.from.includes(name)), 'CN']
  }
  const used = Object.entries(lists).filter(([, names]) => names.length > 0)
  return used.length > 0 ? { codec: Object.fromEntries(used) } : {}
}

const telephoneEvent = 'telephone-event'

/** What becomes of RFC 4733 in the offer. */
function telephoneEvents(
  offerer: MediaParty,
  answerer: MediaParty,
): 'passed' | 'consumed' | 'added' {
  if (!convertsDigits(offerer, answerer)) return 'passed'
  const isOffered = offerer.described?.hasTelephoneEvents === true
  if (answerer.rules.dtmf === 'info') return isOffered ? 'consumed' : 'passed'
  return isOffered ? 'passed' : 'added'
}
