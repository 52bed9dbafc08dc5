/**
 * The fields about media, which carriers, sets, extensions, tenants and AI agents share, in the
 * words of forms.
 */
export const mediaForm = {
  names: ['media', 'media_profile', 'codecs', 'dtmf'],
  labels: {
    media: 'Media relay',
    media_profile: 'Kind of media',
    dtmf: 'Digits',
    strip_headers: 'Headers to remove',
  },
  hints: {
    media:
      'Whether sound passes a relay. The stronger wish of the two parties counts. It needs ' +
      'the setting RTPENGINE.',
    codecs: 'One a line, the preferred one first. Empty: all.',
    strip_headers: 'One a line. They are not sent to it.',
  },
  words: {
    media: {
      '': 'as the tenant or the installation',
      bypass: 'only where it is needed',
      prefer: 'when a relay is alive',
      anchor: 'always',
    },
    media_profile: {
      auto: 'as the other party has it',
      rtp: 'RTP, not encrypted',
      srtp: 'SRTP, encrypted',
      webrtc: 'WebRTC, for browsers',
    },
    dtmf: { auto: 'as they come', rfc4733: 'events in RTP (RFC 4733)', info: 'SIP INFO' },
  },
} as const
