import { expect, test } from 'vitest'
import { answerFlags, offerFlags } from '../../../engine/media/gate/offers.ts'
import type { MediaProfile } from '../../../schema/contracts/field-values.ts'
import {
  baresipOffer,
  chromiumOffer,
  party,
  srtpOffer,
  withoutEvents,
} from '../../support/media-party.ts'

const offers = { rtp: baresipOffer, srtp: srtpOffer, webrtc: chromiumOffer }
const protocol = { rtp: 'RTP/AVP', srtp: 'RTP/SAVP', webrtc: 'UDP/TLS/RTP/SAVPF' }
const profiles = ['rtp', 'srtp', 'webrtc'] as const
const pairings = profiles.flatMap((from) => profiles.map((to) => [from, to] as const))

test.each(pairings)('an offer of %s is rewritten to %s', (from, to) => {
  const flags = offerFlags(party(offers[from]), party(undefined, { rules: { profile: to } }))
  expect(flags['transport protocol']).toBe(from === to ? undefined : protocol[to])
  expect(flags).toMatchObject({
    replace: ['origin', 'session-connection'],
    ICE: to === 'webrtc' ? 'force' : 'remove',
    DTLS: to === 'webrtc' ? 'passive' : 'off',
    'rtcp-mux': [to === 'webrtc' ? 'require' : 'demux'],
  })
  expect(flags['codec']).toBeUndefined()
  expect(flags['received from']).toBeUndefined()
  expect(JSON.stringify(flags['SDES'])).toContain(to === 'srtp' ? 'no-NULL' : 'off')
})

test.each<[MediaProfile, boolean, string | undefined, string | undefined]>([
  ['auto', false, undefined, undefined],
  ['auto', true, undefined, 'UDP/TLS/RTP/SAVPF'],
  ['rtp', true, undefined, undefined],
  // The profile that it has shown counts before the written one.
  ['rtp', true, chromiumOffer, 'UDP/TLS/RTP/SAVPF'],
  ['webrtc', false, srtpOffer, 'RTP/SAVP'],
])('a party with profile %s, on WebSocket: %s', (profile, isOnWebSocket, sdp, expected) => {
  const flags = offerFlags(party(baresipOffer), party(sdp, { isOnWebSocket, rules: { profile } }))
  expect(flags['transport protocol']).toBe(expected)
})

const codecsOf = (sdp: string, own: readonly string[] | null, wanted: readonly string[] | null) =>
  offerFlags(
    party(sdp, { rules: { codecs: own } }),
    party(undefined, { rules: { codecs: wanted, profile: 'rtp' } }),
  )['codec']

test('codecs are an allow list, in order, and video is left alone', () => {
  const offer = (...names: string[]) => ({ strip: ['all'], offer: [...names, 'telephone-event'] })
  expect(codecsOf(baresipOffer, null, null)).toBeUndefined()
  expect(codecsOf(chromiumOffer, null, ['PCMA', 'opus'])).toEqual(offer('PCMA', 'opus'))
  expect(codecsOf(chromiumOffer, ['opus', 'pcmu'], null)).toEqual(offer('opus', 'PCMU'))
  expect(codecsOf(chromiumOffer, ['opus', 'PCMA'], ['PCMU', 'pcma'])).toEqual(offer('PCMA'))
  // None of its own list: what it offers is what it has.
  expect(codecsOf(baresipOffer, ['opus'], ['PCMU'])).toEqual(offer('PCMU'))
  // On no common list, but both have it: better than transcoding.
  expect(codecsOf(chromiumOffer, ['opus'], ['G729', 'PCMA'])).toEqual(offer('PCMA'))
  const video = `${baresipOffer}m=video 4000 RTP/AVP 96\r\na=rtpmap:96 VP8/90000\r\n`
  expect(codecsOf(video, null, ['PCMU'])).toEqual({
    strip: ['all'],
    offer: ['PCMU', 'telephone-event', 'VP8'],
  })
})

test('the relay transcodes where the other side has none of them', () => {
  expect(codecsOf(baresipOffer, null, ['opus'])).toEqual({
    transcode: ['opus'],
    mask: ['PCMA', 'PCMU'],
    strip: ['CN'],
  })
  expect(codecsOf(chromiumOffer, ['opus'], ['G729', 'AMR-WB', 'GSM'])).toEqual({
    transcode: ['G729', 'GSM'],
    mask: ['opus'],
    strip: ['red', 'G722', 'PCMU', 'PCMA', 'CN'],
  })
  // A codec that the relay cannot encode passes: the callee refuses it.
  expect(codecsOf(baresipOffer, null, ['EVS'])).toBeUndefined()
})

test('digits are taken from RTP for a party that takes INFO, and put into it for one that does not', () => {
  const info = { rules: { dtmf: 'info' } } as const
  const rfc4733 = { rules: { dtmf: 'rfc4733' } } as const
  const silent = withoutEvents(baresipOffer)
  expect(offerFlags(party(baresipOffer), party(undefined, info))).toMatchObject({
    flags: ['strict source', 'inject DTMF'],
    codec: { consume: ['telephone-event'] },
  })
  expect(offerFlags(party(silent, info), party())).toMatchObject({
    flags: ['strict source', 'inject DTMF'],
    codec: { transcode: ['telephone-event'] },
  })
  expect(offerFlags(party(silent), party(undefined, rfc4733))).toMatchObject({
    flags: ['strict source', 'inject DTMF'],
    codec: { transcode: ['telephone-event'] },
  })
  const both = offerFlags(party(baresipOffer, info), party())
  expect(both).toMatchObject({ flags: ['strict source', 'inject DTMF'] })
  expect(both['codec']).toBeUndefined()
  expect(offerFlags(party(baresipOffer), party(undefined, rfc4733))['flags']).not.toContain(
    'inject DTMF',
  )
  expect(answerFlags(party(baresipOffer), party(baresipOffer, info))['flags']).toContain(
    'inject DTMF',
  )
  // With an allow list, the events are not offered either.
  const wanted = { rules: { dtmf: 'info', codecs: ['PCMU'] } } as const
  expect(offerFlags(party(baresipOffer), party(undefined, wanted))['codec']).toEqual({
    consume: ['telephone-event'],
    strip: ['all'],
    offer: ['PCMU'],
  })
})

test('media of a party behind NAT goes to where its packets come from', () => {
  const natAddress = '198.51.100.7'
  const hidden = party(baresipOffer, { natAddress })
  const flags = {
    'received from': ['IP4', natAddress],
    flags: ['strict source', 'SIP source address'],
  }
  expect(offerFlags(hidden, party())).toMatchObject(flags)
  expect(answerFlags(hidden, party(baresipOffer))['received from']).toBeUndefined()
  expect(answerFlags(party(baresipOffer), hidden)).toMatchObject(flags)
  const six = party(baresipOffer, { natAddress: '2001:db8::7' })
  expect(offerFlags(six, party())['received from']).toEqual(['IP6', '2001:db8::7'])
})

test('an answer to a browser has ICE and multiplexed RTCP', () => {
  expect(answerFlags(party(chromiumOffer), party(baresipOffer))).toMatchObject({
    ICE: 'force',
    'rtcp-mux': ['accept'],
  })
  expect(answerFlags(party(baresipOffer), party(chromiumOffer))['ICE']).toBeUndefined()
})
