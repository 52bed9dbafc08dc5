/** RFC 3264 §8: in one dialog the origin stays, and the version grows by one with each change. */
import { expect, test } from 'vitest'
import {
  asOffer,
  silentAnswer,
  silentOffer,
  continued,
  isHold,
  agrees,
} from '../../../engine/call/sdp.ts'

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

const sdp = (origin: string, rest = 'm=audio 4000 RTP/AVP 0\r\n'): string =>
  `v=0\r\no=${origin}\r\ns=-\r\nc=IN IP4 192.0.2.9\r\nt=0 0\r\n${rest}`

const last = sdp('alice 77 3 IN IP4 192.0.2.1')

test('another party’s description gets the origin of the leg and its next version', () => {
  const next = sdp('bob 5 900 IN IP6 2001:db8::1', 'm=audio 5000 RTP/AVP 8\r\na=sendonly\r\n')
  expect(continued(last, next)).toBe(
    sdp('alice 77 4 IN IP4 192.0.2.1', 'm=audio 5000 RTP/AVP 8\r\na=sendonly\r\n'),
  )
})

test('the same description of another party is no new one', () => {
  expect(continued(last, sdp('bob 5 900 IN IP4 192.0.2.2'))).toBe(last)
})

test('the version of an earlier description increases, if the description differs', () => {
  const next = sdp('alice 77 2 IN IP4 192.0.2.1', 'm=audio 0 RTP/AVP 0\r\n')
  expect(continued(last, next)).toContain('o=alice 77 4 IN IP4 192.0.2.1\r\n')
})

test.each([
  ['the leg was never last anything', '', last],
  ['the new one has no origin', last, 'v=0\r\ns=-\r\n'],
  ['its version is no number', last, sdp('bob 5 new IN IP4 192.0.2.2')],
  ['that of the leg is no number', sdp('alice 77 x IN IP4 192.0.2.1'), last],
])('nothing is changed where %s', (_why, last, next) => {
  expect(continued(last, next)).toBe(next)
})

const described = (...lines: readonly string[]): string =>
  ['v=0', 'o=- 1 1 IN IP4 10.0.0.1', 's=x', ...lines, ''].join('\r\n')

const here = ['c=IN IP4 10.0.0.1', 't=0 0']
const audio = 'm=audio 4000 RTP/AVP 0'
const video = 'm=video 5000 RTP/AVP 96'

test.each([
  ['sendonly', [...here, audio, 'a=sendonly']],
  ['inactive', [...here, audio, 'a=inactive']],
  ['for the whole session', ['c=IN IP4 10.0.0.1', 't=0 0', 'a=sendonly', audio]],
  ['a null address', ['c=IN IP4 0.0.0.0', 't=0 0', audio]],
  ['a null address of the stream', [...here, audio, 'c=IN IP4 0.0.0.0']],
  ['a null address of IPv6', ['c=IN IP6 ::', 't=0 0', audio]],
  ['with the picture', [...here, audio, 'a=sendonly', video, 'a=inactive']],
  ['a picture alone', [...here, video, 'a=sendonly']],
  ['with a picture that goes on', [...here, audio, 'a=sendonly', video, 'a=sendrecv']],
])('on hold: %s', (_how, lines) => {
  expect(isHold(described(...lines))).toBe(true)
})

test.each([
  ['sendrecv', [...here, audio, 'a=sendrecv']],
  ['nothing is said', [...here, audio]],
  ['a party that only listens is held, and does not hold', [...here, audio, 'a=recvonly']],
  [
    'a picture that was refused',
    [...here, audio, 'a=sendrecv', 'm=video 0 RTP/AVP 96', 'a=inactive'],
  ],
  ['a picture that stands still', [...here, audio, 'a=sendrecv', video, 'a=sendonly']],
  ['of two voices one goes on', [...here, audio, 'a=inactive', 'm=audio 4002 RTP/AVP 0']],
  ['the stream is none', [...here, 'm=audio 0 RTP/AVP 0', 'a=inactive']],
  ['an address that only begins so', ['c=IN IP6 ::1', 't=0 0', audio]],
])('not on hold: %s', (_how, lines) => {
  expect(isHold(described(...lines))).toBe(false)
})

const audioAt = (port = 4_000, formats = '0 8', more = ''): string =>
  `v=0\r\no=- 1 1 IN IP4 10.0.0.1\r\ns=x\r\nc=IN IP4 10.0.0.1\r\nt=0 0\r\nm=audio ${port} RTP/AVP ${formats}\r\n${more}`

test('an unchanged description needs no further re-INVITE', () => {
  expect(agrees(audioAt(), audioAt(5_000, '0'), audioAt())).toBe(true)
  // Another name and fewer codecs make no difference, as long as what was chosen is among them.
  const final = audioAt(4_000, '0').replace('o=- 1 1', 'o=- 1 2').replace('s=x', 's=y')
  expect(agrees(audioAt(), audioAt(5_000, '0'), final)).toBe(true)
  expect(agrees(audioAt(4_000, '0', 'a=sendrecv\r\n'), audioAt(), audioAt())).toBe(true)
})

test.each([
  ['another port', audioAt(4_002)],
  ['another address', audioAt().replace('c=IN IP4 10.0.0.1', 'c=IN IP4 10.0.0.2')],
  ['an address of its stream', audioAt(4_000, '0 8', 'c=IN IP4 10.0.0.2\r\n')],
  ['on hold', audioAt(4_000, '0 8', 'a=sendonly\r\n')],
  ['without the codec that was chosen', audioAt(4_000, '8')],
])('%s: a further re-INVITE is needed', (_what, final) => {
  expect(agrees(audioAt(), audioAt(5_000, '0'), final)).toBe(false)
})
