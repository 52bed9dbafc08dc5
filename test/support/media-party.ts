/** Session descriptions as programs write them, and parties of media sessions. */
import type { MediaRules } from '../../schema/contracts/field-values.ts'
import { readDescription } from '../../engine/media/description.ts'
import type { MediaParty } from '../../engine/media/call-media.ts'

const lines = (text: string): string => `${text.trim().replaceAll(/\n\s*/g, '\r\n')}\r\n`

/** An offer as Chromium writes it. */
export const chromiumOffer = lines(`
  v=0
  o=- 4611731400430051336 2 IN IP4 127.0.0.1
  s=-
  t=0 0
  a=group:BUNDLE 0
  a=msid-semantic: WMS stream
  m=audio 54609 UDP/TLS/RTP/SAVPF 111 63 9 0 8 13 110 126
  c=IN IP4 192.168.1.7
  a=rtcp:9 IN IP4 0.0.0.0
  a=candidate:1467250027 1 udp 2122260223 192.168.1.7 54609 typ host generation 0 network-id 1
  a=ice-ufrag:Bl5K
  a=ice-pwd:7GnL7tDxZ8l1sCmQ4wGh5WkP
  a=ice-options:trickle
  a=fingerprint:sha-256 6B:8B:F0:65:5F:78:E2:51:3B:AC:6F:F3:3F:46:1B:35:DC:B8:5F:64:1A:24:C2:43:F0:A1:58:D0:A1:2C:19:08
  a=setup:actpass
  a=mid:0
  a=extmap:1 urn:ietf:params:rtp-hdrext:ssrc-audio-level
  a=sendrecv
  a=rtcp-mux
  a=rtpmap:111 opus/48000/2
  a=rtcp-fb:111 transport-cc
  a=fmtp:111 minptime=10;useinbandfec=1
  a=rtpmap:63 red/48000/2
  a=fmtp:63 111/111
  a=rtpmap:9 G722/8000
  a=rtpmap:0 PCMU/8000
  a=rtpmap:8 PCMA/8000
  a=rtpmap:13 CN/8000
  a=rtpmap:110 telephone-event/48000
  a=rtpmap:126 telephone-event/8000
  a=ssrc:3735928559 cname:abc
`)

/** A phone that speaks SRTP alone (RFC 4568). */
export const srtpOffer = lines(`
  v=0
  o=- 3 3 IN IP4 127.0.0.1
  s=-
  c=IN IP4 127.0.0.1
  t=0 0
  m=audio 40010 RTP/SAVP 9 8 0 101
  a=rtpmap:9 G722/8000
  a=rtpmap:8 PCMA/8000
  a=rtpmap:0 PCMU/8000
  a=rtpmap:101 telephone-event/8000
  a=fmtp:101 0-15
  a=crypto:1 AES_CM_128_HMAC_SHA1_80 inline:WVNfX19zZW1jdGwgKCkgewkyMjA7fQp9CnVubGVz
  a=crypto:2 AES_CM_128_HMAC_SHA1_32 inline:NzB4d1BINUAvLEw6UzF3WSJ+PSdFcGdUJShpX1Zj
  a=sendrecv
`)

/** As baresip writes it. */
export const baresipOffer = lines(`
  v=0
  o=- 3820136293 3019486372 IN IP4 127.0.0.1
  s=-
  c=IN IP4 127.0.0.1
  t=0 0
  a=tool:baresip 1.0.0
  m=audio 40000 RTP/AVP 8 0 101
  b=AS:125
  a=rtpmap:8 PCMA/8000
  a=rtpmap:0 PCMU/8000
  a=rtpmap:101 telephone-event/8000
  a=fmtp:101 0-15
  a=rtcp:40001
  a=rtcp-rsize
  a=ssrc:2876151237 cname:sip:alice@127.0.0.1
  a=sendrecv
  a=label:1
  a=ptime:20
`)

/** The same without telephone events. */
export const withoutEvents = (sdp: string): string =>
  sdp.replaceAll(/^a=(rtpmap|fmtp):101 .*\r\n/gm, '').replace(' 101\r\n', '\r\n')

export const noRules: MediaRules = { policy: null, profile: 'auto', codecs: null, dtmf: 'auto' }

/** A party that has sent `sdp`, if any. */
export const party = (
  sdp?: string,
  { rules, ...rest }: Partial<Omit<MediaParty, 'rules'>> & { rules?: Partial<MediaRules> } = {},
): MediaParty => ({
  isOnWebSocket: false,
  natAddress: undefined,
  families: sdp === undefined ? [] : readDescription(sdp).families,
  description: sdp === undefined ? undefined : readDescription(sdp),
  ...rest,
  rules: { ...noRules, ...rules },
})
