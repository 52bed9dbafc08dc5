import { expect, test } from 'vitest'
import { relayDigitIn } from '../../../../engine/media/digits/heard-digits.ts'

/** As rtpengine 10.5.3.5 writes it. */
const told = {
  callid: 's-1',
  source_tag: 'uuid-1.0',
  tags: ['uuid-1.1', 'uuid-1.0'],
  type: 'DTMF',
  timestamp: 1_795_387_485,
  source_ip: '127.0.0.1',
  event: 5,
  duration: 160,
  volume: 10,
}
const heard = (change: object) => relayDigitIn(Buffer.from(JSON.stringify({ ...told, ...change })))

test.each([
  [{}, { code: '5', durationMs: 160 }],
  [{ event: 10 }, { code: '*', durationMs: 160 }],
  [
    { event: 11, duration: 1 },
    { code: '#', durationMs: 40 },
  ],
  [
    { event: 15, duration: 60_000 },
    { code: 'D', durationMs: 5_000 },
  ],
])('%j', (change, digit) => {
  expect(heard(change)).toEqual({ session: 's-1', from: 'uuid-1.0', digit })
})

test.each([
  { event: 16 },
  { event: -1 },
  { event: 1.5 },
  { event: '5' },
  { duration: null },
  { callid: 7 },
  { source_tag: undefined },
])('%j is nothing', (change) => {
  expect(heard(change)).toBeUndefined()
})

test.each(['', '{', 'null', '[]', '5', '"DTMF"', '\u0000\uffff'])('%j is nothing', (text) => {
  expect(relayDigitIn(Buffer.from(text))).toBeUndefined()
})
