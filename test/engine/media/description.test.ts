import { expect, test } from 'vitest'
import { readDescription } from '../../../engine/media/description.ts'
import { baresipOffer, chromiumOffer, srtpOffer, withoutEvents } from '../../support/media-party.ts'

test('a browser, an SRTP phone and an RTP phone are told apart by their offers', () => {
  expect(readDescription(chromiumOffer)).toEqual({
    profile: 'webrtc',
    address: '192.168.1.7',
    hasTelephoneEvents: true,
    codecs: ['opus', 'red', 'G722', 'PCMU', 'PCMA'],
    otherCodecs: [],
    families: ['IP4'],
  })
  expect(readDescription(srtpOffer).profile).toBe('srtp')
  expect(readDescription(baresipOffer)).toEqual({
    profile: 'rtp',
    address: '127.0.0.1',
    hasTelephoneEvents: true,
    codecs: ['PCMA', 'PCMU'],
    otherCodecs: [],
    families: ['IP4'],
  })
  expect(readDescription(withoutEvents(baresipOffer)).hasTelephoneEvents).toBe(false)
})

test('payload types of RFC 3551 need no rtpmap, and video is not audio', () => {
  const sdp = [
    'v=0',
    'o=- 1 1 IN IP6 2001:db8::1',
    's=-',
    'c=IN IP6 2001:db8::1',
    't=0 0',
    'm=video 4000 RTP/AVPF 96 34',
    'c=IN IP4 10.0.0.1',
    'a=rtpmap:96 VP8/90000',
    'm=audio 4002 RTP/AVPF 0 8 13 77',
    '',
  ].join('\r\n')
  expect(readDescription(sdp)).toEqual({
    profile: 'rtp',
    address: '2001:db8::1',
    hasTelephoneEvents: false,
    codecs: ['PCMU', 'PCMA'],
    otherCodecs: ['VP8', 'H263'],
    families: ['IP4', 'IP6'],
  })
})
