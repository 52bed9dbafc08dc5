import { expect, test } from 'vitest'
import { type RelayDigit, RelayDigits } from '../../../../engine/media/digits/heard-digits.ts'

function rig() {
  const told: RelayDigit[] = []
  const known = new Set(['known'])
  const time = { now: 0 }
  const digits = new RelayDigits({
    isRelay: (address) => address === '192.0.2.1',
    take: (digit) => known.has(digit.session) && told.push(digit) > 0,
    now: () => time.now,
  })
  const receive = (callid: string, source = '192.0.2.1', rest: object = {}): void =>
    digits.received(
      Buffer.from(JSON.stringify({ callid, source_tag: 'a', event: 1, duration: 100, ...rest })),
      source,
    )
  const ignored = () => digits.telemetry()['media_digits_ignored_total']
  return { digits, receive, told, known, time, ignored }
}

test('digits of relays are told; what comes from elsewhere, or is too long, is ignored and counted', () => {
  const { receive, told, ignored } = rig()
  receive('known')
  receive('known', '::ffff:192.0.2.1')
  expect(told).toHaveLength(2)
  receive('known', '192.0.2.2')
  receive('known', '192.0.2.1', { padding: 'x'.repeat(3_000) })
  receive('unknown')
  expect(told).toHaveLength(2)
  expect(ignored()).toBe(3)
})

test('a relay that tells of thousands at once is heard again a moment later', () => {
  const { receive, told, time, ignored } = rig()
  for (let n = 0; n < 2_500; n += 1) receive('known')
  expect([told.length, ignored()]).toEqual([2_000, 500])
  time.now += 100
  receive('known')
  expect(told).toHaveLength(2_001)
})
