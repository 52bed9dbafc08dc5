import { expect, test } from 'vitest'
import { type RelayDigit, relayDigitIn, RelayDigits } from '../../../../engine/media/gate/digits.ts'

/** As rtpengine 10.5.3.5 writes it. */
const report = {
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
const digitIn = (change: object) =>
  relayDigitIn(Buffer.from(JSON.stringify({ ...report, ...change })))

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
  expect(digitIn(change)).toEqual({ session: 's-1', from: 'uuid-1.0', digit })
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
  expect(digitIn(change)).toBeUndefined()
})

test.each(['', '{', 'null', '[]', '5', '"DTMF"', '\u0000\uffff'])('%j is nothing', (text) => {
  expect(relayDigitIn(Buffer.from(text))).toBeUndefined()
})

function rig() {
  const taken: RelayDigit[] = []
  const known = new Set(['known'])
  const time = { now: 0 }
  const digits = new RelayDigits({
    isRelay: (address) => address === '192.0.2.1',
    take: (digit) => known.has(digit.session) && taken.push(digit) > 0,
    now: () => time.now,
  })
  const receive = (callid: string, source = '192.0.2.1', rest: object = {}): void =>
    digits.received(
      Buffer.from(JSON.stringify({ callid, source_tag: 'a', event: 1, duration: 100, ...rest })),
      source,
    )
  const ignored = () => digits.telemetry()['media_digits_ignored_total']
  return { digits, receive, taken, known, time, ignored }
}

test('digits of relays are taken; what comes from elsewhere, or is too long, is ignored and counted', () => {
  const { receive, taken, ignored } = rig()
  receive('known')
  receive('known', '::ffff:192.0.2.1')
  expect(taken).toHaveLength(2)
  receive('known', '192.0.2.2')
  receive('known', '192.0.2.1', { padding: 'x'.repeat(3_000) })
  receive('unknown')
  expect(taken).toHaveLength(2)
  expect(ignored()).toBe(3)
})

test('a relay that tells of thousands at once is taken from again a moment later', () => {
  const { receive, taken, time, ignored } = rig()
  for (let n = 0; n < 2_500; n += 1) receive('known')
  expect([taken.length, ignored()]).toEqual([2_000, 500])
  time.now += 100
  receive('known')
  expect(taken).toHaveLength(2_001)
})
