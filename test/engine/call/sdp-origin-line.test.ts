/** RFC 3264 §8: in one dialog the origin stays, and the version grows by one with each change. */
import { expect, test } from 'vitest'
import { continued } from '../../../engine/call/sdp.ts'

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
