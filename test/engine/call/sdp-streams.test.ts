import { expect, test } from 'vitest'
import { isHold } from '../../../engine/call/sdp.ts'

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
