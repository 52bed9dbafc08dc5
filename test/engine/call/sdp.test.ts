import { expect, test } from 'vitest'
import { asOffer, silentAnswer, silentOffer } from '../../../engine/call/sdp.ts'

const offer = [
  'v=0',
  'o=phone 7 7 IN IP4 10.0.0.9',
  's=call',
  'c=IN IP4 10.0.0.9',
  't=0 0',
  'm=audio 4000 RTP/AVP 0 101',
  'c=IN IP4 10.0.0.9',
  'a=rtpmap:0 PCMU/8000',
  'a=rtpmap:101 telephone-event/8000',
  'a=fmtp:101 0-15',
  'a=sendrecv',
  'm=video 4002 RTP/AVP 99',
  'a=rtpmap:99 H264/90000',
  '',
].join('\r\n')

test('a silent answer has every stream of the offer with its codecs, and none that flows', () => {
  const lines = silentAnswer(offer).split('\r\n')
  expect(lines.filter((line) => line.startsWith('m='))).toEqual([
    'm=audio 9 RTP/AVP 0 101',
    'm=video 9 RTP/AVP 99',
  ])
  expect(lines.filter((line) => line === 'a=inactive')).toHaveLength(2)
  expect(lines).toContain('a=fmtp:101 0-15')
  // The phone's own address must not come back to it as ours.
  expect(silentAnswer(offer)).not.toContain('10.0.0.9')
})

test('an answer to the silent offer becomes an offer that lets media flow', () => {
  const answer = silentOffer.replace('m=audio 9', 'm=audio 4000')
  expect(asOffer(answer)).toContain('a=sendrecv')
  expect(asOffer(answer)).not.toContain('inactive')
})
