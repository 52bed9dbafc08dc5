import { expect, test } from 'vitest'
import {
  answerListener,
  targetInAnswer,
  offerToListener,
} from '../../../../engine/call/monitoring/listening-legs.ts'

const from = { address: '10.0.0.1', port: 4_000 }

const offer = (lines: readonly string[], direction = 'sendrecv'): string =>
  [
    'v=0',
    'o=- 1 1 IN IP4 10.0.0.9',
    's=-',
    'c=IN IP4 10.0.0.9',
    't=0 0',
    ...lines,
    `a=${direction}`,
    '',
  ].join('\r\n')

const phone = ['m=audio 5000 RTP/AVP 9 8 0 101', 'a=rtpmap:101 telephone-event/8000']

test('a supervisor gets the G.711 that it prefers', () => {
  const answer = answerListener(offer(phone), from)
  expect(answer?.target).toEqual({ to: { address: '10.0.0.9', port: 5_000 }, payloadType: 8 })
  expect(answer?.sdp).toContain('c=IN IP4 10.0.0.1\r\n')
  expect(answer?.sdp).toContain('m=audio 4000 RTP/AVP 8\r\na=rtpmap:8 PCMA/8000\r\n')
  expect(answer?.sdp).toContain('a=sendrecv\r\n')
})

test.each([
  ['sendonly', 'recvonly'],
  ['inactive', 'inactive'],
])('a supervisor that holds (%s) is sent nothing', (direction, answered) => {
  const answer = answerListener(offer(phone, direction), from)
  expect(answer).toMatchObject({ target: undefined })
  expect(answer?.sdp).toContain(`a=${answered}\r\n`)
})

test.each([[['m=audio 5000 RTP/AVP 9']], [['m=audio 0 RTP/AVP 0']], [['m=video 5000 RTP/AVP 0']]])(
  'an offer without G.711 cannot be answered: %j',
  (lines) => expect(answerListener(offer(lines), from)).toBeUndefined(),
)

test('an offer of ours is answered by a supervisor', () => {
  expect(offerToListener({ address: '::1', port: 4_000 })).toContain('c=IN IP6 ::1\r\n')
  const answer = offer(['m=audio 5000 RTP/AVP 0'], 'recvonly')
  expect(targetInAnswer(answer)).toEqual({
    to: { address: '10.0.0.9', port: 5_000 },
    payloadType: 0,
  })
  expect(targetInAnswer('')).toBeUndefined()
})
